package tree

import (
	"context"
	"errors"
	"fmt"
)

// Defragment copies the file into a new one without free pages and puts that in
// its place. Readers go on: those under way finish on the old file, later ones use
// the new one. Apply waits until it returns.
//
// If it fails midway, or ctx ends, the old file stays in use. Only an error
// that matches ErrFailed is final: the new file is in place, but whether its name is
// durable is not known.
func (t *Tree) Defragment(ctx context.Context) error {
	t.write.Lock()
	defer t.write.Unlock()
	if err := t.writable(); err != nil {
		return err
	}
	old := t.handle
	if old == nil {
		return pathError("defragment", t.opts.Path, ErrClosed)
	}
	before := t.Size()
	h, err := t.copyFile(ctx, t.opts.Path+newSuffix)
	if err != nil {
		return err
	}
	if err := install(t.opts, t.opts.Path+newSuffix); err != nil {
		h.release()
		if errors.Is(err, ErrFailed) {
			return t.fail(err)
		}
		t.discard(t.opts.Path + newSuffix)
		return err
	}
	t.current.Lock()
	t.handle = h
	t.current.Unlock()
	old.release()
	t.measure(h)
	t.opts.Logger.Info("defragmented the tree", "path", t.opts.Path, "bytes_before", before, "bytes_after", t.Size())
	return nil
}

// copyFile makes a durable copy of the current file and opens it. After an error
// there is no copy.
func (t *Tree) copyFile(ctx context.Context, name string) (h *handle, err error) {
	if err := removeIfExists(t.opts, name); err != nil {
		return nil, err
	}
	o := t.opts
	o.PageSize = t.handle.db.Info().PageSize
	err = o.FS.Commit(name, func() (err error) {
		h, err = openHandle(name, o, modeCreate)
		return err
	})
	if err == nil {
		defer t.handle.readAhead(t.Size())()
		c := copier{ctx: ctx, tree: t, dst: h, name: name}
		err = c.run()
	}
	if err == nil {
		return h, nil
	}
	if h != nil {
		h.release()
	}
	t.discard(name)
	return nil, pathError("defragment", t.opts.Path, fmt.Errorf("the file is as it was: %w", asNoSpace(err)))
}

// discard removes a file that nobody needs. Open removes it otherwise.
func (t *Tree) discard(name string) {
	if err := removeIfExists(t.opts, name); err != nil {
		t.opts.Logger.Warn("a file is left over", "path", name, "error", err)
	}
}
