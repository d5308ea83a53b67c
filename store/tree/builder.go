package tree

import (
	"errors"
	"fmt"
	"io/fs"

	bolt "go.etcd.io/bbolt"
)

// Builder makes a new tree under another name. It is used by one goroutine and ends with
// Install or with Discard. A crash before Install leaves a file with the name that Name
// gives, which the next builder removes.
type Builder struct {
	opts Options
	name string
	h    *handle // nil when finished
}

// BuildSuffix is the ending of a file's name until Install. It is not that of a copy, or of a
// new and empty file, which nobody misses.
const BuildSuffix = ".import"

// NewBuilder begins a tree for o.Path. The error matches fs.ErrExist if there is one already.
func NewBuilder(o Options) (*Builder, error) {
	o = o.withDefaults()
	if f, err := o.FS.OpenRead(o.Path); err == nil {
		f.Close()
		return nil, pathError("create", o.Path, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, pathError("create", o.Path, err)
	}
	b := &Builder{opts: o, name: o.Path + BuildSuffix}
	if err := removeIfExists(o, b.name); err != nil {
		return nil, err
	}
	err := o.FS.Commit(b.name, func() (err error) {
		b.h, err = openHandle(b.name, o, modeCreate)
		return err
	})
	if err == nil {
		b.h.db.NoSync = true // the file has no name that counts until Install
		err = b.update(createBuckets)
	}
	if err != nil {
		b.Discard()
		return nil, pathError("create", o.Path, asNoSpace(err))
	}
	return b, nil
}

// Name is the name that the file has until Install.
func (b *Builder) Name() string { return b.name }

// Apply makes the changes of a batch, which need not be durable yet.
func (b *Builder) Apply(batch *Batch) error {
	err := b.update(func(tx *bolt.Tx) error {
		a := applier{tx: tx}
		return a.run(batch)
	})
	if err != nil {
		return pathError("write", b.name, asNoSpace(err))
	}
	return nil
}

func (b *Builder) update(fn func(tx *bolt.Tx) error) error {
	tx, err := b.h.db.Begin(true)
	if err != nil {
		return err
	}
	err = fn(tx)
	if err == nil {
		err = b.opts.FS.Commit(b.name, tx.Commit)
	}
	if err != nil {
		b.h.abandon(tx)
	}
	return err
}

// Finish makes the file durable and closes it. It can then be opened by its name, for reading.
func (b *Builder) Finish() error {
	err := b.opts.FS.Commit(b.name, b.h.trim)
	b.h.release()
	err = errors.Join(err, b.h.closeErr)
	b.h = nil
	if err != nil {
		return pathError("write", b.name, asNoSpace(err))
	}
	return nil
}

// Install gives the finished file its name. When it returns an error that matches ErrFailed, the
// file has it, but a crash can take it back.
func (b *Builder) Install() error { return install(b.opts, b.name) }

// Discard removes the file. It does nothing after Install.
func (b *Builder) Discard() error {
	if b.h != nil {
		b.h.release()
		b.h = nil
	}
	return removeIfExists(b.opts, b.name)
}

// commitAgain commits nothing, so that both meta pages of a new file stand for what is in it:
// when one is damaged later, the other one is not that of an empty file.
func (h *handle) commitAgain() error { return h.db.Update(func(*bolt.Tx) error { return nil }) }

// trim cuts off what the file was grown by in advance, and syncs it.
func (h *handle) trim() error {
	if err := h.commitAgain(); err != nil {
		return err
	}
	tx, err := h.db.Begin(false)
	if err != nil {
		return err
	}
	size := tx.Size()
	if err := tx.Rollback(); err != nil {
		return err
	}
	if err := h.file.Truncate(size); err != nil {
		return err
	}
	return h.db.Sync()
}

// UnknownBuckets returns the quoted names of the buckets that are in the file and have no meaning here.
func (t *Tree) UnknownBuckets() (names []string, err error) {
	err = t.inRead("list the buckets of", func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
			for _, known := range allBuckets {
				if string(name) == string(known) {
					return nil
				}
			}
			names = append(names, fmt.Sprintf("%q", name))
			return nil
		})
	})
	return names, err
}
