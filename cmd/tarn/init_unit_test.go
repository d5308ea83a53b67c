package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInitService(t *testing.T) {
	dir := t.TempDir()
	f := unitFiles{installed: filepath.Join(dir, "tarn.service"), dropIn: filepath.Join(dir, "etc", "d", "tarn-init.conf"), running: filepath.Join(dir, "run")}
	opts := initOptions{configFile: installedConfigFile, user: installedUser}
	none := func(when string, opts initOptions, mountpoint string) {
		t.Helper()
		if steps, err := f.serviceSteps(opts, mountpoint); len(steps) > 0 || err != nil {
			t.Errorf("%s: %d steps, %v", when, len(steps), err)
		}
	}
	none("not installed", opts, "/srv/tarn")
	if got := f.next(opts); !strings.Contains(got, "tarn serve --config-file "+installedConfigFile) {
		t.Errorf("not installed, next is %q", got)
	}
	if err := os.WriteFile(f.installed, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	none("its own directory", opts, installedDataDir)
	none("another configuration file", initOptions{configFile: "/srv/tarn.yaml"}, "/srv/tarn")
	if got := f.next(opts); !strings.Contains(got, "tarn.socket") {
		t.Errorf("installed, next is %q", got)
	}
	for _, mountpoint := range []string{"/srv/tarn", "/srv/other"} { // it is changed afterwards
		steps, err := f.serviceSteps(opts, mountpoint)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			if err := s.run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(f.dropIn)
		if err != nil || string(text) != "[Unit]\nRequiresMountsFor="+mountpoint+"\n[Service]\nReadWritePaths=-"+mountpoint+"\n" {
			t.Errorf("%q, %v", text, err)
		}
		none("the second time", opts, mountpoint)
	}
	for _, odd := range []string{"/srv/my tarn", "/srv/%n"} {
		if _, err := f.serviceSteps(opts, odd); exitCode(err) != exitRefused {
			t.Errorf("%s: %v", odd, err)
		}
	}
}
