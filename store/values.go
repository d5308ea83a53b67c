package store

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tarn-kv/tarn/store/tree"
)

// A stored record is the wire encoding of mvccpb.KeyValue, so an answer is put
// together from tags, lengths and stored bytes: nothing is decoded.

// FramedSize returns the number of bytes that AppendValues appends.
func FramedSize(items []Item, num protowire.Number) int {
	n := len(items) * protowire.SizeTag(num)
	for i := range items {
		n += protowire.SizeBytes(items[i].Size)
	}
	return n
}

// AppendValues appends each item's encoded mvccpb.KeyValue as field num of a
// protobuf message. The items must come from a result or a reader that is not
// closed yet. An error means that a record can not be read, which stops the store.
func (s *Store) AppendValues(dst []byte, items []Item, num protowire.Number) ([]byte, error) {
	base := len(dst)
	n := FramedSize(items, num)
	dst = slices.Grow(dst, n)[:base+n] // every byte is written below
	if err := s.FillValues([][]byte{dst[base:]}, items, num); err != nil {
		return dst[:base], err
	}
	return dst, nil
}

// treeValue reads one record from the tree, into memory of its own.
func (s *Store) treeValue(rev Revision) ([]byte, error) {
	v := s.tree.View()
	defer v.Close()
	stored, ok := v.Get(rev)
	if !ok {
		if err := v.Err(); err != nil {
			return nil, err
		}
		return nil, damage(fmt.Errorf("record %d/%d is not in the tree", rev.Main, rev.Sub))
	}
	return append([]byte(nil), stored...), nil
}

// recordValue reads one record, from the tail or from the tree.
func (s *Store) recordValue(rev Revision) ([]byte, error) {
	s.mem.mu.RLock()
	v, ok := s.mem.tailValue(rev.Main, int32(rev.Sub))
	s.mem.mu.RUnlock()
	if ok {
		return v, nil
	}
	return s.treeValue(rev)
}

// lockedValue is recordValue for a caller that holds mem.mu.
func (s *Store) lockedValue(rev Revision) ([]byte, error) {
	if v, ok := s.mem.tailValue(rev.Main, int32(rev.Sub)); ok {
		return v, nil
	}
	return s.treeValue(rev)
}

// AppendKeysOnly is AppendValues without the values: key, revisions, version and
// lease come from the index.
func AppendKeysOnly(dst []byte, items []Item, num protowire.Number) []byte {
	for i := range items {
		it := &items[i]
		dst = protowire.AppendTag(dst, num, protowire.BytesType)
		dst = append(dst, 0)
		start := len(dst)
		dst = tree.AppendKV(dst, []byte(it.Key), it.Create, it.Rev.Main, it.Version, nil, it.Lease)
		if n := len(dst) - start; n < 0x80 {
			dst[start-1] = byte(n)
		} else { // the length takes more than the byte that was left for it
			more := protowire.SizeVarint(uint64(n)) - 1
			dst = slices.Grow(dst, more)[:len(dst)+more]
			copy(dst[start+more:], dst[start:start+n])
			protowire.AppendVarint(dst[:start-1], uint64(n))
		}
	}
	return dst
}
