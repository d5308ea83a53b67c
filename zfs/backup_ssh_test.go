package zfs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeSSH puts a program called ssh on the path that runs the command here. The file
// cut in the returned directory makes it lose the connection after so many bytes of
// the next stream; the file fail makes it fail with that text.
func fakeSSH(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	script := `#!/bin/sh
dir=` + dir + `
while [ $# -gt 0 ]; do case $1 in -o|-p|-l) shift 2;; --) shift; break;; *) exit 99;; esac; done
shift
if [ -f $dir/fail ]; then cat $dir/fail >&2; exit 255; fi
as=
if [ -f $dir/user ]; then as="setpriv --reuid=$(cat $dir/user) --clear-groups"; fi
case "$*" in
*"zfs receive -s"*)
	if [ -f $dir/cut ]; then
		head -c "$(cat $dir/cut)" | $as sh -c "$*"
		rm $dir/cut
		echo "client_loop: send disconnect: Broken pipe" >&2
		exit 255
	fi;;
esac
exec $as sh -c "$*"
`
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return dir
}

// TestHostQuotes lets a shell take apart what is run on another host.
func TestHostQuotes(t *testing.T) {
	fakeSSH(t)
	for _, arg := range []string{"", "plain", "two words", "it's", `"double"`, "$HOME", "`id`", `back\slash`, "a;b", "*", "tarn-kv:label=a|b&c", "~", "#x", "\n"} {
		lines, err := host{name: "nas"}.output(t.Context(), "printf", "%s|", arg, "end")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range lines {
			got = append(got, strings.Join(f, "\t"))
		}
		if text := strings.Join(got, "\n"); text != arg+"|end|" {
			t.Errorf("%q arrives as %q", arg, text)
		}
	}
	if path, err := (host{name: "nas"}).output(t.Context(), "sh", "-c", "echo $PATH"); err != nil || !strings.Contains(path[0][0], ":/usr/sbin") {
		t.Errorf("the path there is %v, %v", path, err)
	}
}

func TestSSHFailures(t *testing.T) {
	dir := fakeSSH(t)
	for text, step := range map[string]string{
		"Host key verification failed.\r\n":                                  "log in once by hand",
		"backup@nas: Permission denied (publickey,password).\r\n":            "authorized_keys",
		"ssh: Could not resolve hostname nas: Name or service not known\r\n": "the right name",
		"ssh: connect to host nas port 22: Connection refused\r\n":           "sshd",
		"ssh: connect to host nas port 22: Connection timed out\r\n":         "up",
		"client_loop: send disconnect: Broken pipe\r\n":                      "run it again",
		"something new": "ssh nas zfs version",
		"":              "ssh nas zfs version",
	} {
		put(t, dir, "fail", text)
		_, err := host{name: "nas", user: "backup"}.output(t.Context(), "zfs", "list")
		if !errors.Is(err, ErrSSH) || !strings.Contains(err.Error(), step) || errors.Is(err, ErrPermission) {
			t.Errorf("%q is told as %v", text, err)
		}
	}
	os.Remove(filepath.Join(dir, "fail"))
	if _, err := (host{name: "nas"}).output(t.Context(), "nosuchprogram"); !errors.Is(err, ErrSSH) || !strings.Contains(err.Error(), "install it on nas") {
		t.Errorf("a missing program is told as %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := (host{name: "nas"}).output(t.Context(), "zfs"); !errors.Is(err, exec.ErrNotFound) && !strings.Contains(err.Error(), "openssh-client") {
		t.Errorf("a missing ssh is told as %v", err)
	}
}
