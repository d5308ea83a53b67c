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
}
