package nodeconf

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// tree makes a machine with files in a directory; nil stands for a named pipe, which nobody writes to.
func tree(t *testing.T, files map[string][]byte) Machine {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if text == nil {
			err = syscall.Mkfifo(file, 0o644)
		} else {
			err = os.WriteFile(file, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return MachineAt(root)
}

// What can not be read to its end is not begun: a named pipe, and a file that is no configuration.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	large := []byte(strings.Repeat("# x\n", maxFile/4+1))
	unit := map[string][]byte{"etc/systemd/system/k3s.service": []byte(k3sUnitText)}
	for name, c := range map[string]struct {
		file string
		text []byte
		kind NoteKind
		want string
	}{
		"pipe for k3s":      {"etc/rancher/k3s/config.yaml", nil, Refused, "not a regular file"},
		"pipe beside":       {"etc/rancher/k3s/config.yaml.d/x.yaml", nil, Refused, "not a regular file"},
		"pipe for kubelet":  {confDir[1:] + "50.conf", nil, Unreadable, "not a regular file"},
		"pipe for defaults": {confDir[1:] + k3sDefaultsFile, nil, Unreadable, "not a regular file"},
		"pipe for unit":     {"etc/systemd/system/k3s.service.d/x.conf", nil, Unreadable, "not a regular file"},
		"large for k3s":     {"etc/rancher/k3s/config.yaml", large, Refused, "too large to be a configuration"},
		"large for kubelet": {confDir[1:] + "50.conf", large, Unreadable, "too large to be a configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string][]byte{c.file: c.text}
			for file, text := range unit {
				files[file] = text
			}
			n := Read(t.Context(), tree(t, files), Options{Version: version(t, "v1.36.2")})
			if !hasNote(n.Notes, c.kind, "/"+c.file) || !strings.Contains(n.Notes[0].Text, c.want) {
				t.Errorf("%+v", n.Notes)
			}
		})
	}
}

// A directory, or a link that leads in a circle, in the place of a file ends k3s.
func TestK3sFilesThatAreNone(t *testing.T) {
	m := tree(t, map[string][]byte{"etc/rancher/k3s/config.yaml/x": []byte("")})
	if _, notes, _ := ReadK3s(m, false); !hasNote(notes, Refused, K3sConfigFile) {
		t.Errorf("a directory: %+v", notes)
	}
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "etc/rancher/k3s"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("config.yaml", filepath.Join(root, K3sConfigFile)); err != nil {
		t.Fatal(err)
	}
	if _, notes, _ := ReadK3s(MachineAt(root), false); !hasNote(notes, Refused, K3sConfigFile) {
		t.Errorf("a link to itself: %+v", notes)
	}
}

// A unit that is a link to /dev/null is masked, though that is no regular file.
func TestMaskedUnit(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "etc/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.DevNull, filepath.Join(root, "etc/systemd/system/k3s.service")); err != nil {
		t.Fatal(err)
	}
	if u, notes, ok := ReadUnit(MachineAt(root), "k3s.service"); ok || len(notes) > 0 {
		t.Errorf("%+v, %+v", u, notes)
	}
}

// Aliases of aliases stand for more values than there is time for.
func TestYAMLThatGrows(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i <= 9; i++ {
		before, now := "*a"+string(rune('0'+i-1)), "a"+string(rune('0'+i))
		b.WriteString(now + ": &" + now + " [" + strings.Repeat(before+",", 8) + before + "]\n")
	}
	if _, err := parseYAML([]byte(b.String()), eviction.Setting{}); err == nil || !strings.Contains(err.Error(), "aliases") {
		t.Errorf("got %v", err)
	}
}

// What Tarn writes before k3s is installed is not taken for k3s.
func TestFilesOfTarnAreNotK3s(t *testing.T) {
	m := machine(map[string]string{
		"/etc/rancher/k3s/config.yaml.d/50-tarn.yaml":         "datastore-endpoint: http://127.0.0.1:2379\n",
		"/etc/systemd/system/k3s.service.d/10-tarn.conf":      "[Unit]\nWants=tarn.service\n",
		confDir + "90-tarn-zfs.conf":                          header,
		"/etc/rancher/k3s/config.yaml.d/60-tarn-kubelet.yaml": "kubelet-arg+: []\n",
	})
	if _, _, ok := ReadK3s(m, false); ok {
		t.Error("k3s is taken for installed")
	}
	if n := Read(t.Context(), m, Options{}); n.Layout != "" {
		t.Errorf("a kubelet in %s is seen", n.Layout)
	}
}

// An endpoint of nothing is told apart from none.
func TestEmptyK3sValue(t *testing.T) {
	for _, text := range []string{"datastore-endpoint:\n", "datastore-endpoint: \"\"\n"} {
		k, _, _ := ReadK3s(machine(map[string]string{K3sConfigFile: "datastore-endpoint: http://127.0.0.1:2379\n", K3sConfigFile + ".d/90.yaml": text}), false)
		if g, ok := k.Value("datastore-endpoint"); ok || g.File != K3sConfigFile+".d/90.yaml" {
			t.Errorf("%q: %+v, %v", text, g, ok)
		}
	}
}
