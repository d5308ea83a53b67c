package etcdapi

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
)

// keyFiles writes a key pair in PEM.
func keyFiles(t *testing.T, key crypto.Signer) (private, public string) {
	t.Helper()
	write := func(name, kind string, der []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	private = write("private.pem", "PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(key.Public())
	return private, write("public.pem", "PUBLIC KEY", der, err)
}

func testKeys(t *testing.T) map[string]crypto.Signer {
	t.Helper()
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, d, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.Signer{"RS256": r, "PS384": r, "ES256": e, "EdDSA": d}
}

func mustTokens(t *testing.T, setting string) tokens {
	t.Helper()
	x, err := newTokens(setting, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestJWT(t *testing.T) {
	keys := testKeys(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret of some length"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, sign, verify tokens) {
		t.Helper()
		token, err := sign.assign("u", 5, 0)
		if err != nil {
			t.Fatal(err)
		}
		for name, x := range map[string]tokens{"signer": sign, "verifier": verify} {
			if c, ok := x.lookup(token, 9); !ok || c.User != "u" || c.Revision != 5 {
				t.Errorf("AUT-13: %s says %+v, %v", name, c, ok)
			}
			if _, ok := x.lookup(token[:len(token)-4]+"AAAA", 9); ok {
				t.Errorf("AUT-13: %s accepts a bad signature", name)
			}
		}
	}
	for method, key := range keys {
		t.Run("AUT-13/"+method, func(t *testing.T) {
			private, public := keyFiles(t, key)
			verify := mustTokens(t, "jwt,sign-method="+method+",pub-key="+public)
			check(t, mustTokens(t, "jwt,ttl=1m,sign-method="+method+",priv-key="+private+",pub-key="+public), verify)
			check(t, mustTokens(t, "jwt,sign-method="+method+",priv-key="+private), verify)
			if _, err := verify.assign("u", 1, 0); err == nil {
				t.Error("a token is signed without a key")
			}
			_, other := keyFiles(t, testKeys(t)[method])
			if ValidateAuthToken("jwt,sign-method="+method+",priv-key="+private+",pub-key="+other) == nil {
				t.Error("keys that do not belong together are accepted")
			}
		})
	}
	t.Run("AUT-13/HS256", func(t *testing.T) {
		x := mustTokens(t, "jwt,sign-method=HS256,priv-key="+secret)
		check(t, x, x)
	})
	for _, bad := range []string{"jwt,sign-method=RS256,priv-key=" + secret, "jwt,sign-method=HS256,priv-key=" + secret + ",ttl=-1s",
		"jwt,sign-method=HS256,priv-key=" + secret + ",ttl=x", "jwt,sign-method=HS256,priv-key=" + secret + ",extra=1"} {
		if ValidateAuthToken(bad) == nil {
			t.Errorf("%q is valid", bad)
		}
	}
}

// Tokens that somebody else made, or that say something else, are worth nothing.
func TestJWTForgeries(t *testing.T) {
	key := testKeys(t)["RS256"]
	private, public := keyFiles(t, key)
	x := mustTokens(t, "jwt,sign-method=RS256,priv-key="+private)
	good := func() jwt.MapClaims {
		return jwt.MapClaims{"username": "u", "revision": 5, "exp": time.Now().Add(time.Hour).Unix()}
	}
	sign := func(m jwt.SigningMethod, key any, c jwt.MapClaims) string {
		token, err := jwt.NewWithClaims(m, c).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	if _, ok := x.lookup(sign(jwt.SigningMethodRS256, key, good()), 1); !ok {
		t.Fatal("a good token is not valid")
	}
	publicPEM, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	with := func(name string, value any) string {
		c := good()
		c[name] = value
		if value == nil {
			delete(c, name)
		}
		return sign(jwt.SigningMethodRS256, key, c)
	}
	for name, token := range map[string]string{
		"none":              sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, good()),
		"public key as MAC": sign(jwt.SigningMethodHS256, publicPEM, good()),
		"other method":      sign(jwt.SigningMethodRS512, key, good()),
		"other key":         sign(jwt.SigningMethodRS256, testKeys(t)["RS256"], good()),
		"expired":           with("exp", time.Now().Add(-time.Second).Unix()),
		"no user":           with("username", nil),
		"user a number":     with("username", 1),
		"no revision":       with("revision", nil),
		"revision 0":        with("revision", 0),
		"revision below 0":  with("revision", -1),
		"revision too much": with("revision", 1e30),
		"not a token":       "a.b.c",
		"empty":             "",
	} {
		if c, ok := x.lookup(token, 1); ok {
			t.Errorf("AUT-13: %s is valid for %+v", name, c)
		}
	}
}

func TestJWTLife(t *testing.T) {
	private, _ := keyFiles(t, testKeys(t)["ES256"])
	a := newAuthTest(t, Config{AuthToken: "jwt,sign-method=ES256,priv-key=" + private})
	u, root := a.as("u"), a.as("root")
	t.Run("AUT-13", func(t *testing.T) {
		wantStatus(t, a.get(u, "a"), codes.OK, "")
		wantStatus(t, a.get(u, "x"), codes.PermissionDenied, textDenied)
		a.addUser(root, "later")
		wantStatus(t, a.get(u, "a"), codes.InvalidArgument, textOld)
		wantStatus(t, a.get(root, "a"), codes.InvalidArgument, textOld)
		_, err := a.kv.Put(u, &pb.PutRequest{Key: []byte("a")})
		wantStatus(t, err, codes.InvalidArgument, textOld)
		wantStatus(t, a.get(a.as("u"), "a"), codes.OK, "")
	})
}
