package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Flags that tools written for etcd set and that mean nothing here: there are
// no peers, no elections and no raft log. They are accepted, so that such a
// tool's command line works, and the log says once that they were ignored. So are
// those that only tune etcd's own storage, its checks of itself, or its log.
// Flags that someone relies on, for access control or for the place of data,
// are not among them: those are refused, see refusedSettings.
var toleratedFlags = []string{
	"backend-batch-interval", "backend-batch-limit", "backend-bbolt-freelist-type",
	"bootstrap-defrag-threshold-megabytes",
	"compact-hash-check-time", "compaction-batch-limit", "compaction-sleep-interval", "corrupt-check-time",
	"downgrade-check-time",
	"election-timeout",
	"feature-gates",
	"heartbeat-interval",
	"initial-advertise-peer-urls", "initial-cluster", "initial-cluster-state", "initial-cluster-token",
	"initial-election-tick-advance",
	"listen-peer-urls",
	"logger", "log-outputs", "log-rotation-config-json", "enable-log-rotation",
	"max-learners", "max-snapshots", "max-wals",
	"peer-auto-tls", "peer-cert-allowed-cn", "peer-cert-allowed-hostname", "peer-cert-file", "peer-cipher-suites",
	"peer-client-cert-auth", "peer-client-cert-file", "peer-client-key-file", "peer-crl-file", "peer-key-file",
	"peer-skip-client-san-verification", "peer-tls-max-version", "peer-tls-min-version", "peer-trusted-ca-file",
	"pre-vote",
	"raft-read-timeout", "raft-write-timeout",
	"snapshot-catchup-entries", "snapshot-count",
	"socket-reuse-address", "socket-reuse-port",
	"strict-reconfig-check",
	"v2-deprecation",
	"warning-apply-duration", "warning-unary-request-duration",
}

// toleratedPrefix is what etcd's flags without a promise begin with.
const toleratedPrefix = "experimental-"

// tolerated is the set of ignored settings that were given.
type tolerated map[string]bool

func (t *tolerated) register(fs *pflag.FlagSet) {
	*t = tolerated{}
	for _, name := range toleratedFlags {
		t.add(fs, name)
	}
}

// add defines a hidden flag that takes anything.
func (t *tolerated) add(fs *pflag.FlagSet, name string) {
	f := fs.VarPF(&ignoredValue{name: name, given: *t}, name, "", "accepted for etcd's sake and ignored")
	f.Hidden = true
	if ignoredSwitches[name] {
		f.NoOptDefVal = "true"
	}
}

// ignoredSwitches are the tolerated flags that can stand without a value.
var ignoredSwitches = map[string]bool{
	"enable-log-rotation": true, "initial-election-tick-advance": true,
	"peer-auto-tls": true, "peer-client-cert-auth": true, "peer-skip-client-san-verification": true, "pre-vote": true,
	"socket-reuse-address": true, "socket-reuse-port": true, "strict-reconfig-check": true,
}

// addExperimental defines each --experimental-… flag that the arguments hold.
// Their names change with every release of etcd, so there is no list of them,
// and so a value must be joined with =, or else the flag counts as a switch.
func (t *tolerated) addExperimental(fs *pflag.FlagSet, args []string) {
	for _, arg := range args {
		if arg == "--" {
			return
		}
		name, ok := strings.CutPrefix(arg, "--")
		name, _, _ = strings.Cut(name, "=")
		if ok && strings.HasPrefix(name, toleratedPrefix) && fs.Lookup(name) == nil {
			t.add(fs, name)
			fs.Lookup(name).NoOptDefVal = "true"
		}
	}
}

// names of the ignored settings that were given, sorted.
func (t tolerated) names() []string {
	var names []string
	for name := range t {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ignoredValue remembers that a flag was given, and nothing else.
type ignoredValue struct {
	name  string
	given tolerated
}

func (v *ignoredValue) Set(string) error { v.given[v.name] = true; return nil }
func (v *ignoredValue) String() string   { return "" }
func (v *ignoredValue) Type() string     { return kindIgnored }
