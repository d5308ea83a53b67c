package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/store/etcdapi"
	"github.com/tarn-kv/tarn/zfs/eviction"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

// The files of a k3s as its installer leaves them.
const (
	testK3sUnit = `[Unit]
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
EnvironmentFile=-/etc/default/%N
EnvironmentFile=-/etc/systemd/system/k3s.service.env
KillMode=process
Delegate=yes
TimeoutStartSec=0
Restart=always
RestartSec=5s
ExecStart=/usr/local/bin/k3s \
    server \
`
	k3sUnitPath   = "etc/systemd/system/k3s.service"
	k3sEnvPath    = "etc/systemd/system/k3s.service.env"
	k3sConfigPath = "etc/rancher/k3s/config.yaml"
	tarnFilePath  = "etc/rancher/k3s/config.yaml.d/50-tarn.yaml"
	tarnUnitPath  = "etc/systemd/system/k3s.service.d/10-tarn.conf"
	k3sDBPath     = "var/lib/rancher/k3s/server/db/"
)

// writeTree writes files below root; one whose name ends in a slash is a directory.
func writeTree(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// testMachine is a machine with these files, and k3s if version is not "". Nothing else can be run.
func testMachine(t *testing.T, root, version string, files map[string]string) machine {
	t.Helper()
	writeTree(t, root, files)
	m := machine{Machine: nodeconf.MachineAt(root), now: time.Now}
	m.Run = func(_ context.Context, name string, args ...string) (string, error) {
		if filepath.Base(name) == "k3s" && version != "" && strings.Join(args, " ") == "--version" {
			return "k3s version " + version + " (0123abcd)\ngo version go1.25.5\n", nil
		}
		return "", exec.ErrNotFound
	}
	return m
}

// setupTest is a machine with k3s and a running server.
type setupTest struct {
	root   string
	opts   k3sSetupOptions
	server *running
}

func newSetupTest(t *testing.T, version string, files map[string]string) *setupTest {
	t.Helper()
	s := &setupTest{root: t.TempDir(), server: start(t, testOptions(t), nil), opts: defaultK3sSetupOptions()}
	s.opts.root, s.opts.machine = s.root, testMachine(t, s.root, version, files)
	s.opts.server.endpoint = mustURLs(t, s.server.url)[0]
	s.opts.timeout = time.Minute
	return s
}

// run runs the command and wants an exit code.
func (s *setupTest) run(t *testing.T, want int) string {
	t.Helper()
	var out bytes.Buffer
	err := runK3sSetup(t.Context(), s.opts, &out)
	if exitCode(err) != want {
		t.Fatalf("exit code %d (%v), want %d\n%s", exitCode(err), err, want, &out)
	}
	if err != nil {
		out.WriteString(err.Error())
	}
	return out.String()
}

func (s *setupTest) read(name string) string {
	text, err := os.ReadFile(filepath.Join(s.root, name))
	if errors.Is(err, os.ErrNotExist) {
		return ""
	} else if err != nil {
		return err.Error()
	}
	return string(text)
}

// config is how k3s is set up now, by its own rules of reading.
func (s *setupTest) config(t *testing.T) *nodeconf.K3s {
	t.Helper()
	k, notes, ok := nodeconf.ReadK3s(nodeconf.MachineAt(s.root), false)
	if !ok || len(notes) > 0 {
		t.Errorf("k3s is there: %v, %+v", ok, notes)
	}
	return k
}

// golden compares with a file of testdata, in which PORT stands for the server's port.
func golden(t *testing.T, name, got, port string) {
	t.Helper()
	_, body, _ := strings.Cut(got, "\n") // the checksum depends on the port
	if port != "" {
		body = strings.ReplaceAll(body, port, "PORT")
	}
	path := filepath.Join("testdata", name)
	if os.Getenv("TARN_WRITE_GOLDEN") != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != body {
		t.Errorf("%s (written anew with TARN_WRITE_GOLDEN=1): %v\ngot:\n%s\nwant:\n%s", path, err, body, want)
	}
}

// Each version gets the endpoint that it can use, and k3s reads from the files what is meant.
func TestK3sSetupByVersion(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		socket  bool // is used
	}{
		"v1.31-http":      {"v1.31.4+k3s1", false},
		"v1.35.2-http":    {"v1.35.2+k3s1", false},
		"v1.35.6-socket":  {"v1.35.6+k3s1", true},
		"v1.36.2-socket":  {"v1.36.2+k3s1", true},
		"unknown-version": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetupTest(t, c.version, map[string]string{
				k3sUnitPath: testK3sUnit, k3sConfigPath: "write-kubeconfig-mode: \"0640\"\nkube-scheduler-arg:\n  - v=2\n",
				"run/tarn/": "",
			})
			// The socket of the machine is served at the same path in its root, and answers as the server does.
			socket := filepath.Join(s.root, "run/tarn/tarn.sock")
			serveSocket(t, socket, mustURLs(t, s.server.url)[0].Addr)
			s.opts.socket = socket
			s.opts.write = true
			out := s.run(t, exitOK)
			if !strings.Contains(out, "# written; next: systemctl daemon-reload && systemctl restart k3s") {
				t.Error(out)
			}
			host := mustURLs(t, s.server.url)[0].Addr
			_, port, _ := net.SplitHostPort(host)
			golden(t, "k3s/"+name+".yaml", strings.ReplaceAll(s.read(tarnFilePath), socket, installedSocket), port)
			golden(t, "k3s/10-tarn.conf", s.read(tarnUnitPath), "")
			want := s.server.url
			if c.socket {
				want = "unix://" + socket
			}
			k := s.config(t)
			if g, _ := k.Value("datastore-endpoint"); g.Value != want || g.File != "/"+tarnFilePath {
				t.Errorf("k3s reads the endpoint %+v, want %s", g, want)
			}
			for _, component := range k3sComponents {
				if !electsNobody(k.Values(component + "-arg")) {
					t.Errorf("%s: %+v", component, k.Values(component+"-arg"))
				}
			}
			if args := k.Values("kube-scheduler-arg"); len(args) != 2 || args[0].Value != "v=2" {
				t.Errorf("the list is not added to: %+v", args)
			}
			unit, _, _ := nodeconf.ReadUnit(nodeconf.MachineAt(s.root), "k3s.service")
			f := &findings{area: "k3s"}
			judgeK3sOrder(f, k3sFacts{config: k})
			if all := f.all(); len(all) != 1 || all[0].Weight != weightOK || len(unit.Values("Service", "ExecStart")) != 1 {
				t.Errorf("%+v", all)
			}
			// The second time nothing is to do.
			if out := s.run(t, exitOK); !strings.Contains(out, "# nothing to do") {
				t.Error(out)
			}
		})
	}
}

