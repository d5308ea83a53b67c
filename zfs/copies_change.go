package zfs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Hold keeps a snapshot from being destroyed.
func (c *Copies) Hold(ctx context.Context, name, tag string) error {
	if err := ValidTag(tag); err != nil {
		return err
	}
	return c.change(ctx, name, func(r *copyRecord) {
		if !slices.Contains(r.Holds, tag) {
			r.Holds = append(r.Holds, tag)
			slices.Sort(r.Holds)
		}
	})
}

// Release takes a hold away.
func (c *Copies) Release(ctx context.Context, name, tag string) error {
	if err := ValidTag(tag); err != nil {
		return err
	}
	return c.change(ctx, name, func(r *copyRecord) {
		r.Holds = slices.DeleteFunc(r.Holds, func(t string) bool { return t == tag })
	})
}

// SetProperty sets one of the properties of a snapshot.
func (c *Copies) SetProperty(ctx context.Context, name, property, value string) error {
	return c.change(ctx, name, func(r *copyRecord) { r.Properties[property] = value })
}

// lock keeps other commands from changing copies. ErrNotFound is returned when
// there are none.
func (c *Copies) lock(ctx context.Context) (io.Closer, error) {
	lock, err := lockDir(ctx, c.root)
	if err != nil {
		return nil, fmt.Errorf("change the snapshots of %s: %w", c.dir, c.explain(err))
	}
	return lock, nil
}

func (c *Copies) change(ctx context.Context, name string, f func(*copyRecord)) error {
	if _, err := c.sound(name); err != nil {
		return err
	}
	lock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := c.sound(name); err != nil {
		return err
	}
	r, err := c.record(name)
	if err != nil {
		return err
	}
	f(r)
	o, err := ownerOf(c.path(name))
	if err == nil {
		err = writeRecord(c.path(name), r)
	}
	if err == nil {
		err = o.give(filepath.Join(c.path(name), recordName))
	}
	if err != nil {
		return fmt.Errorf("change the snapshot %s: %w", c.path(name), c.explain(err))
	}
	return nil
}

// Destroy destroys one snapshot, also one whose description is damaged: its name
// goes first, in one step.
func (c *Copies) Destroy(ctx context.Context, name string) error {
	if _, err := c.get(name); err != nil {
		return err
	}
	lock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	s, err := c.get(name)
	if err != nil {
		return err
	}
	path := c.path(name)
	if err := s.KeptByUse(c.root); err != nil {
		return err
	}
	reading, err := tryLockDir(path)
	if errors.Is(err, errLocked) {
		return fmt.Errorf("destroy the snapshot %s: %w: it is being read; try again later", path, ErrBusy)
	}
	if err != nil {
		return fmt.Errorf("destroy the snapshot %s: %w", path, c.explain(err))
	}
	defer reading.Close()
	gone := filepath.Join(c.root, unfinishedPrefix+rand.Text())
	if err = os.Rename(path, gone); err == nil {
		err = errors.Join(syncDir(c.root), os.RemoveAll(gone))
	}
	if err != nil {
		return fmt.Errorf("destroy the snapshot %s: %w", path, c.explain(err))
	}
	return nil
}

// Open gives the directory of a snapshot.
func (c *Copies) Open(_ context.Context, name string) (string, func() error, error) {
	if _, err := c.sound(name); err != nil {
		return "", nil, err
	}
	reading, err := shareDir(c.path(name))
	if err != nil {
		return "", nil, fmt.Errorf("open the snapshot %s: %w", c.path(name), c.explain(err))
	}
	return c.path(name), reading.Close, nil
}
