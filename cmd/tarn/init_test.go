package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/zfs"
	"github.com/tarn-kv/tarn/zfs/fakezfs"
)

func TestInitUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{}, "0 given, 1 expected"},
		{[]string{"tank/tarn", "--mountpoint=tarn"}, "absolute"},
		{[]string{"tank/tarn", "--mountpoint=/"}, "other than /"},
		{[]string{"tank/tarn", "--refquota=1MiB"}, "at least 64MiB"},
		{[]string{"tank/tarn", "--user=x", "--backup-user=x"}, "could destroy the backups"},
		{[]string{"tank/tarn", "--backup-user=root"}, "can not be root"},
		{[]string{"tank/t@rn"}, "not a valid name"},
		{[]string{"-tank"}, "-t"},
	} {
		if code, _, errs := tarn(t, nil, append([]string{"init"}, c.args...)...); code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("init %q: exit code %d: %s", c.args, code, errs)
		}
	}
}

func TestInitUnknownUser(t *testing.T) {
	fakezfs.New(t)
	code, _, errs := tarn(t, nil, "init", "tank/tarn", "--user=no-such-user-here", "--backup-user=none")
	if code != exitRefused || !strings.Contains(errs, "useradd --system") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	_, _, errs = tarn(t, nil, "init", "tank/tarn", "--user=no-such-user-here", "--backup-user=none-here-either")
	if lines := strings.Split(strings.TrimSuffix(errs, "\n"), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], "tarn: ") || !strings.HasPrefix(lines[1], "tarn: --backup-user") {
		t.Errorf("two are missing: %s", errs)
	}
	if _, _, errs = tarn(t, nil, "init", "nopool/tarn"); !strings.Contains(errs, "zpool list shows the pools") || !strings.Contains(errs, "zpool import") {
		t.Errorf("no pool: %s", errs)
	}
	// Nobody makes a user for a dataset that can not be made.
	for name, change := range map[string]func(){
		"tank":        func() {},
		"nopool/tarn": func() {},
		"tank/tarn":   func() { t.Setenv("PATH", t.TempDir()) },
	} {
		change()
		code, _, errs := tarn(t, nil, "init", name, "--user=no-such-user-here")
		if code == exitOK || strings.Contains(errs, "useradd") {
			t.Errorf("init %s: exit code %d: %s", name, code, errs)
		}
	}
}

// applyConfig runs the steps for a configuration file.
func applyConfig(t *testing.T, path, mountpoint, dataset string) (shown []string, err error) {
	t.Helper()
	steps, err := configSteps(path, mountpoint, dataset)
	for _, s := range steps {
		shown = append(shown, s.text)
		if err := s.run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return shown, err
}

func TestInitConfig(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"new":         {"", "data-dir: /srv/tarn\ndataset: tank/tarn\n"},
		"comments":    {"# mine\nlog-level: debug # loud\n", "# mine\nlog-level: debug # loud\ndata-dir: /srv/tarn\ndataset: tank/tarn\n"},
		"no line end": {"name: x", "name: x\ndata-dir: /srv/tarn\ndataset: tank/tarn\n"},
		"directory":   {"data-dir: /srv/tarn/data\n", "data-dir: /srv/tarn/data\ndataset: tank/tarn\n"},
		"all there":   {"dataset: tank/tarn\ndata-dir: '/srv/tarn'\n", "dataset: tank/tarn\ndata-dir: '/srv/tarn'\n"},
	} {
		path := filepath.Join(t.TempDir(), "etc", "tarn.yaml")
		if c.before != "" {
			path = writeFile(t, "tarn.yaml", c.before)
		}
		shown, err := applyConfig(t, path, "/srv/tarn", "tank/tarn")
		got, readErr := os.ReadFile(path)
		if err != nil || readErr != nil || string(got) != c.after {
			t.Errorf("%s: %q, %v, %v", name, got, err, readErr)
		}
		if nothing := c.before == c.after; nothing != (len(shown) == 0) {
			t.Errorf("%s: shown: %q", name, shown)
		}
		// The second time nothing is to do.
		if shown, err = applyConfig(t, path, "/srv/tarn", "tank/tarn"); len(shown) > 0 || err != nil {
			t.Errorf("%s, again: %q, %v", name, shown, err)
		}
		if o, _, err := resolveServe(t, []string{"--config-file=" + path}, nil, ""); err != nil || o.dataset != "tank/tarn" || !isBelow("/srv/tarn", o.dataDir) {
			t.Errorf("%s: serve reads %q, %q, %v", name, o.dataDir, o.dataset, err)
		}
		if c.before != "" {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: the file has another mode: %v, %v", name, info.Mode(), err)
			}
		}
	}
}

func TestInitConfigRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"another directory": {"data-dir: /var/lib/other\n", "/var/lib/other"},
		"relative":          {"data-dir: tarn-data\n", "tarn-data"},
		"above":             {"data-dir: /srv\n", "not in /srv/tarn"},
		"another dataset":   {"dataset: tank/other\n", "tank/other"},
		"not a setting":     {"datadir: /x\n", "no setting"},
		"not YAML":          {"{", "not YAML"},
		"one-line mapping":  {"{name: x}\n", "can not be added"},
	} {
		path := writeFile(t, "tarn.yaml", c.text)
		if _, err := applyConfig(t, path, "/srv/tarn", "tank/tarn"); err == nil || exitCode(err) != exitRefused || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != c.text {
			t.Errorf("%s: the file is changed to %q, %v", name, got, err)
		}
	}
}

func TestInitDirs(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"empty", "store", "files"} {
		if err := os.Mkdir(path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"store/tree.db", "files/a", "files/b", "file"} {
		if err := os.WriteFile(path(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var fresh zfs.SetupState
	for name, want := range map[string]string{
		"empty": "", "missing": "", "store": "cp -a", "files": "not empty (a, b)", "file": "is a file",
	} {
		err := checkInitDirs(fresh, "", path(name))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := checkInitDirs(fresh, "", "/proc"); err == nil || !strings.Contains(err.Error(), "mounted at /proc") {
		t.Errorf("a mount point of something else: %v", err)
	}
	// Files in the dataset itself.
	mounted := zfs.SetupState{Exists: true, Mounted: true}
	if err := checkInitDirs(mounted, path("store"), path("store")); err != nil {
		t.Errorf("a dataset with a store: %v", err)
	}
	if err := checkInitDirs(mounted, path("files"), path("files")); err == nil || !strings.Contains(err.Error(), "something else") {
		t.Errorf("a dataset with other files: %v", err)
	}
	mounted.Properties = map[string]zfs.Property{zfs.PropSetup: {Value: "1.0", Source: "local"}}
	if err := checkInitDirs(mounted, path("files"), path("files")); err != nil {
		t.Errorf("a dataset that was set up before: %v", err)
	}
}

func TestInitOwner(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	a, err := lookupAccount("user", me.Username)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	mounted := zfs.SetupState{Exists: true, Mounted: true}
	p := initPlan{mountpoint: dir}
	p.addOwner(a, mounted, false)
	if len(p.steps) != 1 || p.steps[0].text != "chmod 700 "+dir {
		t.Errorf("the first time: %v", p.steps)
	}
	mounted.Properties = map[string]zfs.Property{zfs.PropSetup: {Value: "1.0", Source: "local"}}
	p = initPlan{mountpoint: dir}
	p.addOwner(account{"x", a.uid + 1, a.gid}, mounted, false)
	if len(p.steps) > 0 || len(p.differs) != 2 {
		t.Errorf("what somebody has changed: %v, %v", p.steps, p.differs)
	}
	p = initPlan{mountpoint: dir}
	p.addOwner(account{"x", a.uid + 1, a.gid}, mounted, true)
	if len(p.steps) != 2 {
		t.Errorf("reset: %v", p.steps)
	}
}

// Names tell nothing: whose number is root's or the server's is that user.
func TestInitSeparatesUsers(t *testing.T) {
	server := account{name: "tarn", uid: 990}
	for _, c := range []struct {
		backup account
		want   string
	}{
		{account{name: "tarn-backup", uid: 991}, ""},
		{account{name: "toor", uid: 0}, "toor is root"},
		{account{name: "tarn2", uid: 990}, "are one user"},
	} {
		err := separate(server, c.backup)
		if (err == nil) != (c.want == "") || err != nil && (exitCode(err) != exitUsage || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c.backup, err)
		}
	}
}

// An error says what was done before it.
func TestInitStepFails(t *testing.T) {
	good := initStep{"good", func(context.Context) error { return nil }}
	bad := initStep{"bad", func(context.Context) error { return errors.New("no room") }}
	for _, c := range []struct {
		steps []initStep
		want  string
	}{
		{[]initStep{bad, good}, "no room; nothing was done: run"},
		{[]initStep{good, bad}, `no room; what comes before "bad" is done: run`},
	} {
		if err := runSteps(t.Context(), c.steps, true, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v instead of %s", err, c.want)
		}
	}
}
