package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/tarn-kv/tarn/store/auth"
)

// model is etcd's key space in the simplest form that can be right: every
// record that was ever written, in a list.
type model struct {
	rev, compacted int64
	history        []modelRecord
	stored         []modelRecord // history without what compactions removed
	leases         map[int64]int64
	alarms         map[Alarm]bool
	hashes         map[int64]HashResult // made by compactions since the start
	auth           *auth.State
}

type modelRecord struct {
	main, sub int64
	dead      bool
	kv        *mvccpb.KeyValue
}

func newModel() *model {
	return &model{rev: 1, compacted: -1, leases: map[int64]int64{}, alarms: map[Alarm]bool{}, hashes: map[int64]HashResult{}, auth: auth.New()}
}

func encodeKV(kv *mvccpb.KeyValue) []byte {
	b, err := proto.Marshal(kv)
	if err != nil {
		panic(err)
	}
	return b
}

// newest returns each key's newest record with main ≤ rev.
func newest(records []modelRecord, rev int64) map[string]modelRecord {
	m := make(map[string]modelRecord)
	for _, r := range records {
		if r.main <= rev {
			m[string(r.kv.Key)] = r
		}
	}
	return m
}

// at returns the live keys of a range at a revision, in key order.
func (m *model) at(rev int64, k KeyRange) (live []*mvccpb.KeyValue) {
	for _, r := range newest(m.history, rev) {
		if !r.dead && inRange(k, r.kv.Key) {
			live = append(live, r.kv)
		}
	}
	slices.SortFunc(live, func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Key, b.Key) })
	return live
}

func (m *model) get(rev int64, key []byte) *mvccpb.KeyValue {
	if r, ok := newest(m.history, rev)[string(key)]; ok && !r.dead {
		return r.kv
	}
	return nil
}

func inRange(k KeyRange, key []byte) bool {
	switch {
	case len(k.End) == 0:
		return bytes.Equal(k.Key, key)
	case bytes.Equal(k.End, []byte{0}):
		return bytes.Compare(key, k.Key) >= 0
	}
	return bytes.Compare(key, k.Key) >= 0 && bytes.Compare(key, k.End) < 0
}

func (m *model) checkRevision(rev int64) error {
	switch {
	case rev > m.rev:
		return ErrFutureRev
	case rev > 0 && rev < m.compacted:
		return ErrCompacted
	}
	return nil
}

// found is the answer to a range. all is what the limit was applied to.
type found struct {
	kvs, all []*mvccpb.KeyValue
	count    int64
	more     bool
}

// find evaluates a range at its revision, or at current if it has none.
func (m *model) find(q *RangeRequest, current int64) (f found) {
	rev := q.Revision
	if rev <= 0 {
		rev = current
	}
	live := m.at(rev, q.KeyRange)
	f.count = int64(len(live))
	if q.CountOnly {
		return f
	}
	for _, kv := range live {
		if q.MinMod != 0 && kv.ModRevision < q.MinMod || q.MaxMod != 0 && kv.ModRevision > q.MaxMod ||
			q.MinCreate != 0 && kv.CreateRevision < q.MinCreate || q.MaxCreate != 0 && kv.CreateRevision > q.MaxCreate {
			continue
		}
		f.all = append(f.all, kv)
	}
	slices.SortStableFunc(f.all, func(a, b *mvccpb.KeyValue) int {
		if c := compareBy(q.Target, a, b); q.Order != OrderDescend {
			return c
		}
		return compareBy(q.Target, b, a)
	})
	f.kvs = f.all
	if q.Limit > 0 && int64(len(f.all)) > q.Limit {
		f.kvs, f.more = f.all[:q.Limit], true
	}
	return f
}

func compareBy(t Target, a, b *mvccpb.KeyValue) int {
	switch t {
	case ByVersion:
		return cmp.Compare(a.Version, b.Version)
	case ByCreate:
		return cmp.Compare(a.CreateRevision, b.CreateRevision)
	case ByMod:
		return cmp.Compare(a.ModRevision, b.ModRevision)
	case ByValue:
		return bytes.Compare(a.Value, b.Value)
	}
	return bytes.Compare(a.Key, b.Key)
}

func (m *model) compact(rev int64) error {
	switch {
	case m.alarm(Corrupt):
		return ErrCorrupt
	case rev == 0 && m.compacted < 0:
		return nil
	case rev <= m.compacted:
		return ErrCompacted
	case rev > m.rev:
		return ErrFutureRev
	}
	m.hashes[rev] = HashResult{Hash: m.hashKeeping(rev, rev), HashRevision: rev, CompactRevision: m.compacted}
	if len(m.hashes) > storedHashLimit {
		delete(m.hashes, slices.Min(slices.Collect(maps.Keys(m.hashes))))
	}
	keep := newest(m.stored, rev)
	m.stored = slices.DeleteFunc(m.stored, func(r modelRecord) bool {
		if r.main > rev {
			return false
		}
		k := keep[string(r.kv.Key)]
		return k.main != r.main || k.sub != r.sub || r.dead && r.main < rev
	})
	m.compacted = rev
	return nil
}

// hash is etcd's HashKV.
func (m *model) hash(rev int64) uint32 { return m.hashKeeping(rev, 0) }

// hashKeeping is hash with the tombstones of a revision among what is kept: so a
// compaction makes the hash of its revision, as it keeps them.
func (m *model) hashKeeping(rev, tombstones int64) uint32 {
	keep := newest(m.stored, rev)
	for k, r := range keep {
		if r.dead && r.main != tombstones {
			delete(keep, k)
		}
	}
	b := []byte("key")
	for _, r := range m.stored {
		k, ok := keep[string(r.kv.Key)]
		kept := ok && k.main == r.main && k.sub == r.sub
		if r.main > rev || len(keep) > 0 && r.main <= m.compacted && !kept || r.dead && r.main == m.compacted {
			continue
		}
		b = binary.BigEndian.AppendUint64(b, uint64(r.main))
		b = append(b, '_')
		b = binary.BigEndian.AppendUint64(b, uint64(r.sub))
		if r.dead {
			b = append(b, 't')
		}
		b = append(b, encodeKV(r.kv)...)
	}
	return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
}

// restart is what closing and opening changes.
func (m *model) restart() { clear(m.hashes) }

// leaseKeys returns the keys of a lease, ascending.
func (m *model) leaseKeys(id int64) (keys []string) {
	for _, kv := range m.at(m.rev, everything) {
		if kv.Lease == id {
			keys = append(keys, string(kv.Key))
		}
	}
	return keys
}

func (m *model) alarm(t AlarmType) bool {
	for a := range m.alarms {
		if a.Type == t {
			return true
		}
	}
	return false
}
