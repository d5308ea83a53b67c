package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/tarn-kv/tarn/store/etcdapi"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

// link makes a symbolic link below the machine's root, and the directory for it.
func (s *setupTest) link(t *testing.T, to, name string) {
	t.Helper()
	path := filepath.Join(s.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// What a symbolic link leads to is never written or removed, whoever has made it and with --force too.
func TestK3sSetupLeavesWhatLinksLeadTo(t *testing.T) {
	for name, c := range map[string]struct{ file, precious string }{
		"of somebody": {tarnFilePath, "precious\n"},
		"ours":        {tarnFilePath, marked("datastore-endpoint: x\n")},
		"of nothing":  {tarnFilePath, ""},
		"drop-in":     {tarnUnitPath, "precious\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetupTest(t, "v1.36.2+k3s1", map[string]string{k3sUnitPath: testK3sUnit})
			target := filepath.Join(t.TempDir(), "precious")
			if c.precious != "" {
				if err := os.WriteFile(target, []byte(c.precious), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			kept := func() {
				t.Helper()
				if text, err := os.ReadFile(target); string(text) != c.precious || (err != nil) != (c.precious == "") {
					t.Fatalf("what the link leads to is %q, %v", text, err)
				}
			}
			path := filepath.Join(s.root, c.file)
			s.link(t, target, c.file)
			s.opts.write = true
			for _, undo := range []bool{false, true} {
				s.opts.undo = undo
				if out := s.run(t, exitRefused); !strings.Contains(out, target) || !strings.Contains(out, "--force") {
					t.Errorf("undo %v: the link's end is not named: %s", undo, out)
				}
				kept()
			}
			s.opts.undo, s.opts.force = false, true
			s.run(t, exitOK)
			kept()
			if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || markedState(s.read(c.file)) != fileChanged {
				t.Errorf("the link is not replaced: %v, %v", info, err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			s.link(t, target, c.file)
			s.opts.undo = true
			s.run(t, exitOK)
			kept()
			if _, err := os.Lstat(path); !os.IsNotExist(err) {
				t.Errorf("the link is not removed: %v", err)
			}
		})
	}
}

// The same is so for the files of tarn kubelet config.
func TestKubeletFilesBesideLinks(t *testing.T) {
	root, precious := t.TempDir(), filepath.Join(t.TempDir(), "precious")
	writeTree(t, root, map[string]string{"etc/": ""})
	if err := os.WriteFile(precious, []byte("precious\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a: b\n", ""} {
		file := filepath.Join(root, "etc/x.conf")
		_ = os.Remove(file) // of the turn before
		if err := os.Symlink(precious, file); err != nil {
			t.Fatal(err)
		}
		f, err := compareFile(os.DirFS(root), "/etc/x.conf", text)
		if err != nil || f.State != fileForeign || f.Link != precious {
			t.Errorf("%q: %+v", text, f)
		}
		if err := writeSetupFiles(root, []setupFile{f}, kubeletModeOf, true); err != nil {
			t.Fatal(err)
		}
		if kept, err := os.ReadFile(precious); err != nil || string(kept) != "precious\n" {
			t.Errorf("%q: what the link leads to is %q, %v", text, kept, err)
		}
		if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() {
			t.Errorf("%q: the link is still there", text)
		}
	}
}

// sealed is a file system of which a directory may not be looked into.
type sealed struct {
	fs.FS
	dir string
}

func (s sealed) refused(op, name string) error {
	if strings.HasPrefix(name+"/", s.dir+"/") {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
	}
	return nil
}

func (s sealed) Open(name string) (fs.File, error) {
	if err := s.refused("open", name); err != nil {
		return nil, err
	}
	return s.FS.Open(name)
}

func (s sealed) Stat(name string) (fs.FileInfo, error) {
	if err := s.refused("stat", name); err != nil {
		return nil, err
	}
	return fs.Stat(s.FS, name)
}

// What this user may not look at is unknown, and nothing is made up of it.
func TestK3sSetupAsNobody(t *testing.T) {
	s := newSetupTest(t, "v1.36.2+k3s1", map[string]string{k3sUnitPath: testK3sUnit, k3sConfigPath: "a: b\n"})
	s.opts.machine.Root = sealed{s.opts.machine.Root, "etc/rancher"}
	for _, write := range []bool{false, true} {
		s.opts.write, s.opts.output = write, outputJSON
		var out bytes.Buffer
		err := runK3sSetup(t.Context(), s.opts, &out)
		var r k3sSetupReport
		if jsonErr := json.Unmarshal(out.Bytes(), &r); jsonErr != nil {
			t.Fatal(jsonErr)
		}
		if exitCode(err) != exitNotAllSeen || r.Written || s.read(tarnFilePath) != "" {
			t.Errorf("write %v: %v, written %v", write, err, r.Written)
		}
		if r.Files[0].State != fileUnseen || r.Files[1].State != fileNew {
			t.Errorf("%+v", r.Files)
		}
		if countWeight(r.Findings, weightProblem)+countWeight(r.Findings, weightWarning) > 0 {
			t.Errorf("made up: %+v", r.Findings)
		}
	}
	s.opts.output, s.opts.write = outputText, false
	if out := s.run(t, exitNotAllSeen); strings.Contains(out, "not made by") || !strings.Contains(out, "can not be looked at by this user") {
		t.Error(out)
	}
}

// A socket that everybody can read, and not write, lets nobody in.
func TestAccessOfSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for mode, want := range map[fs.FileMode]int{0o660: 0, 0o644: 0, 0o664: 0, 0o662: 1, 0o666: 1} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		f := &findings{area: "k3s"}
		judgeAccess(f, etcdapi.ListenURL{Scheme: "unix", Addr: path})
		if got := countWeight(f.all(), weightWarning); got != want {
			t.Errorf("mode %o: %d warning(s), want %d", mode, got, want)
		}
	}
}

// A named pipe in the place of a file ends nothing but the reading of it.
func TestK3sSetupWithPipe(t *testing.T) {
	for name, file := range map[string]string{"k3s' file": k3sConfigPath, "our file": tarnFilePath, "our drop-in": tarnUnitPath} {
		t.Run(name, func(t *testing.T) {
			s := newSetupTest(t, "v1.36.2+k3s1", map[string]string{k3sUnitPath: testK3sUnit})
			path := filepath.Join(s.root, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(path, 0o644); err != nil {
				t.Fatal(err)
			}
			s.opts.write = true
			if out := s.run(t, exitRefused); !strings.Contains(out, "/"+file) || !strings.Contains(out, "not a regular file") {
				t.Error(out)
			}
		})
	}
}

// k3s can not log in: a server with users is not one for it, whatever --user is given.
func TestK3sSetupWithUsers(t *testing.T) {
	s := newSetupTest(t, "v1.36.2+k3s1", map[string]string{k3sUnitPath: testK3sUnit})
	auth := etcdserverpb.NewAuthClient(s.server.client(t))
	if _, err := auth.UserAdd(t.Context(), &etcdserverpb.AuthUserAddRequest{Name: "root", Password: "pw"}); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.RoleAdd(t.Context(), &etcdserverpb.AuthRoleAddRequest{Name: "root"}); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.UserGrantRole(t.Context(), &etcdserverpb.AuthUserGrantRoleRequest{User: "root", Role: "root"}); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.AuthEnable(t.Context(), &etcdserverpb.AuthEnableRequest{}); err != nil {
		t.Fatal(err)
	}
	for _, user := range []userPassword{{}, {"root", "pw"}} {
		s.opts.server.user, s.opts.write = user, true
		out := s.run(t, exitRefused)
		if !strings.Contains(out, "k3s can not log in") || s.read(tarnFilePath) != "" {
			t.Errorf("user %q: %s", user.name, out)
		}
	}
	// The same later.
	o := doctorOf(t, "v1.36.2+k3s1", map[string]string{k3sUnitPath: testK3sUnit, k3sConfigPath: "datastore-endpoint: " + s.server.url + "\n"})
	o.server.endpoint, o.server.user = mustURLs(t, s.server.url)[0], userPassword{"root", "pw"}
	f := &findings{area: "k3s"}
	o.lookAtK3s(t.Context(), f)
	wantFinding(t, f.all(), "k3s", "datastore", weightProblem, "k3s can not log in")
}

// Where only the socket is served, an old k3s is told that it needs TCP, and doctor finds the socket.
func TestOnlyTheSocketIsServed(t *testing.T) {
	s := newSetupTest(t, "v1.31.0+k3s1", map[string]string{k3sUnitPath: testK3sUnit})
	socket := filepath.Join(s.root, "tarn.sock")
	serveSocket(t, socket, s.opts.server.endpoint.Addr)
	s.opts.socket, s.opts.server.endpoint = socket, etcdapi.ListenURL{Scheme: "http", Addr: "127.0.0.1:1"}
	if out := s.run(t, exitOK); !strings.Contains(out, "TCP is off") || !strings.Contains(out, "this k3s needs http://127.0.0.1:1") {
		t.Error(out)
	}
	o := doctorOf(t, "", nil)
	o.server.endpoint, o.socket = s.opts.server.endpoint, socket
	f := &findings{area: "store"}
	o.findServer(t.Context(), f)
	if o.server.endpoint.String() != "unix://"+socket || len(f.all()) != 1 {
		t.Errorf("%s, %+v", o.server.endpoint, f.all())
	}
	o = doctorOf(t, "", map[string]string{k3sConfigPath: "datastore-endpoint: unix://" + socket + "\n"})
	o.server.endpoint, o.socket = s.opts.server.endpoint, filepath.Join(s.root, "none.sock")
	if o.findServer(t.Context(), f); o.server.endpoint.String() != "unix://"+socket {
		t.Errorf("that of k3s is not looked at: %s", o.server.endpoint)
	}
	o.endpointGiven, o.server.endpoint = true, s.opts.server.endpoint
	if o.findServer(t.Context(), f); o.server.endpoint != s.opts.server.endpoint {
		t.Errorf("%s is looked at, and not what was named", o.server.endpoint)
	}
}

// The advice is for the reason why there is no answer.
func TestAdviceOfNoAnswer(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	silent, err := net.Listen("unix", filepath.Join(dir, "silent")) // accepts in its backlog, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for url, want := range map[string]string{
		"unix://" + filepath.Join(dir, "none"):   "systemctl enable --now tarn.socket",
		"unix://" + stale:                        "journalctl -u tarn",
		"unix://" + filepath.Join(dir, "silent"): "journalctl -u tarn",
		"http://127.0.0.1:1":                     "systemctl enable --now tarn.socket",
	} {
		o := defaultDoctorOptions()
		o.server.endpoint, o.socket, o.timeout = mustURLs(t, url)[0], filepath.Join(dir, "none"), time.Second
		f := &findings{area: "store"}
		o.lookAtStore(context.WithoutCancel(t.Context()), f)
		if all := f.all(); len(all) != 1 || all[0].Weight != weightProblem || !strings.Contains(all[0].Do, want) {
			t.Errorf("%s: %+v", url, all)
		}
	}
	refused := &net.OpError{Op: "dial", Err: &os.SyscallError{Syscall: "connect", Err: syscall.EACCES}}
	f := &findings{area: "store"}
	asked{endpoint: etcdapi.ListenURL{Scheme: "unix", Addr: stale}}.noAnswer(f, refused, refused)
	wantFinding(t, f.all(), "store", "answer", weightUnknown, "permission denied")
}

// What the manual and the package have for copying is taken over, and the same settings in other words are left alone.
func TestK3sSetupTakesOverTheManual(t *testing.T) {
	example, err := os.ReadFile("../../packaging/examples/k3s.service.d/10-tarn.conf")
	if err != nil {
		t.Fatal(err)
	}
	byHand := "datastore-endpoint: http://127.0.0.1:2379\n"
	for _, c := range k3sComponents {
		byHand += c + "-arg+:\n- 'leader-elect=false'\n"
	}
	s := newSetupTest(t, "v1.36.2+k3s1", map[string]string{k3sUnitPath: testK3sUnit, tarnUnitPath: string(example), tarnFilePath: byHand})
	for _, doc := range []string{"k3s.md", "kubernetes.md"} {
		text, err := os.ReadFile("../../docs/" + doc)
		_, block, _ := strings.Cut(string(text), "```yaml\n")
		block, _, _ = strings.Cut(block, "```")
		if err != nil || !slices.ContainsFunc(docFiles, func(known string) bool { return sameSetup("x.yaml", block, known) }) {
			t.Errorf("the file in %s is not taken over: %v\n%s", doc, err, block)
		}
	}
	s.opts.undo = true
	if out := s.run(t, exitOK); strings.Count(out, "to be removed") != 2 {
		t.Error(out)
	}
	s.opts.undo, s.opts.write = false, true
	s.run(t, exitOK)
	if !strings.HasPrefix(s.read(tarnUnitPath), setupMark) || !strings.Contains(s.read(tarnFilePath), s.server.url) {
		t.Errorf("not taken over:\n%s\n%s", s.read(tarnUnitPath), s.read(tarnFilePath))
	}
	same := strings.Replace(byHand, "http://127.0.0.1:2379", s.server.url, 1)
	writeTree(t, s.root, map[string]string{tarnFilePath: same})
	if out := s.run(t, exitOK); s.read(tarnFilePath) != same || !strings.Contains(out, "as it should be") {
		t.Error(out)
	}
}

// Who wins over the file is named, and what it does.
func TestElectionsAfter(t *testing.T) {
	const later = "etc/rancher/k3s/config.yaml.d/90-x.yaml"
	for text, want := range map[string]string{
		"kube-scheduler-arg+: [leader-elect=true]\n": "/" + later + ", which comes after /" + tarnFilePath + ", adds leader-elect=true",
		"kube-scheduler-arg: [v=2]\n":                "/" + later + ", which comes after /" + tarnFilePath + ", replaces kube-scheduler-arg",
	} {
		s := newSetupTest(t, "v1.36.2+k3s1", map[string]string{k3sUnitPath: testK3sUnit, later: text})
		if out := s.run(t, exitOK); !strings.Contains(out, want) {
			t.Errorf("%s%s", text, out)
		}
	}
	s := newSetupTest(t, "v1.36.2+k3s1", map[string]string{k3sUnitPath: testK3sUnit, later: "datastore-endpoint:\n"})
	s.opts.write = true
	if out := s.run(t, exitRefused); !strings.Contains(out, "/"+later+" has an empty datastore-endpoint, and wins") {
		t.Error(out)
	}
}

// A server that is not Tarn is said to be none.
func TestProbeOfAnotherServer(t *testing.T) {
	front, o := serveFaulty(t, start(t, testOptions(t), nil), func(*faulty) {})
	for asK3s, want := range map[bool]weight{true: weightWarning, false: weightNote} {
		f := &findings{area: "store"}
		explain := func(err error) error { return o.explain(t.Context(), err) }
		(&datastoreProbe{c: front, explain: explain, wait: time.Minute, of: asked{asK3s: asK3s}}).run(t.Context(), f)
		wantFinding(t, f.all(), "store", "server", want, "is not Tarn")
	}
}

// An endpoint of the environment is for the other commands.
func TestK3sUndoWithEndpointOfTheEnvironment(t *testing.T) {
	code, out, errs := tarn(t, []string{"TARN_ENDPOINT=http://127.0.0.1:1"}, "k3s", "setup", "--undo")
	if code == exitUsage {
		t.Errorf("%d: %s%s", code, out, errs)
	}
}

// What was done before a failure is told, and nothing that was not.
func TestSetupThatBreaksOff(t *testing.T) {
	root := t.TempDir()
	writeTree(t, root, map[string]string{"blocked": "a file in the place of a directory"})
	file := func(path string) setupFile { return setupFile{Path: path, State: fileNew, Content: "x\n"} }
	err := writeSetupFiles(root, []setupFile{file("/blocked/a")}, setupModeOf, false)
	if err == nil || !strings.Contains(err.Error(), "write /blocked/a:") || !strings.Contains(err.Error(), "nothing was written") {
		t.Error(err)
	}
	err = writeSetupFiles(root, []setupFile{file("/b"), file("/blocked/a")}, setupModeOf, false)
	if err == nil || !strings.Contains(err.Error(), "done is /b,") {
		t.Error(err)
	}
}

// With our files and no k3s there is no kubelet of k3s.
func TestDoctorBeforeK3s(t *testing.T) {
	o := doctorOf(t, "", map[string]string{tarnFilePath: "datastore-endpoint: http://127.0.0.1:1\n", tarnUnitPath: "[Unit]\nWants=tarn.service\n",
		strings.TrimPrefix(nodeconf.K3sDataDir, "/") + "/agent/etc/kubelet.conf.d/" + kubeletDropInName: "a: b\n"})
	f := &findings{area: "kubelet"}
	o.lookAtKubelet(t.Context(), f)
	wantFinding(t, f.all(), "kubelet", "kubelet", weightNote, "no kubelet is recognised")
}
