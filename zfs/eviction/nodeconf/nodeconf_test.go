package nodeconf

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// k3sUnitText is k3s' unit as its installer writes it, without what does not matter here.
const k3sUnitText = `[Unit]
After=network-online.target
[Service]
Type=notify
EnvironmentFile=-/etc/default/%N
EnvironmentFile=-/etc/systemd/system/k3s.service.env
ExecStart=/usr/local/bin/k3s \
    server \
`

const kubeadmUnit = "[Service]\nExecStart=/usr/bin/kubelet\n"

const kubeadmDropIn = `[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`

const confDir = "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/"

const k3sDefaultsText = header + "evictionHard:\n  imagefs.available: 5%\n  nodefs.available: 5%\nevictionMinimumReclaim:\n  imagefs.available: 10%\n  nodefs.available: 10%\n"

// machine is a machine with the files given by their absolute paths. A path that ends in / is an empty
// directory; content that begins with -> is a symbolic link.
func machine(files map[string]string) Machine {
	m := fstest.MapFS{}
	for name, text := range files {
		f := &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		if strings.HasSuffix(name, "/") {
			f = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		} else if to, ok := strings.CutPrefix(text, "->"); ok {
			f = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
		}
		m[inside(name)] = f
	}
	return Machine{Root: m}
}

func with(files map[string]string, more ...map[string]string) map[string]string {
	all := maps.Clone(files)
	for _, m := range more {
		maps.Copy(all, m)
	}
	return all
}

// k3sNode has k3s with its own defaults.
func k3sNode(more map[string]string) map[string]string {
	return with(map[string]string{
		"/etc/systemd/system/k3s.service":     k3sUnitText,
		"/etc/systemd/system/k3s.service.env": "",
		confDir + "00-k3s-defaults.conf":      k3sDefaultsText,
	}, more)
}

// kubeadmNode has a kubelet as kubeadm sets it up, with config as its file.
func kubeadmNode(config string, more map[string]string) map[string]string {
	return with(map[string]string{
		"/usr/lib/systemd/system/kubelet.service":                   kubeadmUnit,
		"/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": kubeadmDropIn,
		"/var/lib/kubelet/config.yaml":                              header + config,
		"/var/lib/kubelet/kubeadm-flags.env":                        `KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock --pod-infra-container-image=pause:3.10"`,
	}, more)
}

