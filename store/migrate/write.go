package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
)

// copyBytes is what one transaction copies: it bounds the memory for new pages.
const copyBytes = 4 << 20

// write makes the store and returns the number of records.
func write(ctx context.Context, s *source, id tree.StoreID, o Options) (n int64, err error) {
	t, err := openTarget(o)
	if err != nil {
		return 0, err
	}
	defer func() { err = t.close(s.explainNoSpace(t, err)) }()
	b, err := tree.NewBuilder(tree.Options{FS: o.FS, Path: t.tree})
	if err != nil {
		return 0, err
	}
	defer func() {
		if !t.installed {
			err = errors.Join(err, b.Discard())
		}
	}()
	c := copier{ctx: ctx, from: s, to: b, id: id, options: o}
	if err := c.run(); err != nil {
		return 0, err
	}
	if err := b.Finish(); err != nil {
		return 0, err
	}
	o.progress(StepVerify, 0, 0)
	if err := readBack(ctx, s, b.Name()); err != nil {
		return 0, err
	}
	err = b.Install()
	t.installed = err == nil || errors.Is(err, tree.ErrFailed)
	return c.records, err
}

// copier copies records as they are, byte for byte: the hash of the key space is made of them.
type copier struct {
	ctx     context.Context
	from    *source
	to      *tree.Builder
	id      tree.StoreID
	options Options

	batch   tree.Batch
	size    int   // bytes of values in batch
	done    int64 // bytes of values in all
	records int64
	failed  error
}

func (c *copier) run() error {
	v := c.from.tree.View()
	defer v.Close()
	if err := v.Scan(tree.Revision{}, c.record); err != nil {
		return errors.Join(c.failed, explain(c.from.tree.Path(), err))
	}
	if c.failed == nil {
		c.rest()
		c.flush()
	}
	return c.failed
}

// record takes one record; its value is valid until the view is closed.
func (c *copier) record(rev tree.Revision, dead bool, value []byte) bool {
	c.records++
	c.batch.Put = append(c.batch.Put, tree.Record{Rev: rev, Tombstone: dead, Value: value})
	if c.size += len(value); c.size >= copyBytes || len(c.batch.Put) >= lookAround {
		c.flush()
	}
	return c.failed == nil
}

// rest adds what is not in bucket key.
func (c *copier) rest() {
	b, meta := &c.batch, c.from.meta
	b.StoreID = &c.id
	b.LeasePut, b.AlarmPut = c.from.leases, c.from.alarms
	auth := c.from.auth
	if auth.Enabled || auth.Revision > 0 {
		b.AuthEnabled, b.AuthRevision = &auth.Enabled, &auth.Revision
	}
	b.AuthUsers, b.AuthRoles = auth.Users, auth.Roles
	if meta.ScheduledCompact >= 0 {
		b.ScheduledCompact = &meta.ScheduledCompact
	}
	if meta.FinishedCompact >= 0 {
		b.FinishedCompact = &meta.FinishedCompact
	}
}

func (c *copier) flush() {
	if c.failed = c.ctx.Err(); c.failed != nil {
		return
	}
	c.failed = c.to.Apply(&c.batch)
	c.done += int64(c.size)
	c.batch, c.size = tree.Batch{Put: c.batch.Put[:0]}, 0
	c.options.progress(StepCopy, c.done, max(c.done, c.from.tree.InUse()))
}

// explainNoSpace says how much space is needed, where that is what was missing. The unfinished
// file is gone already.
func (s *source) explainNoSpace(t *target, err error) error {
	if !vfs.IsNoSpace(err) {
		return err
	}
	const mib = 1 << 20
	free := "less than that"
	if u, usageErr := t.fs.Usage(t.dir); usageErr == nil {
		free = fmt.Sprintf("%d MiB", u.Free/mib)
	}
	return &noSpaceError{
		text:  fmt.Sprintf("there is no space for the store in %s: it needs about %d MiB, and %s are free; nothing was written", t.dir, s.tree.InUse()/mib+1, free),
		cause: err,
	}
}

// noSpaceError has a text that names each thing once.
type noSpaceError struct {
	text  string
	cause error
}

func (e *noSpaceError) Error() string { return e.text }
func (e *noSpaceError) Unwrap() error { return e.cause }

// readBack compares what was written with what was read.
func readBack(ctx context.Context, s *source, name string) error {
	got, err := store.CheckTree(ctx, name)
	if err != nil {
		return err
	}
	want := s.check
	if len(got.Findings) > 0 || got.Revision != want.Revision || got.CompactRevision != want.CompactRevision ||
		got.Keys != want.Keys || got.Hash != want.Hash {
		return fmt.Errorf("what was written to %s is not what was read (%d findings, revision %d instead of %d, hash %08x instead of %08x); check memory and disk, then try again",
			name, len(got.Findings), got.Revision, want.Revision, got.Hash, want.Hash)
	}
	return nil
}
