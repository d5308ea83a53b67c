package zfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Pull receives snapshots from a target into the dataset to of this machine: up to
// the one called name, or all if that is "". The dataset is made if it does not
// exist; one that an earlier pull has made gets what is new. The rules are those of
// Push; at the target nothing is changed.
func Pull(ctx context.Context, target Target, name, to string, opts TransferOptions) (TransferResult, error) {
	result := TransferResult{Sent: []Sent{}}
	err := validBackupDataset(to)
	switch {
	case err != nil:
	case target.IsDir():
		p := dirPull{dir: target.Dir, upTo: name, opts: opts, result: result}
		err = p.run(ctx, to)
		result = p.result
	case target.Host == "" && target.Dataset == to:
		err = fmt.Errorf("that is the backup itself: %w; name another dataset", ErrTargetInUse)
	default:
		r := replication{upTo: name, opts: opts, result: result, book: noBook{}}
		if err = r.read(ctx, target.host(), host{}, target.Dataset, to); err == nil {
			err = r.run(ctx)
		}
		result = r.result
	}
	if err != nil {
		return result, fmt.Errorf("pull %s into %s: %w", target, to, err)
	}
	return result, nil
}

// noBook changes nothing at the source.
type noBook struct{}

func (noBook) sending(context.Context, state) error { return nil }
func (noBook) sent(context.Context, state) error    { return nil }

// dirPull receives the streams of a directory.
type dirPull struct {
	dir    string
	upTo   string
	to     history
	opts   TransferOptions
	result TransferResult
}

func (p *dirPull) run(ctx context.Context, to string) error {
	files, _, err := readManifest(p.dir)
	whole := slices.ContainsFunc(files, func(f StreamFile) bool { return f.Snapshot == p.upTo })
	switch {
	case errors.Is(err, ErrDamaged) && whole: // what is behind the damaged line is not needed
	case errors.Is(err, ErrDamaged) && len(files) > 0:
		return fmt.Errorf("%w; --snapshot %s gets all that is before that line", err, files[len(files)-1].Snapshot)
	case err != nil:
		return err
	}
	if p.upTo != "" {
		i := slices.IndexFunc(files, func(f StreamFile) bool { return f.Snapshot == p.upTo })
		if i < 0 {
			return fmt.Errorf("snapshot %s: %w in %s; tarn backup list shows those that do", p.upTo, ErrNotFound, p.dir)
		}
		files = files[:i+1]
	}
	if len(files) == 0 {
		return fmt.Errorf("%s: %w: no stream in it is complete", p.dir, ErrNoBackup)
	}
	if p.to, err = readHistory(ctx, host{}, to); err != nil {
		return err
	}
	done, err := p.there(ctx, files)
	if err != nil {
		return err
	}
	for i, f := range files[done:] {
		if err := p.receive(ctx, f, i+1, len(files)-done); err != nil {
			return err
		}
	}
	p.result.Newest = files[len(files)-1].Snapshot
	return nil
}

// there tells how many of the streams are in the dataset, and marks the snapshots
// that an interrupted run has left unmarked.
func (p *dirPull) there(ctx context.Context, files []StreamFile) (int, error) {
	to := &p.to
	if !to.exists {
		parent := to.dataset[:strings.LastIndexByte(to.dataset, '/')]
		if _, err := to.properties(ctx, parent, "type"); err != nil {
			return 0, fmt.Errorf("the place for %s is missing: %w; create it, or import the pool", to.dataset, err)
		}
		return 0, nil
	}
	if err := to.checkUnmounted(); err != nil {
		return 0, err
	}
	done := 0
	for _, s := range to.snapshots {
		i := slices.IndexFunc(files, func(f StreamFile) bool { return f.GUID == s.guid })
		if i < 0 {
			continue
		}
		done = max(done, i+1)
		if s.ours == nil && !p.opts.DryRun {
			if err := setProperties(ctx, host{}, to.full(s), files[i].Properties); err != nil {
				return 0, err
			}
		}
	}
	if done == 0 {
		return 0, fmt.Errorf("%s exists, and holds no snapshot of %s: %w; name a dataset that does not exist, it is made then", to.dataset, p.dir, ErrTargetInUse)
	}
	return done, nil
}

// receive checks a stream file and receives it.
func (p *dirPull) receive(ctx context.Context, f StreamFile, i, n int) error {
	sent := Sent{Snapshot: f.Snapshot, From: f.From, SizeBytes: f.Size}
	if p.opts.DryRun {
		p.result.Sent = append(p.result.Sent, sent)
		return nil
	}
	if err := f.verify(ctx, p.dir, false, nil); err != nil {
		return err
	}
	file, err := os.Open(filepath.Join(p.dir, f.File))
	if err != nil {
		return err
	}
	defer file.Close()
	receive := []string{"zfs", "receive", "-u"}
	if f.FromGUID == "" {
		receive = append(receive, newTargetOptions...)
	}
	progress := Progress{Snapshot: f.Snapshot, Step: i, Steps: n, SizeBytes: f.Size}
	err = run(ctx, &countingReader{file, func(n int) {
		progress.SentBytes += int64(n)
		if p.opts.Progress != nil {
			p.opts.Progress(progress)
		}
	}}, nil, append(receive, p.to.dataset)...)
	if err != nil {
		return p.explain(ctx, f, err)
	}
	if err := setProperties(ctx, host{}, p.to.dataset+"@"+f.Snapshot, f.Properties); err != nil {
		return fmt.Errorf("%s was received, but not marked as a snapshot of tarn: %w", f.Snapshot, err)
	}
	p.result.Sent = append(p.result.Sent, sent)
	return nil
}

func (p *dirPull) explain(ctx context.Context, f StreamFile, err error) error {
	c, _ := asCommandError(err)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the transfer of %s was interrupted; run it again, it goes on behind the last complete snapshot: %w", f.Snapshot, ctx.Err())
	case c != nil && strings.Contains(c.Stderr, "has been modified"):
		return fmt.Errorf("receive %s: %w: %w; name a new dataset", f.File, ErrDiverged, err)
	}
	return fmt.Errorf("receive %s: %w", f.File, err)
}

// asCommandError is errors.As for a CommandError.
func asCommandError(err error) (*CommandError, bool) {
	var c *CommandError
	ok := errors.As(err, &c)
	return c, ok
}

// isReadError tells whether zfs could not read its own data.
func isReadError(c *CommandError) bool {
	text := strings.ToLower(c.Stderr)
	return strings.Contains(text, "input/output error") || strings.Contains(text, "invalid exchange") || strings.Contains(text, "checksum")
}
