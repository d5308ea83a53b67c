package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/zfs/eviction"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

const tarnDropIn = k3sConfDir + "90-tarn-zfs.conf"

func TestKubeletUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"check", "--k3s", "--kubelet"}, "choose one"},
		{[]string{"check", "--root-dir=var"}, "absolute"},
		{[]string{"check", "--kubelet-version=new"}, "v1.36.2+k3s1"},
		{[]string{"check", "--node=a"}, "--kubeconfig"},
		{[]string{"check", "x"}, "0 expected"},
		{[]string{"config", "--undo", "--log-filter"}, "leave out"},
		{[]string{"config", "--print", "--write"}, "leave out"},
		{[]string{"konfig"}, "config"},
	} {
		if code, _, errs := tarn(t, nil, append([]string{"kubelet"}, c.args...)...); code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("kubelet %q: exit code %d: %s", c.args, code, errs)
		}
	}
	for name := range map[string]bool{"check": true, "config": true} {
		if code, out, _ := tarn(t, nil, "kubelet", name, "--help"); code != exitOK || !strings.Contains(out, "Exit codes:") {
			t.Errorf("kubelet %s --help: exit code %d", name, code)
		}
	}
}

// What tarn kubelet check says of each kind of machine and each trap.
func TestKubeletCheckGolden(t *testing.T) {
	noRights := func(t *testing.T, r *kubeletRig) {
		if os.Geteuid() == 0 {
			t.Skip("root may read everything")
		}
		if err := os.Chmod(filepath.Join(r.root, k3sConfDir), 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(filepath.Join(r.root, k3sConfDir), 0o755) })
	}
	for name, c := range map[string]struct {
		files   []map[string]string
		facts   *eviction.Facts
		version string
		prepare func(*testing.T, *kubeletRig)
		code    int
	}{
		"capacity-bug":   {files: []map[string]string{k3sMachine}, facts: zfsFacts(900*gib, 40*gib), code: exitProblems},
		"protected":      {files: []map[string]string{k3sMachine, protectedFiles}, facts: zfsFacts(0, 80*gib), code: exitOK},
		"does-not-start": {files: []map[string]string{k3sMachine}, facts: zfsFacts(0, 80*gib), version: "v1.36.0+k3s1", code: exitProblems},
		"older":          {files: []map[string]string{k3sMachine}, facts: zfsFacts(0, 80*gib), version: "v1.31.9+k3s1", code: exitWarnings},
		"kubeadm-ext4":   {files: []map[string]string{kubeadmMachine}, facts: plainFacts(), version: "v1.36.2", code: exitOK},
		"k3s-ext4":       {files: []map[string]string{k3sMachine}, facts: plainFacts(), code: exitWarnings},
		"wrong-flags": {files: []map[string]string{k3sMachine, protectedFiles, {"/etc/rancher/k3s/config.yaml": "kubelet-arg: [image-gc-high-threshold=200, bogus-flag=1]\n"}},
			facts: zfsFacts(0, 80*gib), code: exitProblems},
		"nothing":    {files: []map[string]string{{"/etc/hosts": ""}}, code: exitNotAllSeen},
		"suspended":  {files: []map[string]string{k3sMachine}, code: exitNotAllSeen},
		"no-version": {files: []map[string]string{k3sMachine, protectedFiles}, facts: zfsFacts(0, 80*gib), version: "-", code: exitNotAllSeen},
		"no-rights":  {files: []map[string]string{k3sMachine}, facts: zfsFacts(0, 80*gib), prepare: noRights, code: exitNotAllSeen},
		"flag-wins":  {files: []map[string]string{k3sMachine, protectedFiles, {"/etc/rancher/k3s/config.yaml": "kubelet-arg: [eviction-hard=nodefs.available<1%]\n"}}, facts: zfsFacts(0, 80*gib), code: exitProblems},
		"wrong-files": {files: []map[string]string{k3sMachine, {
			k3sConfDir + "80-a.yaml": kubeletHeader, k3sConfDir + "81-b.conf": kubeletHeader + "evictionHardd:\n  nodefs.available: 2Gi\n",
			k3sConfDir + "10-cli-config.conf": kubeletHeader, "/etc/rancher/k3s/config.yaml.d/10.conf": "a: b\n"}},
			facts: zfsFacts(0, 80*gib), code: exitWarnings},
		"unprivileged-lxc": {files: []map[string]string{k3sMachine, protectedFiles}, code: exitProblems, facts: without(zfsFacts(0, 80*gib), func(f *eviction.Facts) {
			f.Host.Container, f.Host.Unprivileged = "lxc", true
			for _, fs := range []*eviction.FS{&f.NodeFS, &f.ImageFS} {
				fs.Dataset, fs.ZFSError = nil, "Permission denied the ZFS utilities must be run as root."
			}
		})},
		"late-mount": {files: []map[string]string{k3sMachine, protectedFiles}, code: exitProblems,
			prepare: func(_ *testing.T, r *kubeletRig) { r.started = "1700000000" },
			facts: without(zfsFacts(0, 80*gib), func(f *eviction.Facts) {
				f.NodeFS.MountedAt, f.ImageFS.MountedAt = time.Unix(1600000000, 0), time.Unix(1700000060, 0)
			})},
		"no-mount-order": {files: []map[string]string{{"/etc/systemd/system/k3s.service": "[Service]\nExecStart=/usr/local/bin/k3s server\n"}, protectedFiles}, code: exitOK, facts: zfsFacts(0, 80*gib)},
		"inodes": {files: []map[string]string{k3sMachine, protectedFiles, {k3sConfDir + "60-inodes.conf": kubeletHeader + "evictionHard:\n  nodefs.inodesFree: 5%\n  imagefs.inodesFree: \"1000\"\n"}},
			code: exitWarnings, facts: zfsFacts(0, 80*gib)},
		"snapshots": {files: []map[string]string{k3sMachine, protectedFiles}, code: exitWarnings, facts: without(zfsFacts(0, 80*gib), func(f *eviction.Facts) {
			f.ImageFS.Dataset.Snapshots, f.ImageFS.Dataset.AutoSnapshot = 48, "true"
			f.ImageFS.Dataset.Used += 30 * gib
			f.ImageFS.Dataset.UsedBySnapshots = 30 * gib
		})},
		"no-program": {files: []map[string]string{k3sMachine, protectedFiles}, facts: without(zfsFacts(0, 80*gib), func(f *eviction.Facts) { f.Host.ZFSProgram = "" }), code: exitProblems},
	} {
		t.Run(name, func(t *testing.T) {
			r := newKubeletRig(t, c.files...)
			r.facts = c.facts
			switch c.version {
			case "":
			case "-":
				r.version = ""
			default:
				r.version = c.version
			}
			if c.prepare != nil {
				c.prepare(t, r)
			}
			code, page := r.check(t, nil)
			if code != c.code {
				t.Errorf("exit code %d, not %d", code, c.code)
			}
			goldenPage(t, "kubelet/check-"+name, page)
		})
	}
}

