package etcdapi

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tarn-kv/tarn/store/auth"
)

// DefaultAuthToken and DefaultAuthTokenTTL are etcd's.
const (
	DefaultAuthToken    = "simple"
	DefaultAuthTokenTTL = 300 * time.Second
)

// tokens are what users show with a request after they gave their password once.
type tokens interface {
	// assign makes a token for a user who was seen at a revision of users and roles;
	// index is the number of the newest batch in the log.
	assign(user string, revision, index uint64) (string, error)
	// lookup finds the user of a token; revision is that of users and roles now.
	lookup(token string, revision uint64) (auth.Caller, bool)
	// drop, dropUser and dropAll make tokens invalid, if that can be.
	drop(token string)
	dropUser(user string)
	dropAll()
}

// ValidateAuthToken reads a setting of Config.AuthToken with the files that it names.
//
// It returns an error when the setting is not valid or a key can not be used.
func ValidateAuthToken(setting string) error {
	_, err := newTokens(setting, DefaultAuthTokenTTL)
	return err
}

// newTokens makes what Config.AuthToken asks for: a kind, and with commas name=value pairs.
func newTokens(setting string, ttl time.Duration) (tokens, error) {
	kind, rest, more := strings.Cut(setting, ",")
	options := map[string]string{}
	for more {
		var pair string
		pair, rest, more = strings.Cut(rest, ",")
		name, value, ok := strings.Cut(pair, "=")
		if _, twice := options[name]; !ok || twice || strings.Contains(value, "=") {
			return nil, fmt.Errorf("auth token option %q is not name=value, or comes twice", pair)
		}
		options[name] = value
	}
	switch kind {
	case "simple":
		if len(options) > 0 {
			return nil, errors.New("auth token kind simple has no options; its lifetime is a setting of its own")
		}
		return newSimpleTokens(ttl), nil
	case "jwt":
		return newJWT(options)
	default:
		return nil, fmt.Errorf("auth token kind %q is unknown; use simple or jwt,sign-method=…,priv-key=…", kind)
	}
}
