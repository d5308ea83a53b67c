package zfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// copiedFile is what is recorded of a file when the copy is made.
type copiedFile struct {
	Name      string `json:"name"` // below the copy, with slashes
	SizeBytes int64  `json:"sizeBytes"`
	SHA256    string `json:"sha256"` // hex
}

// CheckFiles compares the files of a copy with what was recorded of them.
func (c *Copies) CheckFiles(ctx context.Context, name string) (err error) {
	dir, cleanup, err := c.Open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanup()) }()
	return CheckCopy(ctx, dir)
}

// CheckCopy is CheckFiles for the directory of a copy, wherever that was brought.
// It is nil if dir holds no description of a copy that can be read: then nothing
// is known of its files.
func CheckCopy(ctx context.Context, dir string) error {
	r, err := readRecord(dir)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("check the files of %s: %w", dir, explainFile(err, dir, dir))
	}
	if err != nil || len(r.Files) == 0 {
		return nil
	}
	found, err := hashFiles(ctx, dir)
	if err != nil {
		return fmt.Errorf("check the files of %s: %w", dir, explainFile(err, dir, dir))
	}
	if differ := differences(r.Files, found); len(differ) > 0 {
		return fmt.Errorf("the files in %s are not those that were copied: %w: %s", dir, ErrDamaged, strings.Join(differ, ", "))
	}
	return nil
}

// differences says what became of the files that were recorded.
func differences(recorded, found []copiedFile) (differ []string) {
	now := map[string]copiedFile{}
	for _, f := range found {
		now[f.Name] = f
	}
	for _, was := range recorded {
		is, there := now[was.Name]
		delete(now, was.Name)
		switch {
		case !there:
			differ = append(differ, was.Name+" is missing")
		case is.SizeBytes != was.SizeBytes:
			differ = append(differ, fmt.Sprintf("%s has %d bytes and had %d", was.Name, is.SizeBytes, was.SizeBytes))
		case is.SHA256 != was.SHA256:
			differ = append(differ, was.Name+" has other bytes")
		}
	}
	for _, f := range found {
		if _, added := now[f.Name]; added {
			differ = append(differ, f.Name+" came later")
		}
	}
	return differ
}

// hashFiles reads all files below dir but the description, in the order of their names.
func hashFiles(ctx context.Context, dir string) (files []copiedFile, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == recordName || name == recordName+newSuffix {
			return err
		}
		f, err := hashFile(ctx, path)
		f.Name = filepath.ToSlash(name)
		files = append(files, f)
		return err
	})
	slices.SortFunc(files, func(a, b copiedFile) int { return strings.Compare(a.Name, b.Name) })
	return files, err
}

func hashFile(ctx context.Context, path string) (copiedFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return copiedFile{}, err
	}
	defer f.Close()
	h := sha256.New()
	var size int64
	for {
		if err := ctx.Err(); err != nil {
			return copiedFile{}, err
		}
		n, err := io.CopyN(h, f, copyStep)
		size += n
		if errors.Is(err, io.EOF) {
			return copiedFile{SizeBytes: size, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
		}
		if err != nil {
			return copiedFile{}, err
		}
	}
}