func version(t *testing.T, text string) eviction.Version {
	t.Helper()
	v, err := eviction.ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// show writes a map of signals on one line, with the origins.
func show(signals map[string]eviction.Setting) string {
	if signals == nil {
		return "none"
	}
	var parts []string
	for _, k := range sortedKeys(signals) {
		parts = append(parts, fmt.Sprintf("%s=%s/%s", k, signals[k].Value, signals[k].Origin))
	}
	return strings.Join(parts, " ")
}

// hasNote tells whether there is a note of that kind about the file.
func hasNote(notes []Note, kind NoteKind, file string) bool {
	return slices.ContainsFunc(notes, func(n Note) bool { return n.Kind == kind && n.File == file })
}

const builtIn = "imagefs.available=15%/default imagefs.inodesFree=5%/default memory.available=100Mi/default nodefs.available=10%/default nodefs.inodesFree=5%/default"

func TestHardThresholds(t *testing.T) {
	const k3sConfig = "/etc/rancher/k3s/config.yaml"
	for name, c := range map[string]struct {
		files   map[string]string
		version string
		layout  string
		want    string
	}{
		"kubeadm, nothing set": {kubeadmNode("cgroupDriver: systemd\n", nil), "", eviction.LayoutKubelet, builtIn},
		"a map in the file replaces the built-in ones": {kubeadmNode("evictionHard:\n  nodefs.available: 2Gi\n", nil), "", eviction.LayoutKubelet,
			"nodefs.available=2Gi/file"},
		"an empty map means no protection": {kubeadmNode("evictionHard: {}\n", nil), "", eviction.LayoutKubelet, ""},
		"null is not set":                  {kubeadmNode("evictionHard:\n", nil), "", eviction.LayoutKubelet, builtIn},
		"mergeDefaultEvictionSettings": {kubeadmNode("mergeDefaultEvictionSettings: true\nevictionHard:\n  nodefs.available: 2Gi\n", nil), "", eviction.LayoutKubelet,
			"imagefs.available=15%/default imagefs.inodesFree=5%/default memory.available=100Mi/default nodefs.available=2Gi/file nodefs.inodesFree=5%/default"},
		"a drop-in merges key by key over the built-in ones": {kubeadmNode("", map[string]string{
			"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--config-dir=/etc/kubelet.d", "/etc/kubelet.d/10-a.conf": header + "evictionHard:\n  nodefs.available: 2Gi\n"}), "", eviction.LayoutKubelet,
			"imagefs.available=15%/default imagefs.inodesFree=5%/default memory.available=100Mi/default nodefs.available=2Gi/drop-in nodefs.inodesFree=5%/default"},
		"null in a drop-in takes a key away": {kubeadmNode("", map[string]string{
			"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--config-dir=/etc/kubelet.d", "/etc/kubelet.d/10-a.conf": header + "evictionHard:\n  nodefs.inodesFree: null\n  imagefs.inodesFree:\n"}), "", eviction.LayoutKubelet,
			"imagefs.available=15%/default memory.available=100Mi/default nodefs.available=10%/default"},
		"null for a whole map leaves nothing": {kubeadmNode("", map[string]string{
			"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--config-dir=/etc/kubelet.d", "/etc/kubelet.d/10-a.conf": header + "evictionHard: null\n"}), "", eviction.LayoutKubelet, "none"},
		"a directory without --config has no built-in ones": {with(kubeadmNode("", nil), map[string]string{
			"/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --config-dir /etc/kubelet.d\n",
			"/etc/kubelet.d/10-a.conf":                                  header + "mergeDefaultEvictionSettings: true\nevictionHard:\n  nodefs.available: 2Gi\n"}), "", eviction.LayoutKubelet,
			"nodefs.available=2Gi/drop-in"},
		"subdirectories at their place in the walk": {with(kubeadmNode("", nil), map[string]string{
			"/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --config-dir=/etc/kubelet.d\n",
			"/etc/kubelet.d/10-a.conf":                                  header + "evictionHard:\n  nodefs.available: 1Gi\n",
			"/etc/kubelet.d/20-sub/99.conf":                             header + "evictionHard:\n  nodefs.available: 2Gi\n  imagefs.available: 2Gi\n",
			"/etc/kubelet.d/30-b.conf":                                  header + "evictionHard:\n  nodefs.available: 3Gi\n",
			"/etc/kubelet.d/99-ignored.yaml":                            header + "evictionHard:\n  nodefs.available: 4Gi\n"}), "", eviction.LayoutKubelet,
			"imagefs.available=2Gi/drop-in nodefs.available=3Gi/drop-in"},
		"a flag replaces the whole map, and flags add up": {kubeadmNode("evictionHard:\n  memory.available: 1Gi\n", map[string]string{
			"/etc/default/kubelet": `KUBELET_EXTRA_ARGS="--eviction_hard=nodefs.available<1Gi --eviction-hard imagefs.available<2Gi,nodefs.inodesFree<5%"`}), "", eviction.LayoutKubelet,
			"imagefs.available=2Gi/flag nodefs.available=1Gi/flag nodefs.inodesFree=5%/flag"},
		"no file, no thresholds": {map[string]string{"/etc/systemd/system/kubelet.service": "[Service]\nExecStart=/usr/bin/kubelet --v=2\n"}, "", eviction.LayoutKubelet, "none"},
		"k3s":                    {k3sNode(nil), "v1.36.2+k3s1", eviction.LayoutK3s, "imagefs.available=5%/default nodefs.available=5%/default"},
		"k3s before its first start": {map[string]string{"/etc/systemd/system/k3s.service": k3sUnitText}, "v1.36.2+k3s1", eviction.LayoutK3s,
			"imagefs.available=5%/default nodefs.available=5%/default"},
		"k3s with a drop-in": {k3sNode(map[string]string{confDir + "90-tarn-zfs.conf": header + "evictionHard:\n  memory.available: 100Mi\n  nodefs.available: 2Gi\n  nodefs.inodesFree: 0%\n"}), "", eviction.LayoutK3s,
			"imagefs.available=5%/default memory.available=100Mi/drop-in nodefs.available=2Gi/drop-in nodefs.inodesFree=0%/drop-in"},
		"k3s before 1.32 uses flags": {k3sNode(map[string]string{confDir + "90-tarn-zfs.conf": header + "evictionHard:\n  nodefs.available: 2Gi\n"}), "v1.31.9+k3s1", eviction.LayoutK3s,
			"imagefs.available=5%/default nodefs.available=5%/default"},
		"k3s before 1.32 with its own flag replaced": {k3sNode(map[string]string{k3sConfig: "kubelet-arg:\n- eviction-hard=nodefs.available<2Gi\n"}), "v1.31.9+k3s1", eviction.LayoutK3s,
			"nodefs.available=2Gi/flag"},
		"k3s before 1.32 with its own flag added to": {k3sNode(map[string]string{k3sConfig: "kubelet-arg: eviction-hard+=memory.available<100Mi\n"}), "v1.31.9+k3s1", eviction.LayoutK3s,
			"imagefs.available=5%/default memory.available=100Mi/flag nodefs.available=5%/default"},
		"a flag in k3s' configuration beats every file": {k3sNode(map[string]string{
			confDir + "90-tarn-zfs.conf": header + "evictionHard:\n  nodefs.available: 2Gi\n", k3sConfig: "kubelet-arg: [\"eviction-hard=nodefs.available<1%\"]\n"}), "", eviction.LayoutK3s,
			"nodefs.available=1%/flag"},
		"a later file replaces the list": {k3sNode(map[string]string{
			k3sConfig: "kubelet-arg: [\"eviction-hard=nodefs.available<1%\"]\n", k3sConfig + ".d/50.yaml": "kubelet-arg: [\"v=2\"]\n"}), "", eviction.LayoutK3s,
			"imagefs.available=5%/default nodefs.available=5%/default"},
		"a later file adds to the list": {k3sNode(map[string]string{
			k3sConfig: "kubelet-arg: [\"eviction-hard=nodefs.available<1%\"]\n", k3sConfig + ".d/50.YML": "kubelet-arg+: [\"eviction-hard=memory.available<5%\"]\n"}), "", eviction.LayoutK3s,
			"memory.available=5%/flag nodefs.available=1%/flag"},
		"the command line adds to the list": {k3sNode(map[string]string{
			"/etc/systemd/system/k3s.service": k3sUnitText + "    '--kubelet-arg' \\\n    'eviction-hard=memory.available<5%' \\\n",
			k3sConfig:                         "kubelet-arg: eviction-hard=nodefs.available<1%\n"}), "", eviction.LayoutK3s,
			"memory.available=5%/flag nodefs.available=1%/flag"},
		"the kubelet's file by way of k3s has no built-in ones": {k3sNode(map[string]string{
			k3sConfig: "kubelet-arg: config=/etc/kubelet.yaml\n", "/etc/kubelet.yaml": header + "evictionHard:\n  nodefs.available: 3Gi\n", confDir + "05.conf": header + "evictionHard:\n  nodefs.available: 1Gi\n",
			confDir + "10-cli-config.conf": header + "evictionHard:\n  nodefs.available: 9Gi\n"}), "", eviction.LayoutK3s,
			"imagefs.available=5%/default nodefs.available=3Gi/drop-in"},
		"the kubelet's directory by way of k3s": {k3sNode(map[string]string{
			k3sConfig: "kubelet-arg: config-dir=/etc/kubelet.d\n", "/etc/kubelet.d/99.conf": header + "evictionHard:\n  nodefs.available: 3Gi\n  imagefs.available: 3Gi\n",
			confDir + "30.conf": header + "evictionHard:\n  nodefs.available: 4Gi\n"}), "", eviction.LayoutK3s,
			"imagefs.available=3Gi/drop-in nodefs.available=4Gi/drop-in"},
		"a copy stays when the argument is gone": {k3sNode(map[string]string{confDir + "10-cli-config.conf": header + "evictionHard:\n  nodefs.available: 9Gi\n"}), "", eviction.LayoutK3s,
			"imagefs.available=5%/default nodefs.available=9Gi/drop-in"},
		"another data directory": {map[string]string{
			"/etc/systemd/system/k3s.service":                             strings.Replace(k3sUnitText, "server \\", "server --data-dir=/data/k3s", 1),
			"/data/k3s/agent/etc/kubelet.conf.d/50.conf":                  header + "evictionHard:\n  nodefs.available: 4Gi\n",
			"/data/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf":     k3sDefaultsText,
			"/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/90-other.conf": header + "evictionHard:\n  nodefs.available: 5Gi\n"}, "", eviction.LayoutK3s,
			"imagefs.available=5%/default nodefs.available=4Gi/drop-in"},
		"an agent with its directory in the environment": {map[string]string{
			"/etc/systemd/system/k3s-agent.service":     "[Service]\nEnvironmentFile=-/etc/systemd/system/k3s-agent.service.env\nExecStart=/usr/local/bin/k3s agent\n",
			"/etc/systemd/system/k3s-agent.service.env": "K3S_DATA_DIR=\"/data\"\nK3S_URL='https://10.0.0.1:6443'\n",
			"/data/agent/etc/kubelet.conf.d/50.conf":    header + "evictionHard:\n  memory.available: 1Gi\n"}, "", eviction.LayoutK3s,
			"imagefs.available=5%/default memory.available=1Gi/drop-in nodefs.available=5%/default"},
		"upper and lower case do not matter in a drop-in": {k3sNode(map[string]string{confDir + "50.conf": header + "evictionhard:\n  nodefs.available: 2Gi\n"}), "", eviction.LayoutK3s,
			"imagefs.available=5%/default nodefs.available=2Gi/drop-in"},
		"keys that differ in upper and lower case add up, and null of one takes nothing from the other": {k3sNode(map[string]string{
			confDir + "50.conf": header + "evictionHard:\n  nodefs.available: 2Gi\n", confDir + "60.conf": header + "evictionhard:\n  imagefs.available: 3Gi\n",
			confDir + "70.conf": header + "EvictionHard: null\n"}), "", eviction.LayoutK3s,
			"imagefs.available=3Gi/drop-in nodefs.available=2Gi/drop-in"},
		"a key that was taken away comes back": {k3sNode(map[string]string{
			confDir + "50.conf": header + "evictionHard: null\n", confDir + "60.conf": header + "evictionHard:\n  imagefs.available: 3Gi\n  nodefs.available:\n",
			confDir + "70.conf": header + "evictionHard:\n  nodefs.available: 1Gi\n"}), "", eviction.LayoutK3s,
			"imagefs.available=3Gi/drop-in nodefs.available=1Gi/drop-in"},
		"null in the file is an empty text": {kubeadmNode("evictionHard:\n  nodefs.available: ~\n", nil), "", eviction.LayoutKubelet, "nodefs.available=/file"},
		"of a key that is given twice in the file the last counts": {kubeadmNode("evictionHard:\n  nodefs.available: 1Gi\n  nodefs.available: 2Gi\n", nil), "", eviction.LayoutKubelet,
			"nodefs.available=2Gi/file"},
		"yes is true": {kubeadmNode("mergeDefaultEvictionSettings: yes\nevictionHard:\n  nodefs.available: 2Gi\n  imagefs.available: 3Gi\n", nil), "", eviction.LayoutKubelet,
			"imagefs.available=3Gi/file imagefs.inodesFree=5%/default memory.available=100Mi/default nodefs.available=2Gi/file nodefs.inodesFree=5%/default"},
		"they do in the file": {kubeadmNode("evictionhard:\n  nodefs.available: 2Gi\n", nil), "", eviction.LayoutKubelet, builtIn},
	} {
		t.Run(name, func(t *testing.T) {
			opts := Options{}
			if c.version != "" {
				opts.Version = version(t, c.version)
			}
			n := Read(t.Context(), machine(c.files), opts)
			if got := show(n.Config.Hard); got != c.want || n.Layout != c.layout {
				t.Errorf("%s:\n got %s\nwant %s\nnotes %+v", n.Layout, got, c.want, n.Notes)
			}
		})
	}
}

func TestReclaimUntouchedByHardFlag(t *testing.T) {
	n := Read(t.Context(), machine(k3sNode(map[string]string{
		"/etc/rancher/k3s/config.yaml": "kubelet-arg: eviction-hard=nodefs.available<1Gi\n",
		confDir + "50.conf":            header + "evictionHard:\n  memory.available: 1Gi\nimageGCHighThresholdPercent: 70\nimageMaximumGCAge: 168h\n"})), Options{})
	if got, want := show(n.Config.MinimumReclaim), "imagefs.available=10%/default nodefs.available=10%/default"; got != want {
		t.Errorf("minimum reclaim: %s", got)
	}
	if c := n.Config; c.ImageGCHighPercent.Value != "70" || c.ImageMaximumGCAge.Value != "168h" || c.ImageGCLowPercent.Value != "" {
		t.Errorf("image GC: %+v %+v %+v", c.ImageGCHighPercent, c.ImageGCLowPercent, c.ImageMaximumGCAge)
	}
	lost := n.Config.Lost
	if len(lost) != 1 || lost[0].Key != "memory.available" || lost[0].Setting.Source != confDir+"50.conf" ||
		lost[0].By.Source != "kubelet-arg in /etc/rancher/k3s/config.yaml" || lost[0].By.Value != "nodefs.available<1Gi" {
		t.Errorf("lost: %+v", lost)
	}
}

func TestNoteTraps(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		kind  NoteKind
		file  string
	}{
		"replaced list": {k3sNode(map[string]string{"/etc/rancher/k3s/config.yaml": "kubelet-arg: [v=1]\n", "/etc/rancher/k3s/config.yaml.d/50.yaml": "kubelet-arg: [v=2]\n"}),
			Dropped, "/etc/rancher/k3s/config.yaml.d/50.yaml"},
		"wrong suffix beside k3s' file": {k3sNode(map[string]string{"/etc/rancher/k3s/config.yaml.d/50.conf": "x: y\n"}), Ignored, "/etc/rancher/k3s/config.yaml.d/50.conf"},
		"k3s' file is no YAML":          {k3sNode(map[string]string{"/etc/rancher/k3s/config.yaml": "a: [\n"}), Refused, "/etc/rancher/k3s/config.yaml"},
		"a number for a threshold":      {k3sNode(map[string]string{confDir + "50.conf": header + "evictionHard:\n  memory.available: 1000\n"}), Refused, confDir + "50.conf"},
		"a number that a later drop-in mends, in the file": {kubeadmNode("evictionHard:\n  memory.available: 1000\n", map[string]string{
			"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--config-dir=/etc/kubelet.d", "/etc/kubelet.d/10-a.conf": header + "evictionHard: null\n"}), Refused, "/var/lib/kubelet/config.yaml"},
		"text for the map":                 {k3sNode(map[string]string{confDir + "50.conf": header + "evictionHard: memory.available<5%\n"}), Refused, confDir + "50.conf"},
		"another kind":                     {k3sNode(map[string]string{confDir + "50.conf": "apiVersion: v1\nkind: ConfigMap\n"}), Refused, confDir + "50.conf"},
		"merging of defaults in a drop-in": {k3sNode(map[string]string{confDir + "50.conf": header + "mergeDefaultEvictionSettings: true\n"}), NoEffect, confDir + "50.conf"},
		"upper and lower case":             {k3sNode(map[string]string{confDir + "50.conf": header + "evictionhard: {}\n"}), NoEffect, confDir + "50.conf"},
		"a copy of k3s is left":            {k3sNode(map[string]string{confDir + "20-cli-config-dir/a.conf": header}), Leftover, confDir + "20-cli-config-dir/a.conf"},
		"a linked directory": {k3sNode(map[string]string{confDir + "00-k3s-defaults.conf": k3sDefaultsText, "/etc/rancher/k3s/config.yaml": "kubelet-arg: config-dir=/etc/link\n", "/etc/link": "->real", "/etc/real/a.conf": header}),
			NoEffect, "/etc/link"},
		"no directory":           {with(kubeadmNode("", nil), map[string]string{"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--config-dir=/etc/none"}), Refused, "/etc/none"},
		"no file":                {map[string]string{"/etc/systemd/system/kubelet.service": "[Service]\nExecStart=/usr/bin/kubelet --config=/etc/none.yaml\n"}, Refused, "/etc/none.yaml"},
		"two kubelets":           {with(k3sNode(nil), kubeadmNode("", nil)), Ambiguous, ""},
		"nothing":                {map[string]string{"/etc/hosts": ""}, NotFound, ""},
		"a kubelet without unit": {map[string]string{"/var/lib/kubelet/config.yaml": header}, NotFound, "kubelet.service"},
		"a flag that is none":    {with(kubeadmNode("", nil), map[string]string{"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--eviction-hard=nodefs.available=5%"}), Refused, "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"},
	} {
		t.Run(name, func(t *testing.T) {
			n := Read(t.Context(), machine(c.files), Options{})
			if !hasNote(n.Notes, c.kind, c.file) {
				t.Errorf("no note %s about %s in %+v", c.kind, c.file, n.Notes)
			}
		})
	}
}

