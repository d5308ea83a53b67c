package tree

import (
	"encoding/binary"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// KV is what an encoded mvccpb.KeyValue says.
type KV struct {
	Key     []byte // part of the decoded bytes
	Create  int64
	Mod     int64
	Version int64
	Lease   int64
	Value   []byte // part of the decoded bytes
}

// Tags of mvccpb.KeyValue: field number and wire type in one byte each.
const (
	tagKey     = 1<<3 | byte(protowire.BytesType)
	tagCreate  = 2<<3 | byte(protowire.VarintType)
	tagMod     = 3<<3 | byte(protowire.VarintType)
	tagVersion = 4<<3 | byte(protowire.VarintType)
	tagValue   = 5<<3 | byte(protowire.BytesType)
	tagLease   = 6<<3 | byte(protowire.VarintType)
)

var errKV = errors.New("not an encoded KeyValue")

// DecodeKV reads an encoded mvccpb.KeyValue without copying; an empty b is a
// record without a key. Unknown fields are skipped.
func DecodeKV(b []byte) (kv KV, err error) {
	for len(b) > 0 {
		tag := b[0]
		var n int
		switch tag {
		case tagKey, tagValue:
			var field []byte
			if field, n = protowire.ConsumeBytes(b[1:]); n < 0 {
				return KV{}, errKV
			}
			if tag == tagKey {
				kv.Key = field
			} else {
				kv.Value = field
			}
			n++
		case tagCreate, tagMod, tagVersion, tagLease:
			var v uint64
			if v, n = protowire.ConsumeVarint(b[1:]); n < 0 {
				return KV{}, errKV
			}
			kv.set(tag, int64(v))
			n++
		default:
			if _, _, n = protowire.ConsumeField(b); n < 0 {
				return KV{}, errKV
			}
		}
		b = b[n:]
	}
	return kv, nil
}

func (kv *KV) set(tag byte, v int64) {
	switch tag {
	case tagCreate:
		kv.Create = v
	case tagMod:
		kv.Mod = v
	case tagVersion:
		kv.Version = v
	case tagLease:
		kv.Lease = v
	}
}

// AppendKV appends the encoded mvccpb.KeyValue, byte for byte as etcd encodes
// it. A tombstone's record has the key alone and zeros for the rest.
func AppendKV(dst, key []byte, create, mod, version int64, value []byte, lease int64) []byte {
	dst = appendBytesField(dst, tagKey, key)
	dst = appendVarintField(dst, tagCreate, create)
	dst = appendVarintField(dst, tagMod, mod)
	dst = appendVarintField(dst, tagVersion, version)
	dst = appendBytesField(dst, tagValue, value)
	return appendVarintField(dst, tagLease, lease)
}

// KVSize returns the number of bytes that AppendKV appends for a key and a
// value of the given lengths.
func KVSize(keyLen int, create, mod, version int64, valueLen int, lease int64) int {
	size := sizeBytesField(keyLen) + sizeBytesField(valueLen)
	for _, v := range [...]int64{create, mod, version, lease} {
		if v != 0 {
			size += 1 + protowire.SizeVarint(uint64(v))
		}
	}
	return size
}

// varintTag returns the tag of a varint field with a number up to 15.
func varintTag(num int) byte { return byte(num)<<3 | byte(protowire.VarintType) }

// appendVarintField appends a varint field, or nothing for zero as proto3 wants.
func appendVarintField(dst []byte, tag byte, v int64) []byte {
	if v == 0 {
		return dst
	}
	return binary.AppendUvarint(append(dst, tag), uint64(v))
}

func appendBytesField(dst []byte, tag byte, v []byte) []byte {
	if len(v) == 0 {
		return dst
	}
	dst = binary.AppendUvarint(append(dst, tag), uint64(len(v)))
	return append(dst, v...)
}

func sizeBytesField(n int) int {
	if n == 0 {
		return 0
	}
	return 1 + protowire.SizeBytes(n)
}
