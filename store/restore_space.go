package store

import (
	"errors"
	"fmt"
	"io/fs"
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
		return x.explainNoSpace(&fs.PathError{Op: "copy", Path: path, Err: syscall.ENOSPC})
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
	free := "less than that"
	if u, usageErr := x.FS.Usage(existingPart(x.Dir)); usageErr == nil {
		free = fmt.Sprintf("%d MiB", u.Free/mib)
	}
	return fmt.Errorf("there is no space in %s for the restored state beside the present one: it needs about %d MiB, and %s are free; nothing was changed: make room (an older %s* directory that is not needed any more?), or raise the quota (zfs set refquota): %w",
		x.Dir, (x.source.TreeBytes+x.source.WALBytes)/mib+1, free, asideName, err)
}
