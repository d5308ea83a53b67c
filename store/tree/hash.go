package tree

import (
	"bytes"
	"context"
	"hash/crc32"

	bolt "go.etcd.io/bbolt"
)

// lookAround is the number of records between two looks at the context.
const lookAround = 4096

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Hash returns etcd's Hash (MNT-2): the CRC-32C over all buckets, except for what
// differs between members with the same data. It returns the context's error
// if that ends first.
func (t *Tree) Hash(ctx context.Context) (sum uint32, err error) {
	tx, err := t.read()
	if err != nil {
		return 0, err
	}
	defer t.endRead(tx)
	defer tx.handle.readAhead(tx.Size())()
	err = guard("hash", t.opts.Path, func() error {
		h := crc32.New(castagnoli)
		n := 0
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			h.Write(name)
			err := b.ForEach(func(k, v []byte) error {
				if n++; n%lookAround == 0 && ctx.Err() != nil {
					return ctx.Err()
				}
				if !bytes.Equal(name, bucketMeta) || !outOfHash(k) {
					h.Write(k)
					h.Write(v)
				}
				return nil
			})
			sum = h.Sum32()
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	return sum, ctx.Err()
}

func outOfHash(k []byte) bool {
	return bytes.Equal(k, metaTerm) || bytes.Equal(k, metaIndex) || bytes.Equal(k, metaStorageVersion)
}