func TestConfigTraps(t *testing.T) {
	n := Read(t.Context(), machine(k3sNode(map[string]string{
		confDir + "90-x.yaml":   header,
		confDir + "91-bad.conf": "a: [",
		confDir + "92.conf":     "evictionHard: {}\n",
		confDir + "93.conf":     header + "evictionHardd:\n  nodefs.available: 1Gi\nsomethingQuiteDifferent: 1\n",
		confDir + "94.conf":     "",
		confDir + "95.conf":     header + "evictionHard:\n  nodefs.available: 1Gi\n  nodefs.available: 1Gi\n",
	})), Options{})
	ignored := map[string]string{}
	for _, i := range n.Config.Ignored {
		ignored[strings.TrimPrefix(i.Path, confDir)] = i.Reason
	}
	want := map[string]string{"90-x.yaml": eviction.IgnoredSuffix, "91-bad.conf": eviction.IgnoredNotYAML, "92.conf": eviction.IgnoredNoHeader, "94.conf": eviction.IgnoredNoHeader,
		"95.conf": "line 5: nodefs.available is given twice"}
	if !maps.Equal(ignored, want) {
		t.Errorf("ignored files: %v", ignored)
	}
	wantKeys := []eviction.UnknownKey{{Path: confDir + "93.conf", Key: "evictionHardd", Meant: "evictionHard", DropIn: true}, {Path: confDir + "93.conf", Key: "somethingQuiteDifferent", DropIn: true}}
	if !slices.Equal(n.Config.Unknown, wantKeys) {
		t.Errorf("unknown keys: %+v", n.Config.Unknown)
	}
}

