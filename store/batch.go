package store

import (
	"github.com/tarn-kv/tarn/store/auth"
	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/wal"
)

// batch is what one frame of the log will hold: all the changes that were
// applied in memory while the batch before it was being synced. It is guarded by
// Store.mu until it is flushed, and belongs to the flusher then.
type batch struct {
	frame []byte // room for the frame's header, then the records
	// urgent is set if somebody waits for the batch. What can wait (the end of a
	// lease without keys) rides along with the next batch that is.
	urgent bool
	done   chan struct{} // closed when the batch is durable, or has failed
	err    error         // valid after done

	before   head // what takeBack goes back to
	changes  []changeRef
	controls []control
	auth     *auth.State // users and roles after the batch; nil if they stay
	// undo takes back the controls, called from the last to the first when the
	// disk has refused the batch.
	undo []func()
	// published is called, in order, once the batch is durable.
	published []func()
}

// changeRef tells where in the frame a change's value lies, to point the tail to
// the frame's final memory.
type changeRef struct {
	offset, length int
}

func newBatch(before head) *batch { return &batch{before: before, done: make(chan struct{})} }

func (b *batch) empty() bool { return len(b.frame) == 0 }

// room makes sure that n more bytes fit, so that a batch of one transaction is
// allocated once and exactly.
func (b *batch) room(n int) {
	if b.frame == nil {
		b.frame = make([]byte, wal.FrameHeader, wal.FrameHeader+n)
	} else if free := cap(b.frame) - len(b.frame); free < n {
		grown := make([]byte, len(b.frame), 2*cap(b.frame)+n)
		copy(grown, b.frame)
		b.frame = grown
	}
}

const recordHead = 1 + 10 + 10 + 5 // the most that stands before a change's value

// put appends the record of a put and returns its encoded KeyValue, which lies
// in the frame.
func (b *batch) put(rev Revision, r *record, key, value []byte) []byte {
	return b.change(rev, false, tree.KV{Key: key, Create: r.create, Mod: r.main, Version: r.version, Value: value, Lease: r.lease})
}

// tombstone appends the record of a delete: its KeyValue has the key alone.
func (b *batch) tombstone(rev Revision, key []byte) []byte {
	return b.change(rev, true, tree.KV{Key: key})
}

func (b *batch) change(rev Revision, dead bool, kv tree.KV) []byte {
	size := tree.KVSize(len(kv.Key), kv.Create, kv.Mod, kv.Version, len(kv.Value), kv.Lease)
	b.room(recordHead + size)
	b.frame = appendChange(b.frame, rev, dead, size)
	start := len(b.frame)
	b.frame = tree.AppendKV(b.frame, kv.Key, kv.Create, kv.Mod, kv.Version, kv.Value, kv.Lease)
	b.changes = append(b.changes, changeRef{start, size})
	return b.frame[start:len(b.frame):len(b.frame)]
}

// control appends the record of a change outside the key space.
func (b *batch) control(c control) {
	b.room(32)
	b.frame = c.append(b.frame)
	b.controls = append(b.controls, c)
}
