package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// OS is the operating system's file system. Its errors carry the operation and
// the path.
var OS FS = osFS{}

type osFS struct{}

func (osFS) Create(name string) (File, error) {
	return openFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (osFS) Open(name string) (File, error) { return openFile(name, os.O_RDWR) }

func (osFS) OpenRead(name string) (File, error) { return openFile(name, os.O_RDONLY) }

func (osFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

func (osFS) Remove(name string) error { return os.Remove(name) }

func (osFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (o osFS) MkdirAll(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		if err := o.MkdirAll(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o700)
	}
	if err == nil {
		return o.SyncDir(filepath.Dir(dir))
	}
	if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
		return nil
	}
	return err
}

func (osFS) Usage(dir string) (Usage, error) {
	var st unix.Statfs_t
	err := ignoreEINTR(func() error { return unix.Statfs(dir, &st) })
	if err != nil {
		return Usage{}, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	block := uint64(st.Frsize)
	if block == 0 {
		block = uint64(st.Bsize)
	}
	return Usage{
		Total: st.Blocks * block,
		Free:  st.Bavail * block,
		Type:  typeName(int64(st.Type)),
	}, nil
}

func (osFS) Commit(_ string, commit func() error) error { return commit() }

func (osFS) PunchHole(name string, f *os.File, off, size int64) error {
	err := ignoreEINTR(func() error {
		return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, size)
	})
	runtime.KeepAlive(f)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = ErrNoHoles
	}
	if err != nil {
		return &fs.PathError{Op: "fallocate", Path: name, Err: err}
	}
	return nil
}

// osFile is an *os.File with the calls that package os lacks.
type osFile struct {
	*os.File
	raw syscall.RawConn
}

func openFile(name string, flag int) (File, error) {
	f, err := OpenRegular(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &osFile{File: f, raw: raw}, nil
}

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *osFile) Preallocate(size int64) error {
	err := f.control("fallocate", func(fd int) error {
		var st unix.Statfs_t
		if err := unix.Fstatfs(fd, &st); err != nil {
			return err
		}
		if !Preallocates(typeName(int64(st.Type))) {
			return nil
		}
		return unix.Fallocate(fd, 0, 0, size)
	})
	// ext4 without extents, and what lies below an overlay, may not know it.
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}

// control runs call with the file's descriptor, which stays open meanwhile.
func (f *osFile) control(op string, call func(fd int) error) error {
	var callErr error
	err := f.raw.Control(func(fd uintptr) {
		callErr = ignoreEINTR(func() error { return call(int(fd)) })
	})
	if err == nil {
		err = callErr
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: f.Name(), Err: err}
	}
	return nil
}

func ignoreEINTR(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