func TestUnit(t *testing.T) {
	m := machine(k3sNode(map[string]string{
		"/etc/systemd/system/k3s.service.d/10-tarn.conf":     "[Unit]\nAfter=tarn.service local-fs.target\nRequiresMountsFor=/var/lib/rancher \"/var/lib/kubelet\"\n",
		"/usr/lib/systemd/system/k3s.service.d/10-tarn.conf": "[Unit]\nRequiresMountsFor=/hidden\n",
		"/etc/zfs/zfs-list.cache/tank":                       "tank\n",
	}))
	asked := []string{}
	m.Run = func(_ context.Context, name string, args ...string) (string, error) {
		asked = append(asked, name)
		switch {
		case name == "systemctl" && args[0] == "show":
			return "ExecMainStartTimestamp=@1700000000\n", nil
		case name == "systemctl":
			return "systemd 255 (255.4-1ubuntu8.4)\n+PAM", nil
		}
		return "k3s version v1.36.1+k3s1 (abcdef)\ngo version go1.26.1\n", nil
	}
	n := Read(t.Context(), m, Options{})
	if n.Version.String() != "v1.36.1+k3s1" || n.VersionFrom != "/usr/local/bin/k3s --version" {
		t.Errorf("version %s from %s; asked %v", n.Version, n.VersionFrom, asked)
	}
	u := n.Config.Unit
	if u == nil || !slices.Equal(u.MountsFor, []string{"/var/lib/rancher", "/var/lib/kubelet"}) || !u.AfterMounts || u.Started.Unix() != 1700000000 {
		t.Errorf("unit: %+v", u)
	}
	if v := SystemdVersion(t.Context(), m); v != 255 {
		t.Errorf("systemd %d", v)
	}
}

