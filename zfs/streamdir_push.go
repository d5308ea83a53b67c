package zfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// dirPush is a push into a directory.
type dirPush struct {
	dir    string
	from   history
	files  []StreamFile
	good   int64 // bytes of the manifest that are whole lines
	book   *ledger
	opts   TransferOptions
	result TransferResult
}

// pushToDir adds our snapshots to the chain in a directory, and begins one if it
// is empty. What was written in part by an earlier run is written anew.
func pushToDir(ctx context.Context, source string, target Target, opts TransferOptions) (TransferResult, error) {
	p := dirPush{dir: target.Dir, opts: opts, result: TransferResult{Sent: []Sent{}}}
	p.book = &ledger{dataset: source, target: target, opts: &p.opts}
	if err := p.run(ctx, source); err != nil {
		return p.result, fmt.Errorf("push %s to %s: %w", source, target, err)
	}
	return p.result, nil
}

func (p *dirPush) run(ctx context.Context, source string) (err error) {
	if p.from, err = readHistory(ctx, host{}, source); err != nil {
		return err
	}
	if !p.from.exists {
		return fmt.Errorf("dataset %s: %w; zfs list shows those that do", source, ErrNotFound)
	}
	if err := p.checkPlace(); err != nil {
		return err
	}
	if !p.opts.DryRun {
		if err := os.Mkdir(p.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w; is what it should be on mounted? The directory above must be there", err)
		}
		unlock, err := lockTarget(p.dir)
		if err != nil {
			return err
		}
		defer unlock()
	}
	if err := p.readDir(); err != nil {
		return err
	}
	steps, err := p.plan()
	if err != nil {
		return err
	}
	for i, s := range steps {
		if err := p.step(ctx, s, i+1, len(steps)); err != nil {
			return err
		}
	}
	if n := len(p.files); n > 0 {
		p.result.Newest = p.files[n-1].Snapshot
	}
	if p.opts.DryRun {
		return nil
	}
	if len(steps) == 0 { // an earlier run can have ended before the bookmark
		if s, ok := p.from.byGUID(p.files[len(p.files)-1].GUID); ok {
			if err := p.book.sent(ctx, s); err != nil {
				return err
			}
		}
	}
	return p.book.close(ctx, &p.from)
}

// readDir reads what is there. A chain with a file that is missing or cut is not added
// to: nothing behind that file could be restored. A directory with files of something
// else is refused: it may be the empty mount point of a disk that is not there.
func (p *dirPush) readDir() (err error) {
	p.files, p.good, err = readManifest(p.dir)
	for i := 0; err == nil && i < len(p.files); i++ {
		err = p.files[i].present(p.dir)
	}
	if errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w; nothing was sent, it could not be restored. Begin a new directory, and see with tarn backup verify what this one is still good for", err)
	}
	if err == nil || !errors.Is(err, ErrNoBackup) {
		return err
	}
	entries, err := os.ReadDir(p.dir)
	if errors.Is(err, fs.ErrNotExist) && p.opts.DryRun {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !isStreamFile(e.Name()) && e.Name() != "lost+found" {
			return fmt.Errorf("%s has no backup, and holds other files (%s): %w; name an empty directory, or one that is to be made", p.dir, e.Name(), ErrTargetInUse)
		}
	}
	return nil
}

func (p *dirPush) plan() ([]step, error) {
	ours := p.from.ours()
	if len(ours) == 0 {
		return nil, fmt.Errorf("%s: %w; make one with tarn snapshot create", p.from.dataset, ErrNothingToSend)
	}
	if len(p.files) == 0 {
		return chain(nil, ours), nil
	}
	last := p.files[len(p.files)-1]
	if last.Raw != p.from.encrypted {
		return nil, fmt.Errorf("%s holds streams of a dataset whose encryption was different: %w; name a new directory", p.dir, ErrMixed)
	}
	from, ok := p.from.byGUID(last.GUID)
	if !ok {
		return nil, fmt.Errorf("%s ends with %s of %s, which %s has neither as a snapshot nor as a bookmark: %w; nothing was changed. Name a new directory, it begins with a full stream",
			p.dir, last.Snapshot, last.Dataset, p.from.dataset, ErrDiverged)
	}
	newer := slices.DeleteFunc(ours, func(s state) bool { return s.order <= from.order })
	return chain(&from, newer), nil
}

