// Package migrate brings the data of other stores into a data directory of Tarn.
//
// An import checks all of its source before it writes, and gives what it wrote its final name only
// when it is whole and was read back. See DESIGN.md.
package migrate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
)

const (
	// blockSize divides the length of a database file. What exceeds it is the hash (SNP-4).
	blockSize = 512
	hashChunk = 1 << 20

	// newestMajor and newestMinor are the last version of etcd whose files are known.
	newestMajor, newestMinor = 3, 7

	// shownFindings is how many findings an error lists.
	shownFindings = 5
)

// source is a snapshot that was checked and is open for reading.
type source struct {
	tree   *tree.Tree
	meta   tree.Meta
	leases []tree.LeaseRecord
	alarms []tree.AlarmRecord
	auth   tree.Auth
	check  store.CheckReport
	left   []string // buckets that are not known
}

// openSource checks a file as a whole and opens it. While it is open no other process can write to it.
func openSource(ctx context.Context, path string, o Options) (*source, error) {
	if err := checkHash(ctx, path, o); err != nil {
		return nil, err
	}
	o.progress(StepCheck, 0, 0)
	check, err := store.CheckTree(ctx, path)
	if err != nil {
		return nil, explain(path, err)
	}
	if n := len(check.Findings); n > 0 {
		return nil, fmt.Errorf("%w: %d finding(s): %s", ErrSource, n, strings.Join(check.Findings[:min(n, shownFindings)], "; "))
	}
	s := &source{check: check}
	if s.tree, err = tree.Open(tree.Options{Path: path, ReadOnly: true}); err != nil {
		return nil, explain(path, err)
	}
	if err := s.read(path); err != nil {
		s.tree.Close()
		return nil, err
	}
	return s, nil
}

func (s *source) read(path string) (err error) {
	if s.meta, err = s.tree.Meta(); err != nil {
		return explain(path, err)
	}
	if err := checkVersion(s.meta.StorageVersion); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrSource, path, err)
	}
	if s.leases, err = s.tree.Leases(); err != nil {
		return explain(path, err)
	}
	if s.alarms, err = s.tree.Alarms(); err != nil {
		return explain(path, err)
	}
	if s.auth, err = s.tree.Auth(); err != nil {
		return explain(path, err)
	}
	if s.left, err = s.tree.UnknownBuckets(); err != nil {
		return explain(path, err)
	}
	return nil
}

// checkVersion looks at the version of etcd's schema. A file of etcd 3.5 has none.
func checkVersion(version string) error {
	if version == "" {
		return nil
	}
	var n [2]int
	parts := strings.SplitN(version, ".", 3)
	for i := range n {
		var err error
		if len(parts) < len(n) {
			return fmt.Errorf("its storage version is %q, which is no version", version)
		}
		if n[i], err = strconv.Atoi(parts[i]); err != nil {
			return fmt.Errorf("its storage version is %q, which is no version", version)
		}
	}
	if n[0] != newestMajor || n[1] > newestMinor {
		return fmt.Errorf("its storage version is %s, and the newest one known here is %d.%d; take a snapshot with that version of etcd, or a newer Tarn",
			version, newestMajor, newestMinor)
	}
	return nil
}

// notAFile says what to give instead of a directory of etcd.
func notAFile(path string) error {
	for _, below := range []string{"member/snap/db", "snap/db", "db"} {
		db := filepath.Join(path, filepath.FromSlash(below))
		if info, err := os.Stat(db); err == nil && info.Mode().IsRegular() {
			return fmt.Errorf("%s is a directory of etcd; stop etcd, then give %s with --skip-hash-check", path, db)
		}
	}
	return fmt.Errorf("%s is not a regular file", path)
}

// checkHash compares the hash at the end of a file with the rest.
func checkHash(ctx context.Context, path string, o Options) error {
	f, err := vfs.OpenRegular(path, os.O_RDONLY, 0)
	if errors.Is(err, vfs.ErrNotRegular) {
		return fmt.Errorf("%w: %w", ErrSource, notAFile(path))
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	is, err := tree.IsDatabase(f)
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", path, err)
	case info.Size() == 0:
		return fmt.Errorf("%w: %s is empty", ErrSource, path)
	case !is:
		return fmt.Errorf("%w: %s is no database: neither of its two meta pages is where it should be; give what `snapshot save` wrote, or member/snap/db of an etcd that was stopped, with --skip-hash-check", ErrSource, path)
	case o.SkipHashCheck:
		return nil
	case info.Size()%blockSize == 0:
		return fmt.Errorf("%w: %s has no hash at its end, so it is not what `snapshot save` writes, or was cut off; a member's own file (member/snap/db of an etcd that was stopped) has none: for that one add --skip-hash-check", ErrSource, path)
	case info.Size()%blockSize != sha256.Size:
		return fmt.Errorf("%w: %s has %d bytes, which no database has: it was cut off, or is another file", ErrSource, path, info.Size())
	}
	size := info.Size() - sha256.Size
	sum, buf := sha256.New(), make([]byte, min(hashChunk, size))
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		o.progress(StepHash, at, size)
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if err != nil && n == 0 {
			return fmt.Errorf("read %s: %w", path, err)
		}
		sum.Write(buf[:n])
		at += int64(n)
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(io.NewSectionReader(f, size, sha256.Size), want); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return fmt.Errorf("%w: the hash at the end of %s is not that of its content: it was changed or damaged since it was saved (`etcdutl hashkv` changes a file too); save a new one", ErrSource, path)
	}
	return nil
}
