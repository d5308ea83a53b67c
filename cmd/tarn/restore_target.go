package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/zfs"
)

// targetDir is the data directory to restore into.
func (o *restoreOptions) targetDir(ctx context.Context) (string, error) {
	if o.toDir != "" || o.dataset == "" {
		return cmp.Or(o.toDir, o.dataDir), nil
	}
	d, err := o.openDataset(ctx)
	if err != nil {
		return "", err
	}
	return presentDir(d)
}

// presentDir is the data directory that snapshots are of, if its files can be reached.
func presentDir(from zfs.Snapshots) (string, error) {
	dir := from.Dir()
	if dir == "" {
		return "", fmt.Errorf("the dataset %s: %w; mount it (zfs mount %s), or see whether it is the right one", from.Source(), zfs.ErrNotMounted, from.Source())
	}
	return dir, nil
}

// checkGivenDir refuses to make a data directory that nobody has named: whoever restores in place means
// one that is there.
func (o *restoreOptions) checkGivenDir(source restoreSource) error {
	if o.toDir != "" || o.dataset != "" || o.dirGiven {
		return nil
	}
	if _, err := os.Stat(o.dataDir); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return withExit(exitUsage, fmt.Errorf("restore %s: there is no ./%s here; name the data directory with --data-dir (it is made if it is lost), or a new place for the state with --to-dir",
		source.name, o.dataDir))
}

// checkToDir refuses a new directory within one that belongs to the server or to its snapshots.
func (o *restoreOptions) checkToDir(source restoreSource) error {
	if o.toDir == "" {
		return nil
	}
	to := realPath(o.toDir)
	within := func(dir string, itself bool, what string) error {
		rel, err := filepath.Rel(realPath(dir), to)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") || rel == "." && !itself {
			return nil
		}
		return withExit(exitRestoreTarget, fmt.Errorf("restore %s: --to-dir %s is within %s, %s; choose a directory outside of it", source.name, o.toDir, dir, what))
	}
	dirs := []string{o.dataDir}
	if source.from != nil && o.backup == "" && source.from.Dir() != "" {
		dirs = append(dirs, source.from.Dir())
	}
	for _, dir := range dirs {
		if err := within(dir, false, "the data directory"); err != nil {
			return err
		}
		copies, err := zfs.NewCopies(dir)
		if err != nil {
			continue // there are none of such a directory
		}
		if err := within(copies.Root(), true, "where the snapshots are"); err != nil {
			return err
		}
	}
	return within(source.dir, true, "which is only read")
}

// realPath resolves the part of a path that exists.
func realPath(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		if path == filepath.Dir(path) {
			return filepath.Join(path, rest)
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}

// sayWhatIsForeign tells that the data directory may be the wrong one, as a server does that begins a store.
func (o *restoreOptions) sayWhatIsForeign(dir string, warn io.Writer) {
	if o.toDir != "" {
		return // that must be empty
	}
	names := slices.DeleteFunc(foreignFiles(dir), func(name string) bool {
		return strings.HasPrefix(name, safetyTag+"-") || name == store.RestoreJournal || name == "restore-staging"
	})
	if len(names) > 0 {
		fmt.Fprintf(warn, "tarn: %s holds no store, and files of something else (%s): is it the right directory?\n", dir, strings.Join(names, ", "))
	}
}

// noteOwner says whom a directory belongs to that root has made.
func (v *restoreVerdict) noteOwner() string {
	if !v.NewDir || os.Geteuid() != 0 {
		return ""
	}
	if v.UID == 0 {
		return fmt.Sprintf("%s was missing, and belongs to root as the snapshot's files do: a server that runs as somebody else needs chown -R", v.Dir)
	}
	return fmt.Sprintf("%s was missing, and belongs to user %d as the snapshot's files do", v.Dir, v.UID)
}