// serveSocket passes what comes at a socket on to an address.
func serveSocket(t *testing.T, path, addr string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", addr)
			if err != nil {
				from.Close()
				return
			}
			go func() { defer to.Close(); _, _ = io.Copy(to, from) }()
			go func() { defer from.Close(); _, _ = io.Copy(from, to) }()
		}
	}()
}

// Files are written as a whole or not at all, are not written without being asked, and go away again.
func TestK3sSetupWriteAndUndo(t *testing.T) {
	s := newSetupTest(t, "v1.36.2+k3s1", map[string]string{k3sUnitPath: testK3sUnit})
	keys, revision := keyCount(t, s.server.client(t))
	s.opts.dryRun, s.opts.write = true, true
	out := s.run(t, exitOK)
	if s.read(tarnFilePath) != "" || s.read(tarnUnitPath) != "" || !strings.Contains(out, "+ datastore-endpoint: \""+s.server.url) {
		t.Errorf("a dry run has written, or shows too little:\n%s", out)
	}
	if k, r := keyCount(t, s.server.client(t)); k != keys || r != revision {
		t.Errorf("a dry run has written to the server: %d keys at %d", k, r)
	}
	s.opts.dryRun = false
	s.run(t, exitOK)
	for _, name := range []string{tarnFilePath, tarnUnitPath} {
		info, err := os.Stat(filepath.Join(s.root, name))
		if err != nil || info.Mode().Perm() != setupModeOf(name) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		left, err := filepath.Glob(filepath.Join(s.root, filepath.Dir(name), ".*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
	// Other settings change the files that are as they were made.
	s.opts.elect, s.opts.slowLease = electionsOn, true
	out = s.run(t, exitOK)
	if !strings.Contains(out, "- kube-scheduler-arg+:") || strings.Contains(s.read(tarnFilePath), "leader-elect=") || !strings.Contains(s.read(tarnUnitPath), "CATTLE_ELECTION_RETRY_PERIOD=30s") {
		t.Error(out)
	}
	s.opts.undo = true
	if out = s.run(t, exitOK); s.read(tarnFilePath) != "" || s.read(tarnUnitPath) != "" || !strings.Contains(out, "# removed; next: systemctl daemon-reload") {
		t.Error(out)
	}
	if out = s.run(t, exitOK); !strings.Contains(out, "# nothing to do") {
		t.Error(out)
	}
}

func TestK3sSetupLeavesFilesOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(string) string
		said   string
	}{
		"changed by hand": {func(text string) string { return text + "disable: [traefik]\n" }, "was changed by hand"},
		"not ours":        {func(string) string { return "datastore-endpoint: \"http://127.0.0.1:1\"\n" }, "was not made by tarn k3s setup"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetupTest(t, "v1.36.2+k3s1", map[string]string{k3sUnitPath: testK3sUnit})
			s.opts.write = true
			s.run(t, exitOK)
			mine := c.change(s.read(tarnFilePath))
			writeTree(t, s.root, map[string]string{tarnFilePath: mine})
			s.opts.elect = electionsOn
			unit := s.read(tarnUnitPath)
			for _, undo := range []bool{false, true} {
				s.opts.undo = undo
				out := s.run(t, exitRefused)
				if s.read(tarnFilePath) != mine || s.read(tarnUnitPath) != unit || !strings.Contains(out, c.said) || !strings.Contains(out, "--force") {
					t.Errorf("undo %v: %s", undo, out)
				}
			}
			s.opts.undo, s.opts.force = false, true
			s.run(t, exitOK)
			if text := s.read(tarnFilePath); text == mine || markedState(text) != fileChanged {
				t.Errorf("not replaced: %s", text)
			}
		})
	}
}

