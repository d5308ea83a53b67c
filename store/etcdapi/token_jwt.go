package etcdapi

import (
	"crypto"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/tarn-kv/tarn/store/auth"
	"github.com/tarn-kv/tarn/store/vfs"
)

// Options of the kind jwt.
const (
	jwtSignMethod = "sign-method"
	jwtPublicKey  = "pub-key"
	jwtPrivateKey = "priv-key"
	jwtTTL        = "ttl"
)

// Claims of a token.
const (
	claimUser     = "username"
	claimRevision = "revision"
)

// jwtTokens are signed and kept nowhere (AUT-13): they stay valid over a restart, and
// until they expire. The revision in them makes most requests fail once users or roles
// have changed.
type jwtTokens struct {
	method jwt.SigningMethod
	sign   any // nil: tokens come from elsewhere
	verify any
	ttl    time.Duration
}

func newJWT(options map[string]string) (*jwtTokens, error) {
	for name := range options {
		if !slices.Contains([]string{jwtSignMethod, jwtPublicKey, jwtPrivateKey, jwtTTL}, name) {
			return nil, fmt.Errorf("auth token option %q is unknown to kind jwt", name)
		}
	}
	t := &jwtTokens{method: jwt.GetSigningMethod(options[jwtSignMethod]), ttl: DefaultAuthTokenTTL}
	if t.method == nil {
		return nil, fmt.Errorf("auth token option %s=%q is not a known method such as RS256, ES256, EdDSA or HS256", jwtSignMethod, options[jwtSignMethod])
	}
	if text := options[jwtTTL]; text != "" {
		ttl, err := time.ParseDuration(text)
		if err != nil || ttl <= 0 {
			return nil, fmt.Errorf("auth token option %s=%q is not a time such as 5m", jwtTTL, text)
		}
		t.ttl = ttl
	}
	private, err := readKey(options, jwtPrivateKey)
	if err != nil {
		return nil, err
	}
	public, err := readKey(options, jwtPublicKey)
	if err != nil {
		return nil, err
	}
	if err := t.setKeys(private, public); err != nil {
		return nil, fmt.Errorf("auth token keys: %w", err)
	}
	return t, nil
}

func readKey(options map[string]string, name string) ([]byte, error) {
	if options[name] == "" {
		return nil, nil
	}
	key, err := vfs.ReadFile(options[name])
	if err != nil {
		return nil, fmt.Errorf("auth token option %s: %w", name, err)
	}
	return key, nil
}

// setKeys reads the keys that the method needs.
func (t *jwtTokens) setKeys(private, public []byte) error {
	switch t.method.(type) {
	case *jwt.SigningMethodHMAC:
		if len(private) == 0 {
			return errors.New("the secret is missing: set " + jwtPrivateKey)
		}
		t.sign, t.verify = private, private
		return nil
	case *jwt.SigningMethodRSA, *jwt.SigningMethodRSAPSS:
		return pairOf(t, private, public, jwt.ParseRSAPrivateKeyFromPEM, jwt.ParseRSAPublicKeyFromPEM)
	case *jwt.SigningMethodECDSA:
		return pairOf(t, private, public, jwt.ParseECPrivateKeyFromPEM, jwt.ParseECPublicKeyFromPEM)
	case *jwt.SigningMethodEd25519:
		return pairOf(t, private, public, jwt.ParseEdPrivateKeyFromPEM, jwt.ParseEdPublicKeyFromPEM)
	default:
		return fmt.Errorf("%s can not be used to sign", t.method.Alg())
	}
}

// pairOf sets the keys of a method with a private and a public one. The private key alone is
// enough, and the public one to check tokens that come from elsewhere.
func pairOf[S, V any](t *jwtTokens, private, public []byte, readPrivate func([]byte) (S, error), readPublic func([]byte) (V, error)) error {
	if len(public) > 0 {
		key, err := readPublic(public)
		if err != nil {
			return fmt.Errorf("%s: %w", jwtPublicKey, err)
		}
		t.verify = key
	}
	if len(private) > 0 {
		key, err := readPrivate(private)
		if err != nil {
			return fmt.Errorf("%s: %w", jwtPrivateKey, err)
		}
		own := any(key).(crypto.Signer).Public()
		if t.verify != nil && !own.(interface{ Equal(crypto.PublicKey) bool }).Equal(t.verify) {
			return fmt.Errorf("%s and %s do not belong together", jwtPrivateKey, jwtPublicKey)
		}
		t.sign, t.verify = key, own
	}
	if t.verify == nil {
		return fmt.Errorf("there is none: set %s, or %s to accept tokens from elsewhere", jwtPrivateKey, jwtPublicKey)
	}
	return nil
}

func (t *jwtTokens) assign(user string, revision, _ uint64) (string, error) {
	if t.sign == nil {
		return "", errors.New("this server has no key to sign tokens with")
	}
	return jwt.NewWithClaims(t.method, jwt.MapClaims{
		claimUser:     user,
		claimRevision: revision,
		"exp":         time.Now().Add(t.ttl).Unix(),
	}).SignedString(t.sign)
}

func (t *jwtTokens) lookup(token string, _ uint64) (auth.Caller, bool) {
	var claims jwt.MapClaims
	_, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return t.verify, nil },
		jwt.WithValidMethods([]string{t.method.Alg()}))
	if err != nil {
		return auth.Caller{}, false
	}
	user, ok := claims[claimUser].(string)
	revision, isNumber := claims[claimRevision].(float64)
	if !ok || !isNumber || revision < auth.FirstRevision || revision >= math.MaxInt64 {
		return auth.Caller{}, false
	}
	return auth.Caller{User: user, Revision: uint64(revision)}, true
}

func (*jwtTokens) drop(string)     {}
func (*jwtTokens) dropUser(string) {}
func (*jwtTokens) dropAll()        {}
