package main

import (
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/tarn-kv/tarn/store/etcdapi"
)

// authOptions are the settings for users and roles. Whether they are asked for is
// no setting: it is in the store, switched by `etcdctl auth enable`.
type authOptions struct {
	token      string
	tokenTTL   time.Duration
	bcryptCost int
}

const validToken = "simple, or jwt,sign-method=METHOD with pub-key=FILE, priv-key=FILE and ttl=TIME"

func (o *authOptions) register(fs *pflag.FlagSet) {
	fs.Var(stringValue(&o.token, "token", validToken), "auth-token",
		"what users get for their password: simple, or jwt,sign-method=RS256,priv-key=FILE,ttl=5m")
	fs.Var(secondsValue(&o.tokenTTL), "auth-token-ttl", "seconds that a simple token lives after its last use")
	fs.Var(costValue(&o.bcryptCost), "bcrypt-cost", "effort of hashing a password; one more doubles it")
}

// validate reads the files that the setting of the tokens names.
func (o *authOptions) validate(from sources) error {
	if err := etcdapi.ValidateAuthToken(o.token); err != nil {
		return &settingError{"auth-token", o.token, from.of("auth-token"), &invalidValue{err, validToken}}
	}
	return nil
}

// secondsValue is etcd's form of a time: a number of seconds.
func secondsValue(p *time.Duration) pflag.Value {
	return &value[time.Duration]{p, "seconds", "a whole number of seconds, at least 1",
		func(s string) (time.Duration, error) {
			n, err := strconv.ParseUint(s, 10, 31)
			if err != nil || n == 0 {
				return 0, errNotValid
			}
			return time.Duration(n) * time.Second, nil
		},
		func(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }}
}

func costValue(p *int) pflag.Value {
	return intValue(p, etcdapi.MinBcryptCost, etcdapi.MaxBcryptCost)
}
