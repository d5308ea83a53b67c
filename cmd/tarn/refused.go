package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// refusedSetting are settings of etcd that Tarn does not have, and that are not ignored
// either: somebody relies on them. docs/configuration.md has the same list.
type refusedSetting struct {
	names   []string // one that ends with - stands for all that begin so
	why     string
	instead string
}

var refusedSettings = []refusedSetting{
	{[]string{"auto-tls", "self-signed-cert-validity"},
		"a certificate that the server signs itself proves nothing to clients",
		"make one and set --cert-file and --key-file"},
	{[]string{"client-crl-file"},
		"revoked certificates would be let in",
		"issue certificates that live shortly, and replace the authority in --trusted-ca-file; the file is read again when it changes"},
	{[]string{"client-cert-allowed-hostname"},
		"certificates with other names would be let in",
		"an authority for these clients alone in --trusted-ca-file, or users and roles with --client-cert-auth"},
	{[]string{"client-cert-file", "client-key-file"},
		"the server does not connect to itself",
		"nothing: leave them out"},
	{[]string{"tls-max-version"},
		"newer versions are safer, and would be spoken in spite of it",
		"nothing: leave it out; --tls-min-version sets the oldest"},
	{[]string{"host-whitelist"},
		"requests for other host names would be answered",
		"https:// with --trusted-ca-file, or listen at 127.0.0.1 or a unix socket"},
	{[]string{"listen-client-http-urls"},
		"gRPC and HTTP are served on the same URLs",
		"--listen-client-urls with all of them; --listen-metrics-urls for health and metrics alone"},
	{[]string{"enable-grpc-gateway"},
		"the JSON gateway is always served, and false would not switch it off",
		"nothing: leave it out; users and roles hold for the gateway too"},
	{[]string{"wal-dir"},
		"log and data belong together and are in one directory",
		"--data-dir on the faster disk"},
	{[]string{"unsafe-no-fsync"},
		"what was acknowledged must be on the disk",
		"for tests --data-dir on a tmpfs"},
	{[]string{"force-new-cluster"},
		"there is one member and nobody to leave behind",
		"nothing: leave it out; a snapshot is restored as docs/running.md says"},
	{[]string{"discovery", "discovery-"},
		"there is one member and nobody to look for",
		"nothing: leave them out"},
	{[]string{"grpc-keepalive-interval", "grpc-keepalive-timeout"},
		"a client that is gone would be noticed at another time than asked for",
		"nothing: leave them out; the server pings after 2 hours of silence and waits 20 seconds, as etcd does by default"},
	{[]string{"memory-mlock"},
		"the memory would not be locked",
		"MemorySwapMax=0 in the systemd unit, or no swap"},
	{[]string{"enable-distributed-tracing", "distributed-tracing-"},
		"there are no traces",
		"--metrics extensive for the time that each method takes"},
}

// refused returns the entry for a setting's name, nil if it has none.
func refused(name string) *refusedSetting {
	for i := range refusedSettings {
		if slices.ContainsFunc(refusedSettings[i].names, func(n string) bool {
			return n == name || strings.HasSuffix(n, "-") && strings.HasPrefix(name, n)
		}) {
			return &refusedSettings[i]
		}
	}
	return nil
}

// refusal is the error for such a setting; nil if name is none.
func refusal(name string) error {
	r := refused(name)
	if r == nil {
		return nil
	}
	return fmt.Errorf("--%s of etcd is refused: %s; instead: %s", name, r.why, r.instead)
}

// refusedFlag is the error for an unknown flag of a command line; nil if it is not one of
// etcd's, or the command does not take etcd's.
func refusedFlag(fs *pflag.FlagSet, name string) error {
	if fs.Lookup(toleratedFlags[0]) == nil {
		return nil
	}
	return refusal(name)
}

// refusedEnv refuses variables that name such settings.
func (l *layers) refusedEnv() error {
	if l.ignored == nil {
		return nil
	}
	var errs []error
	for _, name := range sortedKeys(l.env) {
		if err := refusal(flagOf(name, envPrefix)); err != nil {
			errs = append(errs, fmt.Errorf("%w (from the environment variable %s)", err, name))
		}
	}
	return errors.Join(errs...)
}