// sealed is a file system in which a directory can not be looked into.
type sealed struct {
	fs.FS
	dir string
}

func (s sealed) Open(name string) (fs.File, error) {
	if name == s.dir || strings.HasPrefix(name, s.dir+"/") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return s.FS.Open(name)
}

func TestWithoutRights(t *testing.T) {
	m := machine(k3sNode(map[string]string{confDir + "90.conf": header + "evictionHard:\n  nodefs.available: 9Gi\n"}))
	m.Root = sealed{m.Root, "var/lib/rancher/k3s/agent"}
	n := Read(t.Context(), m, Options{})
	if got, want := show(n.Config.Hard), "imagefs.available=5%/default nodefs.available=5%/default"; got != want || n.Layout != eviction.LayoutK3s {
		t.Errorf("%s: %s", n.Layout, got)
	}
	if !hasNote(n.Notes, Unreadable, strings.TrimSuffix(confDir, "/")) {
		t.Errorf("nothing tells that a directory can not be read: %+v", n.Notes)
	}
}

func TestRootless(t *testing.T) {
	const home = "/users/ann"
	m := machine(map[string]string{
		home + "/.config/systemd/user/k3s-rootless.service":                  "[Service]\nExecStart=/usr/local/bin/k3s server --rootless --snapshotter=fuse-overlayfs\n",
		home + "/.rancher/k3s/agent/etc/kubelet.conf.d/50.conf":              header + "evictionHard:\n  memory.available: 1Gi\n",
		home + "/.rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf": k3sDefaultsText,
	})
	m.Home = home
	n := Read(t.Context(), m, Options{})
	if n.Layout != eviction.LayoutK3sRootless || n.RootDir.Value != home+"/.rancher/k3s/agent/kubelet" || !strings.Contains(show(n.Config.Hard), "memory.available=1Gi") {
		t.Errorf("%s, %s, %s", n.Layout, n.RootDir.Value, show(n.Config.Hard))
	}
	other := m
	other.Root = sealed{m.Root, inside(home)}
	if n := Read(t.Context(), other, Options{}); n.Layout != "" || hasNote(n.Notes, Unreadable, "") || len(n.Notes) != 1 {
		t.Errorf("another user's home: %s, %+v", n.Layout, n.Notes)
	}
	if g, ok := n.K3s.Value("snapshotter"); !ok || g.Value != "fuse-overlayfs" {
		t.Errorf("snapshotter: %+v", g)
	}
}