// What would win over the files, or lose data, is found; problems keep the files from being written.
func TestK3sSetupFinds(t *testing.T) {
	endpoint := func(url string) string { return "datastore-endpoint: " + url + "\n" }
	for name, c := range map[string]struct {
		files  map[string]string
		what   string
		weight weight
		want   string
	}{
		"embedded etcd":       {map[string]string{k3sDBPath + "etcd/member/wal/": ""}, "data of k3s", weightProblem, "k3s uses it whatever the endpoint says"},
		"empty etcd dir":      {map[string]string{k3sDBPath + "etcd/": ""}, "override", weightOK, ""},
		"etcd elsewhere":      {map[string]string{k3sConfigPath: "data-dir: /srv/k3s\n", "srv/k3s/server/db/etcd/member/wal/": ""}, "data of k3s", weightProblem, "/srv/k3s/server/db/etcd"},
		"sqlite":              {map[string]string{k3sDBPath + "state.db": "SQLite"}, "data of k3s", weightWarning, "k3s ignores it"},
		"cluster-init":        {map[string]string{k3sConfigPath: "cluster-init: true\n"}, "cluster-init", weightWarning, "no effect"},
		"another datastore":   {map[string]string{k3sConfigPath: endpoint("mysql://k3s:secret@tcp(db:3306)/k3s")}, "datastore", weightProblem, "mysql://k3s:…@tcp(db:3306)/k3s"},
		"a later file":        {map[string]string{"etc/rancher/k3s/config.yaml.d/90-x.yaml": endpoint("http://127.0.0.1:1")}, "override", weightProblem, "90-x.yaml has the datastore"},
		"command line":        {map[string]string{k3sUnitPath: testK3sUnit + "    --datastore-endpoint=http://127.0.0.1:1\n"}, "override", weightProblem, "command line"},
		"environment":         {map[string]string{k3sEnvPath: "K3S_DATASTORE_ENDPOINT=http://127.0.0.1:1\n"}, "override", weightOK, ""},
		"environment differs": {map[string]string{k3sEnvPath: "K3S_DATASTORE_ENDPOINT=http://127.0.0.1:1\n"}, "datastore", weightProblem, "http://127.0.0.1:1 now"},
		"lists replaced":      {map[string]string{"etc/rancher/k3s/config.yaml.d/90-x.yaml": "kube-scheduler-arg: [v=2]\n"}, "elections", weightWarning, "kube-scheduler-arg"},
		"agent":               {map[string]string{k3sUnitPath: strings.Replace(testK3sUnit, "server", "agent", 1), k3sEnvPath: "K3S_URL=https://10.0.0.1:6443\n"}, "role", weightProblem, "agent"},
		"joining":             {map[string]string{k3sConfigPath: "server: https://10.0.0.1:6443\n"}, "role", weightProblem, "join https://10.0.0.1:6443"},
		"not YAML":            {map[string]string{k3sConfigPath: "a: [\n"}, "/" + k3sConfigPath, weightProblem, ""},
		"wrong name":          {map[string]string{"etc/rancher/k3s/config.yaml.d/x.conf": "a: b\n"}, "/etc/rancher/k3s/config.yaml.d/x.conf", weightWarning, ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{k3sUnitPath: testK3sUnit}
			for file, text := range c.files {
				files[file] = text
			}
			s := newSetupTest(t, "v1.36.2+k3s1", files)
			s.opts.write, s.opts.output = true, outputJSON
			var out bytes.Buffer
			err := runK3sSetup(t.Context(), s.opts, &out)
			var r k3sSetupReport
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			found := false
			for _, f := range r.Findings {
				if f.What == c.what {
					found = found || f.Weight == c.weight && strings.Contains(f.Found, c.want)
				}
				if strings.Contains(f.Found, "secret") {
					t.Errorf("a password is shown: %s", f.Found)
				}
			}
			if !found {
				t.Errorf("no such finding in %s", &out)
			}
			problems := countWeight(r.Findings, weightProblem) > 0
			if problems != (exitCode(err) == exitRefused) || problems != (s.read(tarnFilePath) == "") || problems == r.Written {
				t.Errorf("problems: %v, %v, written %v", problems, err, r.Written)
			}
		})
	}
}

