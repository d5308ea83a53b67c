package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestEtcdVariables(t *testing.T) {
	o := defaultServeOptions()
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.register(fs)
	known, others := etcdEnv([]string{
		"ETCD_TRUSTED_CA_FILE=/ca.crt", "ETCD_CERT_FILE=/a.crt", "ETCD_HEARTBEAT_INTERVAL=100", "ETCD_AUTO_TLS=true",
		"ETCD_NAME=", "ETCDCTL_API=3", "TARN_NAME=n",
	}, fs)
	if want := []string{"ETCD_CERT_FILE → TARN_CERT_FILE", "ETCD_TRUSTED_CA_FILE → TARN_TRUSTED_CA_FILE"}; !slices.Equal(known, want) {
		t.Errorf("known: %v", known)
	}
	if want := []string{"ETCD_AUTO_TLS", "ETCD_HEARTBEAT_INTERVAL"}; !slices.Equal(others, want) {
		t.Errorf("others: %v", others)
	}
	// The whole command, ended by an address that nobody can have, says so before.
	_, _, errs := tarn(t, []string{"ETCD_CERT_FILE=/a.crt", "ETCD_AUTO_TLS=true"}, "serve",
		"--data-dir="+t.TempDir(), "--listen-client-urls=http://192.0.2.1:1")
	for _, want := range []string{"ETCD_CERT_FILE → TARN_CERT_FILE", "ETCD_AUTO_TLS", "level=WARN", "no interface of this machine has that address"} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in %s", want, errs)
		}
	}
}