func without(f *eviction.Facts, change func(*eviction.Facts)) *eviction.Facts {
	change(f)
	return f
}

// protectedFiles are what a good configuration looks like, by hand.
var protectedFiles = map[string]string{
	k3sConfDir + "50-mine.conf": kubeletHeader + "evictionHard:\n  memory.available: 100Mi\n  nodefs.available: 2Gi\n  nodefs.inodesFree: 0%\n  imagefs.available: 4Gi\n  imagefs.inodesFree: 0%\n" +
		"evictionMinimumReclaim:\n  nodefs.available: 500Mi\n  imagefs.available: 1Gi\n",
}

// A path of the wrong kind is refused as such, and not looked into.
func TestKubeletPathsOfTheWrongKind(t *testing.T) {
	r := newKubeletRig(t, kubeadmMachine, map[string]string{"/etc/passwd": "root:x:0:0\n"})
	r.facts = plainFacts()
	for name, change := range map[string]func(*kubeletOptions){
		"--config-dir": func(o *kubeletOptions) { o.configDir = "/etc/passwd" },
		"--root-dir":   func(o *kubeletOptions) { o.rootDir = "/etc/passwd" },
		"--image-dir":  func(o *kubeletOptions) { o.imageDir = "/etc/passwd" },
		"--config":     func(o *kubeletOptions) { o.configFile = "/etc" },
	} {
		o := r.options()
		change(&o)
		var out strings.Builder
		if err := runKubeletCheck(t.Context(), o, &out); exitCode(err) != exitUsage || !strings.Contains(err.Error(), name+" can not be") || !strings.Contains(err.Error(), "directory") {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
		c := kubeletConfigOptions{kubeletOptions: o, root: r.root}
		if err := runKubeletConfig(t.Context(), c, &out); exitCode(err) != exitUsage {
			t.Errorf("config %s: %v", name, err)
		}
	}
}

func TestKubeletFlags(t *testing.T) {
	args := func(names ...string) (list []nodeconf.Arg) {
		for _, n := range names {
			list = append(list, nodeconf.Arg{Name: n})
		}
		return list
	}
	if found := unknownFlags(args("eviction_hard", "v", "node-ip", "config-dir")); len(found) != 0 {
		t.Errorf("known ones: %+v", found)
	}
	if found := unknownFlags(args("eviction-hart")); len(found) != 1 || !strings.Contains(found[0].Fix, "eviction-hard") {
		t.Errorf("a misspelled one: %+v", found)
	}
}

func TestKubeletCheckJSON(t *testing.T) {
	r := newKubeletRig(t, k3sMachine)
	r.facts = zfsFacts(900*gib, 40*gib)
	code, page := r.check(t, func(o *kubeletOptions) { o.output = outputJSON })
	var report kubeletCheckReport
	if err := json.Unmarshal([]byte(page), &report); err != nil {
		t.Fatal(err)
	}
	if code != exitProblems || report.Version.Text != "v1.36.2+k3s1" || report.Critical == 0 || report.Layout != eviction.LayoutK3s || report.ConfigDir != strings.TrimSuffix(k3sConfDir, "/") || report.Findings[0].Severity != eviction.Critical {
		t.Errorf("exit code %d, %+v", code, report)
	}
}

// What tarn kubelet config would do on each kind of machine.
func TestKubeletConfigGolden(t *testing.T) {
	extra := map[string]string{"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--v=2\n"}
	for name, c := range map[string]struct {
		files   []map[string]string
		facts   *eviction.Facts
		version string
		systemd string
		filter  bool
		force   bool
		code    int
	}{
		"k3s":                    {files: []map[string]string{k3sMachine}, facts: zfsFacts(0, 80*gib)},
		"k3s-capacity":           {files: []map[string]string{k3sMachine}, facts: zfsFacts(900*gib, 80*gib)},
		"k3s-older":              {files: []map[string]string{k3sMachine}, facts: zfsFacts(0, 80*gib), version: "v1.31.9+k3s1"},
		"k3s-filter":             {files: []map[string]string{k3sMachine}, facts: zfsFacts(0, 80*gib), filter: true},
		"k3s-filter-old-systemd": {files: []map[string]string{k3sMachine}, facts: zfsFacts(0, 80*gib), filter: true, systemd: "252"},
		"k3s-flag":               {files: []map[string]string{k3sMachine, {"/etc/rancher/k3s/config.yaml": "kubelet-arg: [eviction-hard=nodefs.available<1%]\n"}}, facts: zfsFacts(0, 80*gib)},
		"k3s-no-version":         {files: []map[string]string{{"/etc/systemd/system/k3s.service": "[Service]\nExecStart=/usr/local/bin/k3s server\n"}}, facts: zfsFacts(0, 80*gib), version: "-", code: exitRefused},
		"kubeadm":                {files: []map[string]string{kubeadmMachine}, facts: zfsFacts(0, 80*gib), version: "v1.37.2"},
		"kubeadm-by-hand":        {files: []map[string]string{kubeadmMachine, extra}, facts: zfsFacts(0, 80*gib), version: "v1.35.4"},
		"kubeadm-old":            {files: []map[string]string{kubeadmMachine}, facts: zfsFacts(0, 80*gib), version: "v1.29.4"},
		"no-room":                {files: []map[string]string{k3sMachine}, facts: zfsFacts(0, 3*gib), code: exitRefused},
		"no-zfs":                 {files: []map[string]string{kubeadmMachine}, facts: plainFacts(), version: "v1.36.2"},
		"no-zfs-memory":          {files: []map[string]string{k3sMachine}, facts: plainFacts()},
		"no-zfs-older":           {files: []map[string]string{k3sMachine}, facts: plainFacts(), version: "v1.31.9+k3s1"},
		"no-zfs-force":           {files: []map[string]string{k3sMachine}, facts: plainFacts(), force: true},
		"nothing":                {files: []map[string]string{{"/etc/hosts": ""}}, code: exitRefused},
		"suspended":              {files: []map[string]string{k3sMachine}, code: exitRefused},
	} {
		t.Run(name, func(t *testing.T) {
			r := newKubeletRig(t, c.files...)
			r.facts = c.facts
			if c.version != "" {
				r.version = strings.TrimPrefix(c.version, "-")
			}
			if c.systemd != "" {
				r.systemd = c.systemd
			}
			code, page := r.config(t, func(o *kubeletConfigOptions) { o.logFilter, o.force = c.filter, c.force })
			if code != c.code {
				t.Errorf("exit code %d, not %d", code, c.code)
			}
			goldenPage(t, "kubelet/config-"+name, page)
		})
	}
}

func TestKubeletConfigPrint(t *testing.T) {
	r := newKubeletRig(t)
	r.facts = zfsFacts(0, 80*gib)
	code, page := r.config(t, func(o *kubeletConfigOptions) { o.print, o.rootDir = true, "/data/kubelet" })
	if code != exitOK || !strings.HasPrefix(page, kubeletHeader+"evictionHard:") || strings.Contains(page, "\n+ ") {
		t.Errorf("exit code %d:\n%s", code, page)
	}
	if code, page := newKubeletRig(t).config(t, func(o *kubeletConfigOptions) { o.print = true }); code != exitRefused || !strings.Contains(page, "--root-dir") {
		t.Errorf("nothing known: exit code %d:\n%s", code, page)
	}
}

func writeIt(o *kubeletConfigOptions) { o.write = true }

func TestKubeletConfigWrite(t *testing.T) {
	r := newKubeletRig(t, k3sMachine)
	r.facts = zfsFacts(0, 80*gib)
	if code, page := r.config(t, func(o *kubeletConfigOptions) { o.write, o.dryRun, o.logFilter = true, true, true }); code != exitOK || !strings.Contains(page, "--dry-run") {
		t.Errorf("dry run: exit code %d:\n%s", code, page)
	}
	if _, err := os.Stat(filepath.Join(r.root, tarnDropIn)); err == nil {
		t.Fatal("a dry run writes")
	}
	code, page := r.config(t, func(o *kubeletConfigOptions) { o.write, o.logFilter = true, true })
	if code != exitOK || !strings.Contains(page, "# written; next: systemctl daemon-reload && systemctl restart k3s") {
		t.Fatalf("exit code %d:\n%s", code, page)
	}
	for name, mode := range map[string]fs.FileMode{tarnDropIn: 0o600, "/etc/systemd/system/k3s.service.d/90-tarn-log-filter.conf": 0o644} {
		if info, err := os.Stat(filepath.Join(r.root, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(r.root, k3sConfDir)); err != nil || len(entries) != 2 {
		t.Errorf("something is left beside the file: %v, %v", entries, err)
	}
	before := r.read(t, tarnDropIn)
	// A second time nothing is to do, also when the sizes in the comments have moved a little.
	r.facts.NodeFS.Dataset.Ancestors[0].Available += 10 << 20
	if code, page := r.config(t, writeIt); code != exitOK || !strings.HasSuffix(page, "# nothing to do\n") || r.read(t, tarnDropIn) != before {
		t.Errorf("again: exit code %d:\n%s", code, page)
	}
	if code, page := r.check(t, nil); code != exitOK {
		t.Errorf("check: exit code %d:\n%s", code, page)
	}
	// A larger pool makes larger thresholds.
	r.facts = zfsFacts(0, 300*gib)
	if code, page := r.config(t, writeIt); code != exitOK || !strings.Contains(page, "to be changed") || r.read(t, tarnDropIn) == before {
		t.Errorf("a larger pool: exit code %d:\n%s", code, page)
	}
	undo := func(o *kubeletConfigOptions) { o.write, o.undo = true, true }
	if code, page := r.config(t, func(o *kubeletConfigOptions) { o.undo = true }); code != exitOK || !strings.Contains(page, "--write (as root) does it") {
		t.Errorf("undo without --write: exit code %d:\n%s", code, page)
	}
	if code, page := r.config(t, undo); code != exitOK || !strings.Contains(page, "# removed") {
		t.Errorf("undo: exit code %d:\n%s", code, page)
	}
	for _, name := range []string{tarnDropIn, "/etc/systemd/system/k3s.service.d/90-tarn-log-filter.conf"} {
		if _, err := os.Stat(filepath.Join(r.root, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	if code, page := r.config(t, undo); code != exitOK || !strings.Contains(page, "# nothing to do") {
		t.Errorf("undo again: exit code %d:\n%s", code, page)
	}
}

// What check, and doctor with it, advise is written where nothing is on ZFS as well, and nothing more.
func TestKubeletConfigWithoutZFS(t *testing.T) {
	r := newKubeletRig(t, k3sMachine)
	r.facts = plainFacts()
	if code, page := r.check(t, nil); code != exitWarnings || !strings.Contains(page, "tarn kubelet config does") {
		t.Errorf("check before: exit code %d:\n%s", code, page)
	}
	if code, page := r.config(t, writeIt); code != exitOK || !strings.Contains(page, "# written") {
		t.Fatalf("exit code %d:\n%s", code, page)
	}
	if text := r.read(t, tarnDropIn); !strings.Contains(text, "memory.available") || strings.Contains(text, "fs.") {
		t.Errorf("it writes\n%s", text)
	}
	if code, page := r.check(t, nil); code != exitOK {
		t.Errorf("check after: exit code %d:\n%s", code, page)
	}
	if code, page := r.config(t, writeIt); code != exitOK || !strings.HasSuffix(page, "# nothing to do\n") {
		t.Errorf("again: exit code %d:\n%s", code, page)
	}
	if code, page := r.config(t, func(o *kubeletConfigOptions) { o.write, o.force = true, true }); code != exitOK || strings.Contains(r.read(t, tarnDropIn), "ZFS") ||
		!strings.Contains(r.read(t, tarnDropIn), `nodefs.inodesFree: "5%"`) {
		t.Errorf("--force: exit code %d:\n%s", code, page)
	}
}

func TestKubeletConfigEditedByHand(t *testing.T) {
	r := newKubeletRig(t, k3sMachine)
	r.facts = zfsFacts(0, 80*gib)
	if code, page := r.config(t, writeIt); code != exitOK {
		t.Fatalf("exit code %d:\n%s", code, page)
	}
	edited := r.read(t, tarnDropIn) + "maxPods: 50\n"
	r.write(t, tarnDropIn, edited)
	for name, change := range map[string]func(*kubeletConfigOptions){
		"write": writeIt, "undo": func(o *kubeletConfigOptions) { o.write, o.undo = true, true },
	} {
		if code, page := r.config(t, change); code != exitRefused || !strings.Contains(page, "changed by hand") || r.read(t, tarnDropIn) != edited {
			t.Errorf("%s: exit code %d:\n%s", name, code, page)
		}
	}
	if code, page := r.config(t, func(o *kubeletConfigOptions) { o.write, o.force = true, true }); code != exitOK || strings.Contains(r.read(t, tarnDropIn), "maxPods") {
		t.Errorf("--force: exit code %d:\n%s", code, page)
	}
	// A file of somebody else under our name is not ours to remove.
	r.write(t, tarnDropIn, kubeletHeader)
	if code, _ := r.config(t, func(o *kubeletConfigOptions) { o.write, o.undo, o.force = true, true, true }); code != exitOK || r.read(t, tarnDropIn) != kubeletHeader {
		t.Errorf("undo of another's file: exit code %d", code)
	}
	if code, page := r.config(t, writeIt); code != exitRefused {
		t.Errorf("another's file: exit code %d:\n%s", code, page)
	}
}

func TestKubeletConfigKubeadm(t *testing.T) {
	r := newKubeletRig(t, kubeadmMachine)
	r.facts, r.version = zfsFacts(0, 80*gib), "v1.37.2"
	if code, page := r.config(t, writeIt); code != exitOK {
		t.Fatalf("exit code %d:\n%s", code, page)
	}
	code, page := r.check(t, nil)
	if code != exitOK || !strings.Contains(page, "/etc/kubernetes/kubelet.conf.d/90-tarn-zfs.conf") {
		t.Errorf("check: exit code %d:\n%s", code, page)
	}
	if code, page := r.config(t, writeIt); code != exitOK || !strings.HasSuffix(page, "# nothing to do\n") {
		t.Errorf("again: exit code %d:\n%s", code, page)
	}
	if code, page := r.config(t, func(o *kubeletConfigOptions) { o.write, o.undo = true, true }); code != exitOK || !strings.Contains(page, "# removed") {
		t.Errorf("undo: exit code %d:\n%s", code, page)
	}
	// The unit must never name a directory that is not there.
	if strings.Index(page, "kubelet.service.d") > strings.Index(page, "kubelet.conf.d/90") && strings.Contains(page, "removed") {
		t.Errorf("the unit's file must go first:\n%s", page)
	}
}

func TestKubeletConfigOlderK3s(t *testing.T) {
	r := newKubeletRig(t, k3sMachine)
	r.facts, r.version = zfsFacts(0, 80*gib), "v1.31.9+k3s1"
	if code, page := r.config(t, writeIt); code != exitOK {
		t.Fatalf("exit code %d:\n%s", code, page)
	}
	if code, page := r.check(t, nil); code != exitOK || !strings.Contains(page, "kubelet-arg in /etc/rancher/k3s/config.yaml.d/60-tarn-kubelet.yaml") {
		t.Errorf("check: exit code %d:\n%s", code, page)
	}
	// After an upgrade the same command moves on to the drop-in.
	r.version = "v1.36.2+k3s1"
	if code, page := r.config(t, writeIt); code != exitOK || !strings.Contains(page, tarnDropIn) {
		t.Errorf("after the upgrade: exit code %d:\n%s", code, page)
	}
	if _, err := os.Stat(filepath.Join(r.root, "/etc/rancher/k3s/config.yaml.d/60-tarn-kubelet.yaml")); err == nil {
		t.Error("the arguments of the older k3s are left, and win over the drop-in")
	}
}
