package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// etcdEnvPrefix is what the names of etcd's environment variables begin with. They are not
// read: a machine can have them for an etcd that runs beside.
const etcdEnvPrefix = "ETCD_"

// etcdEnv sorts the variables of etcd that are set: those that Tarn has under its
// own name, with that name behind an equals sign, and the others.
func etcdEnv(environ []string, flags *pflag.FlagSet) (known, others []string) {
	set := map[string]bool{}
	for _, e := range environ {
		if name, v, _ := strings.Cut(e, "="); strings.HasPrefix(name, etcdEnvPrefix) && v != "" {
			set[name] = true
		}
	}
	for _, name := range sortedKeys(set) {
		flag := flagOf(name, etcdEnvPrefix)
		if f := flags.Lookup(flag); f != nil && !f.Hidden {
			known = append(known, name+" → "+envName(flag))
		} else {
			others = append(others, name)
		}
	}
	return known, others
}

// warnEtcdEnv tells of variables that an etcd would read.
func (s *serving) warnEtcdEnv(known, others []string) {
	if len(known) > 0 {
		s.log.Warn("environment variables of etcd are not read: give these settings under Tarn's names", "variables", known)
	}
	if len(others) > 0 {
		s.log.Warn("environment variables of etcd are not read, and Tarn has no setting for these", "variables", others)
	}
}

// flagOf is the flag that an environment variable stands for.
func flagOf(env, prefix string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(env, prefix), "_", "-"))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
