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
)

// verifyDir reads every stream file and compares it with the manifest. deep lets
// zstream check the checksums within the streams, too.
func verifyDir(ctx context.Context, dir string, opts VerifyOptions) (BackupReport, error) {
	var report BackupReport
	m, err := scanManifest(dir)
	if err != nil {
		return report, err
	}
	files, sound := m.files, m.sound // whose last can be had if nothing else is damaged
	for _, problem := range m.problems {
		report.find("%v", problem)
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
			sound = min(sound, i)
			continue
		case err != nil:
			return report, err
		}
		report.Snapshots++
	}
	if sound > 0 {
		report.Newest = files[sound-1].Snapshot
	}
	report.Notes = append(report.Notes, m.strangers(dir)...)
	return report, nil
}

// strangers are notes on stream files that no line counts in.
func (m *manifest) strangers(dir string) (notes []string) {
	why := "is not in the manifest: it is what an interrupted push has left, and the next one replaces it"
	if len(m.problems) > 0 {
		why = "is in no line of the manifest that can be read: keep it, a damaged line may be its own"
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []string{err.Error()}
	}
	for _, e := range entries {
		known := slices.ContainsFunc(m.files, func(f StreamFile) bool { return f.File == e.Name() })
		if isStreamFile(e.Name()) && !known {
			notes = append(notes, e.Name()+" "+why)
		}
	}
	return notes
}

// present makes sure that a file is there and as long as the manifest says.
// ErrDamaged is returned if not.
func (f *StreamFile) present(dir string) error {
	info, err := os.Stat(filepath.Join(dir, f.File))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w: the file is missing", f.File, ErrDamaged)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: %w: it is no regular file", f.File, ErrDamaged)
	case info.Size() != f.Size:
		return fmt.Errorf("%s: %w: it has %d bytes, and the manifest says %d", f.File, ErrDamaged, info.Size(), f.Size)
	}
	return nil
}

// verify reads a file. ErrDamaged is returned if it is not what the manifest says.
func (f *StreamFile) verify(ctx context.Context, dir string, deep bool, progress func(int)) error {
	if err := f.present(dir); err != nil {
		return err
	}
	file, err := os.Open(filepath.Join(dir, f.File))
	if err != nil {
		return err
	}
	defer file.Close()
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
