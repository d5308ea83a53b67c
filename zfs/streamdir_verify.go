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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// verifyDir reads every stream file and compares it with the manifest. deep lets
// zstream check the checksums within the streams, too.
func verifyDir(ctx context.Context, dir string, opts VerifyOptions) (BackupReport, error) {
	var report BackupReport
	files, _, err := readManifest(dir)
	if errors.Is(err, ErrDamaged) {
		report.find("%v", err)
		err = nil
	}
	if err != nil {
		return report, err
	}
	if len(files) == 0 && len(report.Findings) == 0 {
		return report, fmt.Errorf("%s: %w: no stream in it is complete", dir, ErrNoBackup)
	}
	for i := range files {
		p := Progress{Snapshot: files[i].Snapshot, Step: i + 1, Steps: len(files), SizeBytes: files[i].Size}
		err := files[i].verify(ctx, dir, opts.Deep, func(n int) {
			p.SentBytes += int64(n)
			if opts.Progress != nil {
				opts.Progress(p)
			}
		})
		switch {
		case errors.Is(err, ErrDamaged):
			report.find("%v", err)
			continue
		case err != nil:
			return report, err
		}
		report.Snapshots++
		report.Newest = files[i].Snapshot
	}
	if n := len(report.Findings); n > 0 && len(files) > 0 {
		report.Newest = lastGood(files, report.Findings)
	}
	report.Notes = append(report.Notes, strangers(dir, files)...)
	return report, nil
}

// lastGood is the snapshot that can still be had: the last before the first damaged file.
func lastGood(files []StreamFile, findings []string) string {
	newest := ""
	for _, f := range files {
		if slices.ContainsFunc(findings, func(s string) bool { return strings.HasPrefix(s, f.File+":") }) {
			break
		}
		newest = f.Snapshot
	}
	return newest
}

// strangers are notes on stream files that no line counts in.
func strangers(dir string, files []StreamFile) (notes []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []string{err.Error()}
	}
	for _, e := range entries {
		known := slices.ContainsFunc(files, func(f StreamFile) bool { return f.File == e.Name() })
		if isStreamFile(e.Name()) && !known {
			notes = append(notes, e.Name()+" is not in the manifest: it is what an interrupted push has left, and the next one replaces it")
		}
	}
	return notes
}

// verify reads a file. ErrDamaged is returned if it is not what the manifest says.
func (f *StreamFile) verify(ctx context.Context, dir string, deep bool, progress func(int)) error {
	file, err := os.Open(filepath.Join(dir, f.File))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: the file is missing", f.File, ErrDamaged)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != f.Size {
		return fmt.Errorf("%s: %w: it has %d bytes, and the manifest says %d", f.File, ErrDamaged, info.Size(), f.Size)
	}
	sum := sha256.New()
	if _, err := io.Copy(&meter{sum, progress}, &contextReader{ctx, file}); err != nil {
		return fmt.Errorf("read %s: %w", f.File, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.SHA256 {
		return fmt.Errorf("%s: %w: its SHA-256 is %s, and the manifest says %s", f.File, ErrDamaged, got, f.SHA256)
	}
	if err := f.checkStream(file); err != nil || !deep {
		return err
	}
	return f.dump(ctx, file)
}

// dump lets zstream check the stream.
func (f *StreamFile) dump(ctx context.Context, file *os.File) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var said complaints
	// zstream complains on stderr, and ends with 0 all the same.
	err := run(ctx, file, &said, "sh", "-c", "exec zstream dump 2>&1")
	var exit *exec.ExitError
	switch {
	case said.found:
		return fmt.Errorf("%s: %w: a checksum within the stream is wrong", f.File, ErrDamaged)
	case errors.As(err, &exit) && exit.ExitCode() == 127:
		return errors.New("zstream is not installed here, it comes with ZFS: leave out --deep, or receive the backup with tarn backup pull")
	}
	return err
}

// contextReader ends reading with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
