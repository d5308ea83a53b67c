package zfs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Create copies the files into a directory that gets its name at the end, so that
// a snapshot is there as a whole or not at all, also after a crash.
func (c *Copies) Create(ctx context.Context, opts CreateOptions) (_ Snapshot, err error) {
	name, props, err := opts.nameAndProperties()
	if err != nil {
		return Snapshot{}, err
	}
	fail := func(err error) (Snapshot, error) {
		left := ""
		if err = c.explain(err); errors.Is(err, ErrNoSpace) {
			left = "nothing of it is left: "
		}
		return Snapshot{}, fmt.Errorf("make a snapshot of %s: %s%w", c.dir, left, err)
	}
	owner, err := ownerOf(c.dir)
	if err != nil {
		return fail(err)
	}
	if err := owner.mkdir(c.root); err != nil && !errors.Is(err, fs.ErrExist) {
		return fail(c.explainRoot(err))
	}
	if err := c.badRoot(); err != nil {
		return fail(err)
	}
	var random [8]byte
	rand.Read(random[:])
	work := filepath.Join(c.root, fmt.Sprintf("%s%x", unfinishedPrefix, random))
	if err := owner.mkdir(work); err != nil {
		return fail(err)
	}
	working, err := lockDir(ctx, work)
	if err != nil {
		return fail(err)
	}
	defer working.Close()
	made := false
	defer func() {
		if !made {
			err = errors.Join(err, os.RemoveAll(work))
		}
	}()
	if opts.Fill != nil {
		err = opts.Fill(ctx, work)
	} else {
		err = copyNamed(ctx, work, c.dir, opts.Files)
	}
	if err != nil {
		return fail(err)
	}
	if made, err := os.ReadDir(work); err != nil {
		return fail(err)
	} else if len(made) == 0 {
		return fail(fmt.Errorf("there is nothing to copy: %w", fs.ErrNotExist))
	}
	r := &copyRecord{Format: 1, GUID: newGUID(random), Created: time.Now().UTC().Truncate(time.Second), Properties: props}
	if opts.Hold != "" {
		r.Holds = []string{opts.Hold}
	}
	if err := settle(work, owner); err != nil {
		return fail(err)
	}
	if r.Files, err = hashFiles(ctx, work); err != nil {
		return fail(err)
	}
	if err := c.publish(ctx, work, name, r, owner); err != nil {
		return fail(err)
	}
	made = true
	return c.get(r.Name)
}

// publish gives a finished directory its name, and removes what others have left.
func (c *Copies) publish(ctx context.Context, work string, name Name, r *copyRecord, o owner) error {
	lock, err := lockDir(ctx, c.root)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := c.removeLeftovers(); err != nil {
		return err
	}
	snaps, err := c.List(ctx)
	if err != nil {
		return err
	}
	r.Order = 1
	if len(snaps) > 0 {
		r.Order = snaps[len(snaps)-1].Order + 1
	}
	for {
		if _, err := os.Lstat(c.path(name.String())); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
		if name.Nth++; name.Nth > maxNth {
			return fmt.Errorf("%w: %s", ErrExists, c.path(name.String()))
		}
	}
	r.Name = name.String()
	if err := writeRecord(work, r); err != nil {
		return err
	}
	if err := o.give(filepath.Join(work, recordName)); err != nil {
		return err
	}
	if err := os.Rename(work, c.path(r.Name)); err != nil {
		return err
	}
	return syncDir(c.root)
}

// removeLeftovers removes unfinished directories that nobody works on any more.
// The lock of the root must be held.
func (c *Copies) removeLeftovers() error {
	left, err := filepath.Glob(filepath.Join(escapeGlob(c.root), unfinishedPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		lock, err := tryLockDir(dir)
		if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = os.RemoveAll(dir)
		lock.Close()
		if err != nil {
			return fmt.Errorf("remove what an interrupted snapshot has left: %w", err)
		}
	}
	return nil
}