func TestByHand(t *testing.T) {
	m := machine(map[string]string{"/snap/kubelet/config": header + "evictionHard:\n  nodefs.available: 9Gi\n", "/snap/d/a.conf": header + "evictionHard:\n  memory.available: 1Gi\n"})
	n := Read(t.Context(), m, Options{ConfigFile: "/snap/kubelet/config", ConfigDir: "/snap/d", Args: []Arg{{"eviction-minimum-reclaim", Given{"nodefs.available=1Gi", PlaceByHand, ""}}}})
	if got, want := show(n.Config.Hard)+"; "+show(n.Config.MinimumReclaim), "memory.available=1Gi/drop-in nodefs.available=9Gi/file; nodefs.available=1Gi/flag"; got != want {
		t.Errorf("got %s", got)
	}
	if len(n.Notes) > 0 {
		t.Errorf("notes: %+v", n.Notes)
	}
}

func TestReadK3s(t *testing.T) {
	files := k3sNode(map[string]string{
		"/etc/systemd/system/k3s.service":     strings.Replace(k3sUnitText, "server \\", "server --config /etc/my.yaml -d /data", 1),
		"/etc/my.yaml":                        "datastore-endpoint: http://127.0.0.1:2379\nkube-scheduler-arg:\n  - leader-elect=false\ntls-san: [a, b]\n",
		"/etc/my.yaml.d/10.yaml":              "datastore-endpoint: unix:///run/tarn/tarn.sock\nkube-scheduler-arg+: v=2\n",
		"/etc/rancher/k3s/config.yaml":        "datastore-endpoint: http://other\n",
		"/etc/systemd/system/k3s.service.env": "K3S_DATASTORE_ENDPOINT=mysql://x\nK3S_TOKEN=secret\n",
	})
	k, notes, ok := ReadK3s(machine(files), false)
	if !ok || len(notes) > 0 || k.Command != "server" || k.ConfigFile != "/etc/my.yaml" || k.DataDir().Value != "/data" {
		t.Fatalf("%v %+v %q %q %+v", ok, notes, k.Command, k.ConfigFile, k.DataDir())
	}
	if g, _ := k.Value("datastore-endpoint"); g.Value != "unix:///run/tarn/tarn.sock" || g.Where() != "/etc/my.yaml.d/10.yaml" {
		t.Errorf("endpoint: %+v", g)
	}
	if g, _ := k.Value("token"); g.Value != "secret" || g.Where() != "environment in /etc/systemd/system/k3s.service.env" {
		t.Errorf("token: %+v", g)
	}
	if got := joinValues(k.Values("kube-scheduler-arg")); got != "leader-elect=false, v=2" {
		t.Errorf("scheduler: %s", got)
	}
	if _, ok := k.Value("cluster-init"); ok {
		t.Error("cluster-init is not given")
	}
	if k, _, ok := ReadK3s(machine(map[string]string{"/etc/hosts": ""}), false); ok || k.DataDir().Value != K3sDataDir {
		t.Errorf("without k3s: %v %+v", ok, k.DataDir())
	}
}

func TestWords(t *testing.T) {
	env := map[string]Given{"A": {Value: "x 'y z'"}, "B": {Value: "b b"}}
	for text, want := range map[string][]string{
		`a  "b c" d\ e 'f"g'`: {"a", "b c", "d e", `f"g`},
		`$A ${B}! $C`:         {"x", "y z", "b b!"},
		`'' x"y z"`:           {"", "xy z"},
		``:                    nil,
	} {
		if got := expand(splitWords(text), env); !slices.Equal(got, want) {
			t.Errorf("%s: %q", text, got)
		}
	}
}
