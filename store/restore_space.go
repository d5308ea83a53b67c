package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tarn-kv/tarn/store/vfs"
)

const mib = 1 << 20

// checkRoom makes sure that the copy has room, as far as that can be told before. Where blocks may be
// shared and nobody can tell, it is only reported what a copy takes that shares none.
func (x *restorer) checkRoom() error {
	path := filepath.Join(x.Source, treeName)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	need := info.Size()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		need = min(need, st.Blocks*512) // holes stay holes
	}
	dir := existingPart(x.Dir)
	room, err := x.FS.Usage(dir)
	if err != nil || need < 0 || room.Free >= uint64(need) {
		return nil // what can not be told is found when it is copied
	}
	if room.Type == "zfs" { // it shares blocks or not from one copy to the next, and tells nobody
		x.report.Short = need - int64(room.Free)
		return nil
	}
	switch shares, err := vfs.SharesBlocks(dir, path); {
	case err != nil:
		x.report.Short = need - int64(room.Free)
	case !shares:
		return x.explainNoSpace(syscall.ENOSPC) // nothing was copied yet
	}
	return nil
}

// existingPart is a directory, or the nearest one above it that exists.
func existingPart(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// explainNoSpace says how much space is needed, where that is what was missing.
func (x *restorer) explainNoSpace(err error) error {
	if !vfs.IsNoSpace(err) || errors.Is(err, ErrRestoring) {
		return err
	}
	free, beside, room := "less than that", "", "make room there, or choose a directory on another file system"
	if !x.Empty {
		beside, room = " beside the present one", fmt.Sprintf("make room (an older %s* directory that is not needed any more?)", asideName)
	}
	if u, usageErr := x.FS.Usage(existingPart(x.Dir)); usageErr == nil {
		if free = fmt.Sprintf("%d MiB", u.Free/mib); u.Type == "zfs" {
			room += ", or raise the quota (zfs set refquota)"
		}
	}
	return fmt.Errorf("there is no space in %s for the restored state%s: it needs about %d MiB, and %s are free; nothing was changed: %s: %w",
		x.Dir, beside, (x.source.TreeBytes+x.source.WALBytes)/mib+1, free, room, err)
}
