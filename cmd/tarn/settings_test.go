package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// resolveServe reads the settings of tarn serve as the command does. A file is
// written and named with --config-file if its text is not empty.
func resolveServe(t *testing.T, args, environ []string, file string) (serveOptions, *layers, error) {
	t.Helper()
	if file != "" {
		args = append(args, "--config-file="+writeFile(t, "tarn.yaml", file))
	}
	o := defaultServeOptions()
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.register(fs)
	o.toleratedSettings.addExperimental(fs, args)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	l, err := o.resolve(fs, environ)
	return o, l, err
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSettingsPrecedence(t *testing.T) {
	const file = "name: file\nquota-backend-bytes: 3GiB\ncheckpoint-age: 7m\nenable-pprof: true\n"
	env := []string{"TARN_NAME=env", "TARN_QUOTA_BACKEND_BYTES=2147483649", "PATH=/bin", "TARN_DATA_DIR="}
	o, l, err := resolveServe(t, []string{"--name=flag"}, env, file)
	if err != nil {
		t.Fatal(err)
	}
	if o.name != "flag" || o.quota != 2147483649 || o.checkpointAge != 7*time.Minute || !o.enablePprof {
		t.Errorf("resolved to name %q, quota %d, age %v, pprof %v", o.name, o.quota, o.checkpointAge, o.enablePprof)
	}
	if o.dataDir != defaultDataDir {
		t.Errorf("an empty variable must count as not set; data-dir is %q", o.dataDir)
	}
	for flag, want := range map[string]string{
		"name":                "command line",
		"quota-backend-bytes": "environment variable TARN_QUOTA_BACKEND_BYTES",
		"checkpoint-age":      "line 3",
		"data-dir":            "default",
	} {
		if from := string(l.from.of(flag)); !strings.Contains(from, want) {
			t.Errorf("%s comes from %q, want %q", flag, from, want)
		}
	}
}

func TestSettingsFromVariableNamedFile(t *testing.T) {
	path := writeFile(t, "x.yaml", "log-level: debug\n")
	o, _, err := resolveServe(t, nil, []string{"TARN_CONFIG_FILE=" + path}, "")
	if err != nil || o.logLevel != slog.LevelDebug {
		t.Fatalf("level %v, error %v", o.logLevel, err)
	}
}

func TestConfigFileLists(t *testing.T) {
	o, _, err := resolveServe(t, nil, nil, `
# comment
listen-client-urls:
  - http://127.0.0.1:2379
  - unix:///run/tarn/tarn.sock
listen-metrics-urls: http://127.0.0.1:2381, http://[::1]:2381
cipher-suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]
`)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(append(urlTexts(o.listenClient), urlTexts(o.listenMetrics)...), " ")
	want := "http://127.0.0.1:2379 unix:///run/tarn/tarn.sock http://127.0.0.1:2381 http://[::1]:2381"
	if got != want || len(o.tls.cipherSuites) != 1 {
		t.Errorf("got %s and suites %v", got, o.tls.cipherSuites)
	}
}

func TestConfigFileEmpty(t *testing.T) {
	for _, text := range []string{"# nothing\n", "---\n", "\n"} {
		if _, _, err := resolveServe(t, nil, nil, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Every text must name what is wrong, where it came from, and what to do.
func TestSettingsErrors(t *testing.T) {
	tests := []struct {
		name string
		env  []string
		file string
		want []string
	}{
		{"environment", []string{"TARN_LOG_LEVEL=loud"}, "", []string{
			`--log-level can not be "loud"`, "environment variable TARN_LOG_LEVEL", "debug, info, warn, error"}},
		{"file", nil, "name: a\nmax-txn-ops: many\n", []string{
			`--max-txn-ops can not be "many"`, "tarn.yaml, line 2", "a whole number of at least 1"}},
		{"overridden in the file", []string{"TARN_MAX_TXN_OPS=5"}, "max-txn-ops: many\n", []string{
			`--max-txn-ops can not be "many"`, "line 1"}},
		{"all are told", []string{"TARN_LOG_LEVEL=x", "TARN_LOG_FORMAT=y"}, "", []string{"--log-level", "--log-format"}},
		{"unknown key", nil, "datadir: /x\n", []string{"line 1", `no setting "datadir"`, `did you mean "data-dir"?`}},
		{"unknown key, nothing near", nil, "colour-of-the-lake: blue\n", []string{`no setting "colour-of-the-lake"`}},
		{"twice", nil, "name: a\nname: b\n", []string{"line 2", `"name" is given twice, first in line 1`}},
		{"list", nil, "name: [a, b]\n", []string{`"name" takes one value, not a list`}},
		{"no value", nil, "name:\n", []string{`"name" needs a plain value`}},
		{"mapping", nil, "name: {a: b}\n", []string{`"name" needs a plain value; leave`}},
		{"mapping for a list", nil, "listen-client-urls: {a: b}\n", []string{`"listen-client-urls" needs a plain value or a list of them`}},
		{"refused", nil, "wal-dir: /x\n", []string{"line 1", "--wal-dir of etcd is refused", "instead: --data-dir"}},
		{"refused variable", []string{"TARN_AUTO_TLS=true"}, "", []string{"--auto-tls of etcd is refused", "environment variable TARN_AUTO_TLS"}},
		{"list of lists", nil, "listen-client-urls: [[x]]\n", []string{"item 1 of the list is not a plain value"}},
		{"not a mapping", nil, "- a\n", []string{"it must hold lines such as"}},
		{"not YAML", nil, "a: [\n", []string{"is not YAML"}},
		{"empty in the file", nil, "store-id: \"\"\n", []string{`--store-id can not be ""`, "line 1", "it is empty"}},
		{"empty list", nil, "cors: []\n", []string{`--cors can not be ""`, "line 1"}},
		{"empty and overridden", []string{"TARN_DATASET=tank/tarn"}, "dataset: \"\"\n", []string{`--dataset can not be ""`, "line 1"}},
		{"blank variable", []string{"TARN_STORE_ID= "}, "", []string{"--store-id", "TARN_STORE_ID", "it is empty"}},
		{"two documents", nil, "name: a\n---\nname: b\n", []string{"tarn.yaml, line 2", "a second document begins"}},
		{"two documents, the second empty", nil, "name: a\n---\n", []string{"a second document begins"}},
		{"damage behind the first document", nil, "name: a\n---\n[\n", []string{"is not YAML"}},
		{"file in a file", nil, "config-file: other.yaml\n", []string{`no setting "config-file"`}},
		{"no file", []string{"TARN_CONFIG_FILE=/does/not/exist.yaml"}, "", []string{
			"--config-file", "TARN_CONFIG_FILE", "/does/not/exist.yaml", "no such file"}},
		{"URL", []string{"TARN_LISTEN_CLIENT_URLS=127.0.0.1:2379"}, "", []string{
			"--listen-client-urls", "TARN_LISTEN_CLIENT_URLS", "valid: URLs such as http://127.0.0.1:2379"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := resolveServe(t, nil, tt.env, tt.file)
			if err == nil {
				t.Fatal("no error")
			}
			if code := exitCode(err); code != exitUsage {
				t.Errorf("exit code %d", code)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestUnknownVariables(t *testing.T) {
	root := newRootCommand(process{})
	l := newLayers(root.Flags(), nil, []string{"TARN_DATADIR=/x", "TARN_NAME=n", "TARN_ENDPOINT=e", "HOME=/"})
	if got := strings.Join(l.unknownEnv(root), " "); got != "TARN_DATADIR" {
		t.Errorf("unknown: %s", got)
	}
}

func TestToleratedSettings(t *testing.T) {
	args := []string{
		"--initial-cluster=a=http://x:2380", "--listen-peer-urls", "http://127.0.0.1:2380",
		"--peer-client-cert-auth", "--snapshot-count=10000", "--experimental-initial-corrupt-check=true",
		"--experimental-compact-hash-check-enabled", "--name=n", "--compaction-batch-limit=10", "--max-learners", "1",
	}
	o, _, err := resolveServe(t, args, []string{"TARN_HEARTBEAT_INTERVAL=100"},
		"experimental-new-thing: 3\nlog-outputs: [stderr]\ninitial-cluster-token: t\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "compaction-batch-limit experimental-compact-hash-check-enabled experimental-initial-corrupt-check experimental-new-thing " +
		"heartbeat-interval initial-cluster initial-cluster-token listen-peer-urls log-outputs max-learners " +
		"peer-client-cert-auth snapshot-count"
	if got := strings.Join(o.toleratedSettings.names(), " "); got != want {
		t.Errorf("ignored:\n got %s\nwant %s", got, want)
	}
	if o.name != "n" {
		t.Errorf("name %q", o.name)
	}
}

// A value that is only checked must not change the setting.
func TestCheckLeavesValues(t *testing.T) {
	o := defaultServeOptions()
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.register(fs)
	l := newLayers(fs, o.toleratedSettings, nil)
	fs.VisitAll(func(f *pflag.Flag) {
		before := f.Value.String()
		if f.Hidden {
			return
		}
		for _, v := range []string{"true", "1000000000", "1h", "debug", "json", "extensive", "revision", "TLS1.3", "http://[::1]:1"} {
			l.check(f, v, fromDefault)
		}
		if f.Value.String() != before {
			t.Errorf("--%s: %q became %q", f.Name, before, f.Value.String())
		}
	})
}
