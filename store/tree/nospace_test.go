package tree

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs"
	"golang.org/x/sys/unix"
)

const fullDiskEnv = "TREE_TEST_FULL_DISK"

// TestFullDisk fills a real small file system, in a child process that has
// mount rights in a namespace of its own.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(fullDiskEnv); dir != "" {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
			t.Skip("can not mount:", err)
		}
		fullDisk(t, filepath.Join(dir, "tree.db"))
		for _, name := range []string{"tree.db", "tree.db.reserve0", "tree.db.reserve1", "tree.db.reserve2"} {
			_ = os.Remove(filepath.Join(dir, name))
		}
		fullDiskWithHoles(t, filepath.Join(dir, "holes.db"))
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), fullDiskEnv+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Skip("no namespaces here:", err)
	}
	if t.Logf("%s", out); err != nil {
		t.Fatal(err)
	}
}

func fullDisk(t *testing.T, path string) {
	tr := openTest(t, Options{Path: path})
	want := content{}
	rev := int64(2)
	fill := func() (err error) {
		for err == nil && rev < 100000 {
			records := puts(rev, 100, 1000)
			if err = tr.Apply(&Batch{Put: records}); err == nil {
				rev += 100
				for _, r := range records {
					want[string(r.Rev.AppendKey(nil, false))] = string(r.Value)
				}
			}
		}
		return err
	}
	reserve := func(round int) string { return fmt.Sprintf("%s.reserve%d", path, round) }
	const rounds = 3
	for round := range rounds {
		writeFile(t, reserve(round), make([]byte, 512<<10))
	}
	for round := range rounds {
		if err := fill(); !vfs.IsNoSpace(err) {
			t.Fatalf("round %d: %v, want no space", round, err)
		}
		if err := tr.Defragment(t.Context()); !vfs.IsNoSpace(err) {
			t.Fatalf("round %d: defragmentation on a full disk: %v", round, err)
		}
		readContent(t, tr).equal(t, want)
		noFindings(t, tr)
		b := &Batch{}
		for k := range want {
			r, _, _ := ParseKey([]byte(k))
			if len(b.Delete) < 50 {
				b.Delete = append(b.Delete, DeadRecord{Rev: r})
				delete(want, k)
			}
		}
		if err := os.Remove(reserve(round)); err != nil { // deleting writes pages too
			t.Fatal(err)
		}
		if err := tr.Apply(b); err != nil {
			t.Fatalf("round %d: deleting: %v", round, err)
		}
	}
	readContent(t, tr).equal(t, want)
	tr.Close()
	tr = openTest(t, Options{Path: path})
	readContent(t, tr).equal(t, want)
	noFindings(t, tr)
	t.Logf("%d records on 8 MiB", len(want))
	tr.Close()
}

// fullDiskWithHoles fills the file system after the tree has given back what was free. Writes into holes then
// fail, and leave none of the space that they took before.
func fullDiskWithHoles(t *testing.T, path string) {
	tr := openTest(t, Options{Path: path})
	tr.giving = eagerGiving
	records := puts(2, 4000, 1000)
	apply(t, tr, &Batch{Put: records})
	b := &Batch{}
	for _, r := range records[100:] {
		b.Delete = append(b.Delete, DeadRecord{Rev: r.Rev})
	}
	apply(t, tr, b)
	if given, err := giveAllBack(tr); given < 3<<20 || err != nil {
		t.Fatalf("%d bytes were given back, %v", given, err)
	}
	free := func() int64 {
		u, err := vfs.OS.Usage(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		return int64(u.Free)
	}
	const left = 512 << 10
	writeFile(t, path+".other", make([]byte, free()-left))
	want := readContent(t, tr)
	for range 3 {
		if err := tr.Apply(&Batch{Put: puts(10000, 2000, 1000)}); !vfs.IsNoSpace(err) {
			t.Fatalf("writing into holes: %v, want no space", err)
		}
		if n := free(); n < left-64<<10 {
			t.Errorf("%d bytes are free after a write that failed, %d were before", n, left)
		}
		readContent(t, tr).equal(t, want)
		noFindings(t, tr)
	}
	if err := os.Remove(path + ".other"); err != nil {
		t.Fatal(err)
	}
	apply(t, tr, &Batch{Put: puts(10000, 2000, 1000)})
	noFindings(t, tr)
}