// On ZFS the kubelet's file is a part of the setup; what is in its way keeps nothing else from being written.
func TestK3sSetupKubelet(t *testing.T) {
	kubeletFile := strings.TrimPrefix(k3sConfDir, "/") + kubeletDropInName
	for name, c := range map[string]struct {
		facts *eviction.Facts
		files map[string]string
		skip  bool
		want  weight // of the finding; "" for none
		wrote bool
	}{
		"on ZFS":      {zfsFacts(0, 200*gib), nil, false, weightOK, true},
		"left out":    {zfsFacts(0, 200*gib), nil, true, "", false},
		"not on ZFS":  {plainFacts(), nil, false, "", false},
		"not seen":    {nil, nil, false, weightWarning, false},
		"edited":      {zfsFacts(0, 200*gib), map[string]string{kubeletFile: marked("a: b\n") + "c: d\n"}, false, weightWarning, false},
		"not for k3s": {zfsFacts(0, 200*gib), map[string]string{k3sConfigPath: "kubelet-arg: [eviction-hard=nodefs.available<5%]\n"}, false, weightWarning, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetupTest(t, "v1.36.2+k3s1", map[string]string{k3sUnitPath: testK3sUnit})
			writeTree(t, s.root, c.files)
			s.opts.kubelet.gather = func(context.Context, eviction.Options) (*eviction.Facts, error) {
				if c.facts == nil {
					return nil, errors.New("the pool is suspended")
				}
				return c.facts, nil
			}
			s.opts.skipKubelet, s.opts.write, s.opts.output = c.skip, true, outputJSON
			out, before := s.run(t, exitOK), c.files[kubeletFile]
			var r k3sSetupReport
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatal(err)
			}
			var got weight
			for _, f := range r.Findings {
				if f.What == "kubelet" {
					got = f.Weight
				}
			}
			text := s.read(kubeletFile)
			if got != c.want || (text != before) != c.wrote || s.read(tarnFilePath) == "" {
				t.Errorf("finding %q, %v, written:\n%s", got, r.Findings, text)
			}
			if !c.wrote {
				return
			}
			if info, err := os.Stat(filepath.Join(s.root, kubeletFile)); err != nil || info.Mode().Perm() != kubeletFileMode || !strings.Contains(text, "nodefs.available: ") {
				t.Errorf("%v, %v\n%s", info, err, text)
			}
			s.opts.output, s.opts.undo = outputText, true
			if out := s.run(t, exitOK); s.read(kubeletFile) == "" || !strings.Contains(out, "tarn kubelet config --undo") {
				t.Error(out)
			}
		})
	}
}

