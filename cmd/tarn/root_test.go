package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/zfs/fakezfs"
)

// runMain makes the test binary behave as the tarn binary, see TestMain. Under
// the name of zfs it is that.
const runMain = "RUN_TARN_MAIN"

func TestMain(m *testing.M) {
	fakezfs.Main()
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// tarn runs a command line inside this process.
func tarn(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(t.Context(), process{stdout: &out, stderr: &errs, args: args, environ: environ})
	return code, out.String(), errs.String()
}

func TestUsageErrors(t *testing.T) {
	tests := []struct {
		args []string
		want []string
	}{
		{[]string{"sreve"}, []string{`no command "sreve"`, `did you mean "serve"?`}},
		{[]string{"serve", "--data-dri=x"}, []string{"no flag --data-dri", `did you mean "data-dir"?`, "tarn serve --help"}},
		{[]string{"serve", "somewhere"}, []string{"arguments: 1 given, 0 expected", "tarn serve"}},
		{[]string{"serve", "--log-level=loud"}, []string{`--log-level can not be "loud"`, "command line", "valid: debug, info, warn, error"}},
		{[]string{"serve", "--enable-pprof=maybe"}, []string{"true or false"}},
		{[]string{"serve", "--checkpoint-age=5"}, []string{"--checkpoint-age", "a time of at least 1s"}},
		{[]string{"serve", "--name"}, []string{"name"}},
		{[]string{"serve", "--listen-client-urls="}, []string{"--listen-client-urls", "valid: URLs"}},
		{[]string{"serve", "--data-dir="}, []string{"--data-dir", "it is empty", "the path of a directory"}},
		{[]string{"serve", "--store-id="}, []string{"--store-id", "it is empty", "leave the setting out"}},
		{[]string{"serve", "--store-id=00000000000000000000000000000000"}, []string{"--store-id", "the 32 hex digits"}},
		{[]string{"serve", "--store-id=1234"}, []string{"--store-id", "the 32 hex digits"}},
		{[]string{"serve", "--dataset= "}, []string{"--dataset", "it is empty"}},
		{[]string{"serve", "--trusted-ca-file="}, []string{"--trusted-ca-file", "it is empty"}},
		{[]string{"serve", "--cert-file="}, []string{"--cert-file", "it is empty"}},
		{[]string{"serve", "--cors="}, []string{"--cors", "it is empty"}},
		{[]string{"serve", "--cors=,"}, []string{"--cors", "valid: origins"}},
		{[]string{"serve", "--listen-metrics-urls=,"}, []string{"--listen-metrics-urls", "valid: URLs"}},
		{[]string{"serve", "--listen-client-urls=http://127.0.0.1:65536"}, []string{"listen URL", "at most 65535"}},
		{[]string{"serve", "--listen-client-urls=http://*:2379"}, []string{"* is no host", "http://0.0.0.0:2379"}},
		{[]string{"serve", "--advertise-client-urls=10.0.0.5:2379"}, []string{`advertised URL "10.0.0.5:2379"`, "https://10.0.0.5:2379"}},
		{[]string{"serve", "--trusted-ca-file=ca.crt"}, []string{`--trusted-ca-file can not be "ca.crt" (from the command line)`, "it has no effect", "--listen-client-urls"}},
		{[]string{"serve", "--cipher-suites=NONE"}, []string{`--cipher-suites can not be "NONE" (from the command line)`, `cipher suite "NONE" is unknown`, "valid: Go's names"}},
		{[]string{"help", "nope"}, []string{`no command "nope"`, "tarn --help"}},
		{[]string{"help", "sreve"}, []string{`did you mean "serve"?`}},
		{[]string{"help", "serve", "more"}, []string{`tarn serve has no command "more"`}},
		{[]string{"completion", "nope"}, []string{`no command "nope"`, "tarn completion --help"}},
		{[]string{"completion", "bash", "more"}, []string{"arguments: 1 given, 0 expected"}},
		{[]string{"status", "--cacert="}, []string{"--cacert", "it is empty"}},
		{[]string{"serve", "--max-request-bytes=4GiB"}, []string{"--max-request-bytes", "2047MiB"}},
		{[]string{"serve", "--listen-client-urls=https://127.0.0.1:0"}, []string{`--listen-client-urls can not be "https://127.0.0.1:0" (from the command line)`, "--cert-file and --key-file"}},
		{[]string{"serve", "--client-cert-auth"}, []string{"--client-cert-auth", "command line", "it has no effect"}},
		{[]string{"serve", "--listen-metrics-urls=unixs://m.sock", "--cert-file=a"}, []string{`--listen-metrics-urls can not be "unixs://m.sock"`, "--key-file"}},
		{[]string{"serve", "--listen-client-urls=https://127.0.0.1:0", "--client-cert-auth"}, []string{"--client-cert-auth", "it needs --trusted-ca-file"}},
		{[]string{"serve", "--tls-min-version=TLS1.3", "--cipher-suites=TLS_AES_128_GCM_SHA256"}, []string{"--cipher-suites", "--tls-min-version TLS1.3"}},
		{[]string{"serve", "--cors=foo"}, []string{`--cors can not be "foo"`, `"foo" is no origin`, "https://example.org"}},
		{[]string{"serve", "--cors=*,https://example.org/"}, []string{`"https://example.org/" is no origin`}},
		{[]string{"serve", "--max-concurrent-streams=4294967296"}, []string{"--max-concurrent-streams", "from 1 to 4294967295"}},
		{[]string{"serve", "--list-memory-budget=1"}, []string{"--list-memory-budget", "at least 256KiB", "0 to derive"}},
		{[]string{"serve", "--auto-tls"}, []string{"--auto-tls of etcd is refused", "--cert-file and --key-file"}},
		{[]string{"serve", "--wal-dir=/x"}, []string{"--wal-dir of etcd is refused", "--data-dir"}},
		{[]string{"serve", "--discovery-srv=x"}, []string{"--discovery-srv of etcd is refused"}},
		{[]string{"status", "--wal-dir=/x"}, []string{"there is no flag --wal-dir"}},
		{[]string{"serve", "--auto-compaction-mode=revision", "--auto-compaction-retention=5m"},
			[]string{"--auto-compaction-retention", "must be a whole number"}},
		{[]string{"check"}, []string{"tarn check DIR"}},
		{[]string{"status", "--endpoint=127.0.0.1:2379"}, []string{"--endpoint", "valid: one URL"}},
		{[]string{"status", "--endpoint=http://a:1,http://b:1"}, []string{"exactly one URL"}},
		{[]string{"status", "--endpoint=https://a:1", "--cert=x"}, []string{"--cert and --key are needed together"}},
		{[]string{"status", "--endpoint=https://a:1", "--cacert=/does/not/exist"}, []string{"--cacert", "no such file"}},
		{[]string{"version", "--output=xml"}, []string{"--output", "valid: text, json"}},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			code, out, errs := tarn(t, nil, tt.args...)
			if code != exitUsage || out != "" {
				t.Errorf("exit code %d, output %q", code, out)
			}
			for _, want := range tt.want {
				if !strings.Contains(errs, want) {
					t.Errorf("the message lacks %q:\n%s", want, errs)
				}
			}
		})
	}
}

