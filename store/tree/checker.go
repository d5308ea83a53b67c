package tree

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// checker compares records with the schema.
type checker struct {
	ctx     context.Context
	finding func(string)
	n       int
}

// lineage is the newest record of a key so far.
type lineage struct {
	create, version int64
	dead            bool
}

func (c *checker) reportf(format string, args ...any) { c.finding(fmt.Sprintf(format, args...)) }

func badKey(k []byte) string { return fmt.Sprintf("record %x: the key is not a revision", k) }

func (c *checker) run(tx *bolt.Tx) error {
	if err := c.records(tx.Bucket(bucketKey)); err != nil {
		return err
	}
	c.meta(tx)
	decode := map[string]func(k, v []byte) error{
		string(bucketLease):     func(k, v []byte) error { _, err := decodeLease(k, v); return err },
		string(bucketAlarm):     func(k, _ []byte) error { _, err := decodeAlarm(k); return err },
		string(bucketMembers):   func(k, v []byte) error { _, err := decodeMember(k, v); return err },
		string(bucketAuth):      checkAuth,
		string(bucketAuthUsers): checkNamed,
		string(bucketAuthRoles): checkNamed,
	}
	return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
		check := decode[string(name)]
		return b.ForEach(func(k, v []byte) error {
			if check == nil {
				return c.look()
			}
			if v == nil {
				c.reportf("bucket %s: %x is a bucket and not a record", name, k)
			} else if err := check(k, v); err != nil {
				c.reportf("bucket %s: %v", name, err)
			}
			return c.look()
		})
	})
}

// look looks at the context now and then.
func (c *checker) look() error {
	if c.n++; c.n%lookAround == 0 {
		return c.ctx.Err()
	}
	return nil
}

// records walks bucket key in the order of revisions.
func (c *checker) records(b *bolt.Bucket) error {
	keys := map[string]lineage{}
	return b.ForEach(func(k, v []byte) error {
		rev, dead, ok := ParseKey(k)
		switch {
		case !ok:
			c.finding(badKey(k))
		case v == nil:
			c.reportf("record %x: it is a bucket", k)
		default:
			c.record(keys, rev, dead, v)
		}
		return c.look()
	})
}

func (c *checker) record(keys map[string]lineage, rev Revision, dead bool, v []byte) {
	kv, err := DecodeKV(v)
	if err == nil {
		err = CheckRecord(rev, dead, kv, len(v))
	}
	switch {
	case err != nil:
		c.reportf("record %d/%d: %v", rev.Main, rev.Sub, err)
	case len(v) == 0:
	case dead:
		keys[string(kv.Key)] = lineage{dead: true}
	default:
		c.put(keys, rev, kv)
	}
}

// put checks a record against the one before of the same key. Compaction takes a
// key's oldest records first, so what is left has no gaps.
func (c *checker) put(keys map[string]lineage, rev Revision, kv KV) {
	last, known := keys[string(kv.Key)]
	switch {
	case known && last.dead && kv.Version != 1:
		c.reportf("record %d/%d: %q has version %d after it was deleted", rev.Main, rev.Sub, kv.Key, kv.Version)
	case known && !last.dead && (kv.Version != last.version+1 || kv.Create != last.create):
		c.reportf("record %d/%d: %q goes from version %d (create_revision %d) to %d (%d)",
			rev.Main, rev.Sub, kv.Key, last.version, last.create, kv.Version, kv.Create)
	}
	keys[string(kv.Key)] = lineage{create: kv.Create, version: kv.Version}
}

// meta checks what Open would refuse or misread.
func (c *checker) meta(tx *bolt.Tx) {
	m, err := readMeta(tx)
	if err != nil {
		c.finding(err.Error())
	} else if m.FinishedCompact > m.ScheduledCompact && m.ScheduledCompact >= 0 {
		c.reportf("meta: the finished compaction %d is newer than the scheduled one %d", m.FinishedCompact, m.ScheduledCompact)
	}
	if state := tx.Bucket(bucketMeta).Get(metaConfState); state != nil && !json.Valid(state) {
		c.reportf("meta: confState is not JSON (%q)", state)
	}
	if b := tx.Bucket(bucketAlarm); b != nil {
		_ = b.ForEach(func(k, v []byte) error {
			if len(v) != 0 && !bytes.Equal(v, ownAlarm) {
				c.reportf("bucket alarm: %x has a value", k)
			}
			return nil
		})
	}
}