func TestK3sSetupEndpoints(t *testing.T) {
	facts := func(v string) k3sFacts {
		m := testMachine(t, t.TempDir(), v, map[string]string{k3sUnitPath: testK3sUnit})
		return readK3sFacts(t.Context(), m, false)
	}
	for _, c := range []struct {
		version string
		takes   bool
	}{
		{"v1.30.1+k3s1", false}, {"v1.34.8+k3s1", false}, {"v1.34.9+k3s1", true}, {"v1.35.4+k3s1", false},
		{"v1.35.5+k3s1", true}, {"v1.36.0+k3s1", true}, {"v1.37.0-rc1+k3s1", true}, {"", false},
	} {
		if f := facts(c.version); f.takesSocket() != c.takes {
			t.Errorf("%q: %v", c.version, f.takesSocket())
		}
	}
	// An endpoint that other machines can reach can have several servers.
	o := defaultK3sSetupOptions()
	o.server.caFile, o.server.certFile, o.server.keyFile = "/etc/tarn/ca.crt", "/etc/tarn/k3s.crt", "/etc/tarn/k3s.key"
	u := etcdapi.ListenURL{Scheme: "https", Addr: "10.0.0.5:2379"}
	golden(t, "k3s/remote-tls.yaml", marked(o.k3sConfig(u, o.electionsOff(u))), "")
	if o.elect = electionsOff; !o.electionsOff(u) {
		t.Error("elections stay on")
	}
	s := newSetupTest(t, "v1.33.1+k3s1", nil)
	s.opts.endpointGiven, s.opts.server.endpoint = true, etcdapi.ListenURL{Scheme: "unix", Addr: "/run/x.sock"}
	s.opts.write = true
	if out := s.run(t, exitRefused); !strings.Contains(out, "not known to take unix://") || s.read(tarnFilePath) != "" {
		t.Error(out)
	}
}

func TestK3sSetupUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--leader-election=perhaps"}, "auto, on, off"},
		{[]string{"--k3s-version=new"}, "--k3s-version can not be"},
		{[]string{"--undo", "--endpoint=http://127.0.0.1:1"}, "--undo takes no --endpoint"},
		{[]string{"x"}, "0 expected"},
	} {
		if code, _, errs := tarn(t, nil, append([]string{"k3s", "setup"}, c.args...)...); code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%v: %d, %s", c.args, code, errs)
		}
	}
}

func TestLineDiff(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"", "", ""},
		{"", "a\n", "+ a\n"},
		{"a\n", "", "- a\n"},
		{"a\nb\nc\n", "a\nx\nc\nd\n", "  a\n- b\n+ x\n  c\n+ d\n"},
		{"a\n\nb\n", "\nb\na\n", "- a\n  \n  b\n+ a\n"},
	} {
		if got := lineDiff(c.before, c.after); got != c.want {
			t.Errorf("%q to %q:\n%s", c.before, c.after, got)
		}
	}
}
