package main

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tarn-kv/tarn/store/tree"
)

// Kinds of records in a frame of the log, as in store/walrecord.go. They are read
// here by code of their own: what decides about the store should not be the store.
const (
	recordPut     = 1
	recordDelete  = 2
	recordGrant   = 3
	recordRevoke  = 4
	recordCompact = 5
	recordAlarm   = 6
	recordBoot    = 7
)

// record is one record of a frame. number is the ID of a lease, or the revision of
// a compaction.
type record struct {
	kind   byte
	change recordedChange
	number int64
}

// recordedChange is one change of a key.
type recordedChange struct {
	revision  int64
	key       string
	value     string
	lease     int64
	tombstone bool
}

// fields reads numbers and byte strings and remembers the first error.
type fields struct {
	b   []byte
	err error
}

func (f *fields) skip(n int) []byte {
	if n < 0 || n > len(f.b) {
		f.err = errors.Join(f.err, errors.New("a record ends too early"))
		n = len(f.b)
	}
	b := f.b[:n]
	f.b = f.b[n:]
	return b
}

func (f *fields) number() int64 {
	v, n := binary.Varint(f.b)
	if n == 0 {
		n = -1
	}
	f.skip(n)
	return v
}

func (f *fields) bytes() []byte {
	v, n := binary.Uvarint(f.b)
	if n == 0 {
		n = -1
	}
	f.skip(n)
	return f.skip(int(min(v, 1<<31)))
}

// decodeFrame returns the records of a frame.
func decodeFrame(payload []byte) (records []record, err error) {
	f := fields{b: payload}
	for len(f.b) > 0 && f.err == nil {
		r := record{kind: f.skip(1)[0]}
		switch r.kind {
		case recordPut, recordDelete:
			main := f.number()
			f.number() // position within the revision
			kv, err := tree.DecodeKV(f.bytes())
			f.err = errors.Join(f.err, err)
			r.change = recordedChange{revision: main, key: string(kv.Key), value: string(kv.Value),
				lease: kv.Lease, tombstone: r.kind == recordDelete}
		case recordGrant:
			r.number = f.number()
			f.number() // TTL
		case recordAlarm:
			f.number()
			f.number()
			f.skip(1)
		case recordRevoke, recordCompact, recordBoot:
			r.number = f.number()
		default:
			f.err = fmt.Errorf("record of unknown kind %d", r.kind)
		}
		records = append(records, r)
	}
	return records, f.err
}
