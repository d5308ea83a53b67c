package vfs

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// plainFS hides that its files are the operating system's.
type plainFS struct{ FS }

type plainFile struct{ File }

func (p plainFS) Create(name string) (File, error) {
	f, err := p.FS.Create(name)
	return plainFile{f}, err
}

// TestCopyFile copies files with data and holes in all places, through the kernel and without.
func TestCopyFile(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range 20 {
		dir := t.TempDir()
		src, dst := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		f, err := os.Create(src)
		if err != nil {
			t.Fatal(err)
		}
		size := rnd.Int64N(3 * copyStep)
		if i == 0 {
			size = 0
		}
		for range rnd.IntN(4) {
			part := bytes.Repeat([]byte{byte(rnd.IntN(256))}, rnd.IntN(1<<20))
			if _, err := f.WriteAt(part, rnd.Int64N(size+1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
			t.Fatal(err)
		}
		var files FS = OS
		if i%2 == 0 {
			files = plainFS{OS}
		}
		last := int64(-1)
		err = CopyFile(t.Context(), files, dst, src, func(done, total int64) {
			if done <= last || total != size {
				t.Errorf("progress %d of %d after %d", done, total, last)
			}
			last = done
		})
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(src)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(dst); err != nil || !bytes.Equal(got, want) {
			t.Errorf("case %d: the copy of %d bytes differs, %v", i, size, err)
		}
	}
}

func TestCopyFileRefuses(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "a")
	if err := os.WriteFile(src, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CopyFile(t.Context(), OS, src, src, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("onto itself: %v", err)
	}
	if err := CopyFile(t.Context(), OS, filepath.Join(dir, "b"), dir, nil); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a directory: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := CopyFile(ctx, OS, filepath.Join(dir, "c"), src, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
