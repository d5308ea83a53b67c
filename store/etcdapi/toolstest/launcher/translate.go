package main

import (
	"fmt"
	"strings"
)

// option is one flag of a command line; hasValue is false for a switch that
// stands alone.
type option struct {
	name, value string
	hasValue    bool
}

func (o option) String() string {
	if !o.hasValue {
		return "--" + o.name
	}
	return "--" + o.name + "=" + o.value
}

// switches are etcd's flags that can stand without a value.
var switches = map[string]bool{
	"auto-tls": true, "client-cert-auth": true, "enable-distributed-tracing": true, "enable-grpc-gateway": true,
	"enable-log-rotation": true, "enable-pprof": true, "force-new-cluster": true, "initial-election-tick-advance": true,
	"memory-mlock": true, "peer-auto-tls": true, "peer-client-cert-auth": true,
	"peer-skip-client-san-verification": true, "pre-vote": true, "socket-reuse-address": true,
	"socket-reuse-port": true, "strict-reconfig-check": true, "unsafe-no-fsync": true,
}

// parse splits a command line of etcd. An error is returned when an argument
// is not a flag.
func parse(args []string) ([]option, error) {
	var options []option
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, ok := strings.CutPrefix(arg, "-")
		if !ok {
			return nil, fmt.Errorf("%q is not a flag: etcd takes nothing else", arg)
		}
		o := option{}
		o.name, o.value, o.hasValue = strings.Cut(strings.TrimPrefix(name, "-"), "=")
		if !o.hasValue && !switches[o.name] && len(args) > 0 {
			o.value, o.hasValue = args[0], true
			args = args[1:]
		}
		options = append(options, o)
	}
	return options, nil
}

// translate makes tarn's flags of etcd's. Most have the same name and meaning,
// or are refused by tarn itself; the rest is done here.
func translate(args []string) ([]string, error) {
	options, err := parse(args)
	if err != nil {
		return nil, err
	}
	given := map[string]option{}
	for _, o := range options {
		given[o.name] = o
	}
	// An authority that is named but not asked for checks nothing in etcd. In
	// tarn it makes certificates of clients necessary.
	certsWanted := enabled(given["client-cert-auth"])
	out := []string{"--log-format=json"} // as etcd's
	if !given["bcrypt-cost"].hasValue {
		out = append(out, "--bcrypt-cost=4") // the least effort: passwords of tests are not worth more
	}
	for _, o := range options {
		switch {
		case o.name == "initial-cluster" && strings.Contains(o.value, ","):
			return nil, fmt.Errorf("--initial-cluster=%s: tarn has no second member", o.value)
		case o.name == "auto-tls":
			if enabled(o) {
				flags, err := selfSigned(given["data-dir"].value)
				if err != nil {
					return nil, err
				}
				out = append(out, flags...)
			}
		case o.name == "trusted-ca-file" && !certsWanted:
		default:
			out = append(out, o.String())
		}
	}
	return out, nil
}

// enabled reports whether a switch was given and not turned off.
func enabled(o option) bool {
	return o.name != "" && (!o.hasValue || o.value == "true")
}