// step writes one stream file and its line.
func (p *dirPush) step(ctx context.Context, s step, i, n int) error {
	r := replication{from: p.from}
	args := []string{r.sendFlag()}
	file := StreamFile{
		Format: streamFormat, Dataset: p.from.dataset, Raw: p.from.encrypted, Snapshot: s.to.name, GUID: s.to.guid,
		Created: s.to.ours.Created, Properties: s.to.ours.snapshotProperties(),
	}
	if s.from != nil {
		args = append(args, "-i", p.from.full(*s.from))
		file.From, file.FromGUID = s.from.name, s.from.guid
	}
	args = append(args, p.from.full(s.to))
	file.File = streamFileName(len(p.files)+1, file.From, file.Snapshot)
	size, err := r.estimate(ctx, args)
	if err != nil {
		return err
	}
	sent := Sent{Snapshot: file.Snapshot, From: file.From, SizeBytes: size}
	if p.opts.DryRun {
		p.result.Sent = append(p.result.Sent, sent)
		p.files = append(p.files, file)
		return nil
	}
	if err := enoughRoom(p.dir, size); err != nil {
		return err
	}
	progress := Progress{Snapshot: file.Snapshot, Step: i, Steps: n, SizeBytes: size}
	err = p.write(ctx, &file, append([]string{"zfs", "send"}, args...), func(n int) {
		progress.SentBytes += int64(n)
		if p.opts.Progress != nil {
			p.opts.Progress(progress)
		}
	})
	sent.SizeBytes = file.Size
	if err != nil {
		sent.SizeBytes = progress.SentBytes
		p.result.Part = &sent
		return p.explain(ctx, sent, err)
	}
	p.files = append(p.files, file)
	p.result.Sent = append(p.result.Sent, sent)
	return p.book.sent(ctx, s.to)
}

func (p *dirPush) explain(ctx context.Context, sent Sent, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the transfer of %s was interrupted; run it again, it begins that snapshot anew and keeps what is complete: %w", sent.Snapshot, ctx.Err())
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("transfer %s: %w: %w; make room in the file system of %s, or begin a new directory elsewhere", sent.Snapshot, ErrNoSpace, err, p.dir)
	}
	return fmt.Errorf("transfer %s: %w", sent.Snapshot, err)
}

// write makes the file and then the line of the manifest that counts it in. Each
// is durable before the next begins.
func (p *dirPush) write(ctx context.Context, file *StreamFile, send []string, progress func(int)) (err error) {
	path := filepath.Join(p.dir, file.File)
	f, err := os.OpenFile(path+partialSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(path + partialSuffix)
		}
	}()
	sum := &hashed{to: f, sum: sha256.New()}
	if err := run(ctx, nil, &meter{sum, progress}, send...); err != nil {
		return errors.Join(sum.err, err)
	}
	file.Size, file.SHA256 = sum.n, hex.EncodeToString(sum.sum.Sum(nil))
	if err := file.checkStream(f); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), os.Rename(path+partialSuffix, path), syncDir(p.dir)); err != nil {
		return err
	}
	return p.addLine(file)
}

// addLine adds a line to the manifest, in the place of one that a crash has torn.
func (p *dirPush) addLine(file *StreamFile) error {
	line, err := json.Marshal(file)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	f, err := os.OpenFile(filepath.Join(p.dir, manifestName), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(p.good); err != nil {
		return err
	}
	if _, err := f.WriteAt(line, p.good); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), syncDir(p.dir)); err != nil {
		return err
	}
	p.good += int64(len(line))
	return nil
}

// hashed writes and hashes, and keeps the error of writing.
type hashed struct {
	to  io.Writer
	sum hash.Hash
	n   int64
	err error
}

func (h *hashed) Write(p []byte) (int, error) {
	n, err := h.to.Write(p)
	h.sum.Write(p[:n])
	h.n += int64(n)
	if err != nil {
		h.err = err
	}
	return n, err
}