func TestHelpListsExitCodes(t *testing.T) {
	for _, cmd := range newRootCommand(process{}).Commands() {
		code, out, _ := tarn(t, nil, cmd.Name(), "--help")
		if code != exitOK || !strings.Contains(out, "Exit codes: 0 ") {
			t.Errorf("tarn %s --help: exit code %d, and it must list the exit codes:\n%s", cmd.Name(), code, out)
		}
	}
	if code, out, _ := tarn(t, nil); code != exitOK || !strings.Contains(out, "tarn serve") {
		t.Errorf("tarn alone must show the help; exit code %d:\n%s", code, out)
	}
}

func TestHelpHidesTolerated(t *testing.T) {
	_, out, _ := tarn(t, nil, "serve", "--help")
	for _, name := range toleratedFlags {
		if strings.Contains(out, "--"+name+" ") {
			t.Errorf("the help shows --%s, which does nothing", name)
		}
	}
}

func TestExitCode(t *testing.T) {
	base := errors.New("x")
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{base, exitFailed},
		{withExit(exitInUse, base), exitInUse},
		{fmt.Errorf("around: %w", withExit(exitInUse, base)), exitInUse},
		{withExit(exitUsage, withExit(exitInUse, base)), exitInUse},
		{errors.Join(base, withExit(exitStoreFailed, base)), exitStoreFailed},
		{withExit(exitUsage, nil), exitOK},
	} {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("%v: exit code %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestVersion(t *testing.T) {
	code, out, _ := tarn(t, nil, "version", "--output=json")
	var v versionInfo
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitOK || v.Tarn != tarnVersion {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
	v = currentVersion(&debug.BuildInfo{
		Deps:     []*debug.Module{{Path: etcdAPIModule, Version: "v3.7.3"}},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
	})
	var b bytes.Buffer
	if err := printVersion(&b, v, outputText); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{tarnVersion, "3.7.3", "go1.", "abc (with local changes)"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, b.String())
		}
	}
	if v := currentVersion(nil); v.Tarn != tarnVersion || v.Commit != "" {
		t.Errorf("without build information: %+v", v)
	}
}

// The shell offers the words of each flag with a fixed choice.
func TestCompletionOfChoices(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"k3s", "setup", "--leader-election", ""}, "auto\non\noff\n:4\n"},
		{[]string{"status", "-o", "j"}, "text\njson\n:4\n"},
		{[]string{"serve", "--log-level="}, "debug\ninfo\nwarn\nerror\n:4\n"},
	} {
		code, out, errs := tarn(t, nil, append([]string{"__complete"}, c.args...)...)
		if code != exitOK || out != c.want {
			t.Errorf("%q: exit code %d, %q, %s", c.args, code, out, errs)
		}
	}
}
