package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// kubeletFileMode is that of the kubelet's own files: they can tell of paths and sockets that are not for everybody.
const kubeletFileMode fs.FileMode = 0o600

// kubeletModeOf is the mode of a file: systemd warns of units that it can read and others can not.
func kubeletModeOf(file string) fs.FileMode {
	if strings.HasPrefix(file, systemUnits+"/") {
		return 0o644
	}
	return kubeletFileMode
}

// writeNewFile writes a file with a mode, all of it or nothing, in a directory that is made if it is missing.
func writeNewFile(name string, content []byte, mode fs.FileMode) (err error) {
	dirMode := fs.FileMode(0o755)
	if mode == kubeletFileMode {
		dirMode = 0o700
	}
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, ignoreClosed(f.Close()))
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

func ignoreClosed(err error) error {
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return err
}
