package tree

import (
	"bytes"
	"context"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

const (
	// copyBytes is what one pair of transactions copies: it bounds the memory
	// for the new pages and the time that old ones are held.
	copyBytes = 4 << 20

	// copyGrowStep is what the copy grows by, each time with a sync.
	copyGrowStep = 64 << 20
)

// copier copies all buckets of the tree, known and unknown, to a new file, in
// bounded pairs of a read and a write transaction. Nothing else writes
// meanwhile, so all the read transactions see the same.
type copier struct {
	ctx  context.Context
	tree *Tree
	dst  *handle
	name string

	from readTx
	to   *bolt.Tx
	size int // bytes put by this pair
	turn int // number of this pair: cursors and buckets of earlier ones are void
}

func (c *copier) run() error {
	c.dst.db.NoSync = true // the file has no name that counts until finish
	c.dst.db.AllocSize = copyGrowStep
	err := guard("copy", c.tree.opts.Path, c.copyAll)
	if c.from.Tx != nil {
		c.tree.endRead(c.from)
	}
	c.dst.abandon(c.to)
	if err != nil {
		return err
	}
	c.dst.db.NoSync = false
	c.dst.db.AllocSize = growStep
	return nil
}

func (c *copier) copyAll() error {
	if err := c.begin(); err != nil {
		return err
	}
	var names [][]byte
	err := c.from.ForEach(func(name []byte, _ *bolt.Bucket) error {
		names = append(names, bytes.Clone(name))
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := c.copyBucket([][]byte{name}); err != nil {
			return err
		}
	}
	return c.finish()
}

func (c *copier) begin() (err error) {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.from, err = c.tree.read(); err != nil {
		return err
	}
	c.size = 0
	c.turn++
	c.to, err = c.dst.db.Begin(true)
	return err
}

// commit writes what was put. The values are the source's mapped pages, so its
// transaction ends last.
func (c *copier) commit() error {
	err := c.tree.opts.FS.Commit(c.name, c.to.Commit)
	c.tree.endRead(c.from)
	c.from = readTx{}
	return err
}

// finish makes the copy durable and cuts off what it was grown by in advance.
func (c *copier) finish() error {
	if err := c.commit(); err != nil {
		return err
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	return c.tree.opts.FS.Commit(c.name, c.dst.trim)
}

// copyBucket makes and fills the bucket at path.
func (c *copier) copyBucket(path [][]byte) error {
	if err := c.makeBucket(path); err != nil {
		return err
	}
	var last []byte
	for more := true; more; {
		var err error
		if last, more, err = c.copyPart(path, last); err != nil {
			return fmt.Errorf("bucket %q: %w", path, err)
		}
	}
	return nil
}

// copyPart copies what follows the key last until the pair of transactions is
// renewed or the bucket ends.
func (c *copier) copyPart(path [][]byte, last []byte) (end []byte, more bool, err error) {
	turn := c.turn
	dst := bucketAt(c.to, path)
	dst.FillPercent = 1
	cur := bucketAt(c.from.Tx, path).Cursor()
	k, v := cur.First()
	if last != nil {
		if k, v = cur.Seek(last); bytes.Equal(k, last) {
			k, v = cur.Next()
		}
	}
	for ; k != nil; k, v = cur.Next() {
		if v == nil { // a bucket
			last = bytes.Clone(k)
			err = c.copyBucket(append(path[:len(path):len(path)], last))
		} else {
			c.size += len(k) + len(v)
			if err = dst.Put(k, v); err == nil && c.size >= copyBytes {
				last = bytes.Clone(k)
				if err = c.commit(); err == nil {
					err = c.begin()
				}
			}
		}
		if err != nil || c.turn != turn {
			return last, true, err
		}
	}
	return nil, false, nil
}

func (c *copier) makeBucket(path [][]byte) (err error) {
	parent, name := path[:len(path)-1], path[len(path)-1]
	var b *bolt.Bucket
	if len(parent) == 0 {
		b, err = c.to.CreateBucket(name)
	} else {
		b, err = bucketAt(c.to, parent).CreateBucket(name)
	}
	if err != nil {
		return fmt.Errorf("bucket %q: %w", path, err)
	}
	return b.SetSequence(bucketAt(c.from.Tx, path).Sequence())
}

func bucketAt(tx *bolt.Tx, path [][]byte) *bolt.Bucket {
	b := tx.Bucket(path[0])
	for _, name := range path[1:] {
		b = b.Bucket(name)
	}
	return b
}
