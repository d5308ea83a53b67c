package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/etcdapi"
	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/zfs"
)

// treeFile is there in each data directory that holds a store.
const treeFile = "tree.db"

// writableByOthers are the permissions that a data directory should not give.
const writableByOthers fs.FileMode = 0o022

// errHomeless is returned for a server that was started in the root directory, as a service is, and not
// told where its data are: nobody wants them in /tarn-data.
var errHomeless = errors.New("no data directory is set; run tarn init POOL/NAME as root for one on ZFS, " +
	"or set data-dir in " + installedConfigFile + " (or --data-dir)")

// checkDataDir tells whether the data directory is one to open, and changes
// nothing. The errors that it returns have their exit codes.
func (s *serving) checkDataDir() error {
	dir := s.opts.dataDir
	if cwd, err := os.Getwd(); err == nil && cwd == "/" && s.from.of("data-dir") == fromDefault {
		return withExit(exitUsage, errHomeless)
	}
	if s.opts.dataset != "" {
		if err := checkDataset(dir, s.opts.dataset, zfs.MountTable); err != nil {
			return withExit(exitRefused, err)
		}
	}
	// Before the sockets: of two servers for one directory the second then says
	// that, and not that an address is taken.
	if h, locked := vfs.HolderOf(dir); locked {
		return withExit(exitInUse, fmt.Errorf("the data directory %s is in use by %s; %s", dir, h.Who, h.NextStep("stop that process, or use another directory")))
	}
	return nil
}

// canBeDir tells what in a path keeps it from being a directory, or from becoming
// one. What the system refuses is not its matter.
func canBeDir(dir string) error {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	for ; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		switch {
		case err == nil && info.IsDir():
			return nil
		case err == nil:
			return fmt.Errorf("%s is a file and not a directory", path)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return nil
		}
		// What is not there can be made; what a link should lead to can not.
		if to, err := os.Readlink(path); err == nil {
			return fmt.Errorf("%s is a link to %s, which does not exist; is its file system mounted?", path, to)
		}
	}
}

// sayWhatIsOddInDir logs what a person should know about the data directory.
func (s *serving) sayWhatIsOddInDir() {
	dir := s.opts.dataDir
	info, err := os.Stat(dir)
	if err != nil {
		return // not there yet: it is made for the owner alone
	}
	if info.Mode()&writableByOthers != 0 {
		s.log.Warn("others than the owner may write in the data directory, so they can replace what is in it; chmod go-w it",
			"data-dir", dir, "mode", info.Mode().Perm().String())
	}
	if left := store.Leftovers(dir); len(left) > 0 {
		s.log.Warn("a restore that did not come to its end has left something in the data directory: it is not used and takes space; remove it",
			"paths", left)
	}
	if s.opts.storeID != "" {
		return // no new store is begun then
	}
	if names := foreignFiles(dir, s.opts.listenClient, s.opts.listenMetrics); len(names) > 0 {
		s.log.Warn("the data directory holds no store, and files of something else: a new store is begun among them; is it the right directory?",
			"data-dir", dir, "files", names)
	}
}

// foreignFiles are a few of the files in a directory without a store that do not
// belong to a store, or to an empty file system.
func foreignFiles(dir string, listen ...[]etcdapi.ListenURL) []string {
	const few = 5
	ours := []string{treeFile, vfs.LockName, "wal", "lost+found",
		"member"} // etcd's: the store refuses it
	for _, u := range slices.Concat(listen...) {
		if isSocket(u) {
			ours = append(ours, filepath.Base(u.Addr))
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(store.Leftovers(dir)) > 0 {
		return nil // opening the store tells it
	}
	var names []string
	for _, e := range entries {
		switch name := e.Name(); {
		case name == treeFile, name == store.RestoreJournal: // which the store refuses
			return nil
		case slices.Contains(ours, name), strings.HasPrefix(name, treeFile+"."):
		case len(names) < few:
			names = append(names, name)
		}
	}
	return names
}
