//go:build zfs

package zfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

// brittle is a device that can be made to fail.
type brittle struct {
	name, table string
}

// diskVariable names a disk that a test may overwrite.
const diskVariable = "TARN_TEST_DISK"

func newBrittle(t *testing.T, size int64) (b brittle, device string) {
	t.Helper()
	disk := os.Getenv(diskVariable)
	if disk == "" {
		t.Skipf("overwrites a disk: set %s to one that may be, such as /dev/vdb", diskVariable)
	}
	b = brittle{fmt.Sprintf("tarn-test-%d", os.Getpid()), fmt.Sprintf("0 %d linear %s 0", size/512, disk)}
	zfstest.Run(t, "dmsetup", "create", b.name, "--table", b.table)
	t.Cleanup(func() { zfstest.Run(t, "dmsetup", "remove", "--retry", b.name) })
	return b, "/dev/mapper/" + b.name
}

// set makes the device fail, or work again.
func (b brittle) set(t *testing.T, works bool) {
	t.Helper()
	table := b.table
	if !works {
		table = strings.Replace(table, " linear ", " error ", 1)
		table = strings.Join(strings.Fields(table)[:3], " ")
	}
	zfstest.Run(t, "dmsetup", "suspend", "--noflush", "--nolockfs", b.name)
	zfstest.Run(t, "dmsetup", "load", b.name, "--table", table)
	zfstest.Run(t, "dmsetup", "resume", b.name)
}

// With the disk gone, everything ends in time and says why; with the disk back,
// nothing is lost.
func TestZFSSuspended(t *testing.T) {
	b, device := newBrittle(t, 256<<20)
	pool := fmt.Sprintf("tarn-test-%d", os.Getpid())
	mountpoint := filepath.Join(t.TempDir(), "mnt")
	zfstest.Run(t, "zpool", "create", "-o", "cachefile=none", "-O", "mountpoint="+mountpoint, pool, device)
	t.Cleanup(func() { zfstest.Run(t, "zpool", "destroy", "-f", pool) })
	s := datasetSubject(t, pool, mountpoint)
	name := s.create(t, CreateOptions{Revision: 1}).Name

	b.set(t, false)
	back := false
	defer func() {
		if !back {
			b.set(t, true)
			zfstest.Run(t, "zpool", "clear", pool)
		}
	}()
	// A write makes ZFS notice; it hangs until the disk is back.
	written := make(chan error, 1)
	go func() {
		f, err := os.Create(filepath.Join(s.dir, "more"))
		if err == nil {
			_, err = f.WriteString("text")
			err = errors.Join(err, f.Sync(), f.Close())
		}
		written <- err
	}()
	suspended := false
	for begin := time.Now(); !suspended && time.Since(begin) < 2*time.Minute; time.Sleep(100 * time.Millisecond) {
		out, _ := exec.Command("cat", "/proc/spl/kstat/zfs/"+pool+"/state").CombinedOutput()
		suspended = strings.Contains(string(out), "SUSPENDED")
	}
	if !suspended {
		t.Fatal("the pool is not suspended")
	}
	for what, do := range map[string]func(context.Context) error{
		"create": func(ctx context.Context) error {
			_, err := s.Create(ctx, CreateOptions{Time: someTime, Revision: 2})
			return err
		},
		"list":    func(ctx context.Context) error { _, err := s.List(ctx); return err },
		"hold":    func(ctx context.Context) error { return s.Hold(ctx, name, "x") },
		"destroy": func(ctx context.Context) error { return s.Destroy(ctx, name) },
		"open":    func(ctx context.Context) error { _, _, err := s.Open(ctx, name); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		err := do(ctx)
		cancel()
		if !errors.Is(err, ErrSuspended) && !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), "zpool ") {
			t.Errorf("%s: %v", what, err)
		}
		t.Logf("%s: %v", what, err)
	}

	b.set(t, true)
	zfstest.Run(t, "zpool", "clear", pool)
	back = true
	if err := <-written; err != nil {
		t.Errorf("the write that waited: %v", err)
	}
	if got := s.list(t); len(got) == 0 || got[0].Name != name {
		t.Errorf("left %+v", got)
	}
	dir, cleanup, err := s.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer cleanup()
	if got, err := os.ReadFile(filepath.Join(dir, "tree.db")); err != nil || string(got) != "text" {
		t.Errorf("the snapshot has %q, %v", got, err)
	}
}
