package layers

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/tarn-kv/tarn/zfs/eviction"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

var (
	cases = flag.Int("cases", 300, "how many random nodes")
	seed  = flag.Uint64("seed", uint64(time.Now().UnixNano()), "the numbers that the nodes come from")
)

// node is a random node: files by their path, and arguments.
type node struct {
	*rand.Rand
	files     map[string]string
	file, dir string
	args      []nodeconf.Arg
}

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// chance is true once in n times.
func (n *node) chance(of int) bool { return n.IntN(of) == 0 }

func newNode(r *rand.Rand) *node {
	n := &node{Rand: r, files: map[string]string{}}
	if !n.chance(3) {
		n.file = "/config.yaml"
		n.files[n.file] = n.text()
	}
	if n.file == "" || !n.chance(3) {
		n.dir = "/d"
		for range n.IntN(5) {
			n.files["/d/"+one(r, "10-a.conf", "2.conf", "20/a.conf", "20/z/b.conf", "20-b.conf", "20.conf", "20a.conf", "30.yaml", ".conf")] = n.text()
		}
	}
	for range n.IntN(3) - 1 {
		n.args = append(n.args, n.arg())
	}
	return n
}

func (n *node) arg() nodeconf.Arg {
	name := one(n.Rand, "eviction-hard", "eviction_hard", "eviction-soft", "eviction-minimum-reclaim", "image-gc-high-threshold")
	value := one(n.Rand, "nodefs.available<1Gi", "nodefs.available<1Gi,memory.available<5%", "", " nodefs.available < 3Gi , imagefs.available<1Gi")
	switch name {
	case "eviction-minimum-reclaim":
		value = strings.ReplaceAll(value, "<", "=")
	case "image-gc-high-threshold":
		value = "66"
	}
	return nodeconf.Arg{Name: name, Given: nodeconf.Given{Value: value, Place: nodeconf.PlaceByHand}}
}

// text is a file, sometimes with a mistake.
func (n *node) text() string {
	if n.chance(40) {
		return one(n.Rand, "", "a: [", "kind: KubeletConfiguration\n", "apiVersion: v1\nkind: ConfigMap\n", "---\n", "[]\n", "x\n")
	}
	var b strings.Builder
	add := func(of int, text string) {
		if n.chance(of) {
			b.WriteString(text)
		}
	}
	add(12, "# a comment\n---\n")
	b.WriteString("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n")
	add(1+n.IntN(2), n.signals("evictionHard"))
	add(4, n.signals("evictionMinimumReclaim"))
	add(6, n.signals("evictionSoft"))
	add(5, "mergeDefaultEvictionSettings: "+one(n.Rand, "true", "false", "yes", "null")+"\n")
	add(5, "imageGCHighThresholdPercent: "+one(n.Rand, "70", "100", "null", "0")+"\n")
	add(8, n.signals(one(n.Rand, "evictionHardd", "evictionhard", "EvictionHard")))
	add(15, "---\nevictionHard:\n  nodefs.available: 9Gi\n")
	return b.String()
}

func (n *node) signals(key string) string {
	if n.chance(4) {
		return key + one(n.Rand, ": null\n", ": {}\n", ":\n")
	}
	var b strings.Builder
	b.WriteString(key + ":\n")
	names := []string{"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"}
	n.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:1+n.IntN(4)]
	if n.chance(15) {
		names = append(names, names[0]) // twice
	}
	for _, name := range names {
		value := one(n.Rand, "1Gi", "5%", `"2Gi"`, "0%", "null", "~", "100Mi", "'7%'", "1.5Gi", "''")
		if n.chance(20) {
			value = one(n.Rand, "1000", "true")
		}
		fmt.Fprintf(&b, "  %s: %s\n", one(n.Rand, name, strconv.Quote(name)), value)
	}
	return b.String()
}

// write puts the files below root.
func (n *node) write(root string) error {
	if err := os.MkdirAll(filepath.Join(root, "d"), 0o755); err != nil {
		return err
	}
	for name, text := range n.files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), fs.FileMode(0o644)); err != nil {
			return err
		}
	}
	return nil
}

// refused tells whether nodeconf says that the kubelet does not start.
func refused(n *nodeconf.Node) bool {
	return slices.ContainsFunc(n.Notes, func(note nodeconf.Note) bool { return note.Kind == nodeconf.Refused }) ||
		slices.ContainsFunc(n.Config.Ignored, func(i eviction.Ignored) bool { return i.Reason != eviction.IgnoredSuffix })
}

// told is what nodeconf says to be in force.
func told(c *eviction.Config) inForce {
	values := func(settings map[string]eviction.Setting) map[string]string {
		m := map[string]string{}
		for k, s := range settings {
			m[k] = s.Value
		}
		return m
	}
	f := inForce{values(c.Hard), values(c.Soft), values(c.MinimumReclaim), 85}
	if n, err := strconv.ParseInt(c.ImageGCHighPercent.Value, 10, 32); err == nil {
		f.imageGCHigh = int32(n)
	}
	return f
}

func TestLayers(t *testing.T) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	t.Logf("seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 0))
	broken := 0
	for i := range *cases {
		n, root := newNode(r), t.TempDir()
		if err := n.write(root); err != nil {
			t.Fatal(err)
		}
		below := func(path string) string {
			if path == "" {
				return ""
			}
			return root + path
		}
		var args []string
		for _, a := range n.args {
			args = append(args, "--"+a.Name+"="+a.Value)
		}
		want, err := readAsKubelet(t.Context(), below(n.file), below(n.dir), args)
		got := nodeconf.Read(t.Context(), nodeconf.MachineAt(root), nodeconf.Options{ConfigFile: n.file, ConfigDir: n.dir, Args: n.args})
		if err != nil {
			broken++
		}
		if refused(got) != (err != nil) || err == nil && !told(&got.Config).equal(want) {
			t.Errorf("seed %d, case %d: the kubelet has %+v, error %v\nnodeconf says %+v, refused %t, %+v\nfile %q, directory %q, arguments %q\n%v",
				*seed, i, want, err, told(&got.Config), refused(got), got.Notes, n.file, n.dir, args, n.files)
		}
	}
	t.Logf("%d nodes, %d of them do not start", *cases, broken)
}
