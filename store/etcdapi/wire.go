package etcdapi

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tarn-kv/tarn/store"
)

// Field numbers of etcdserverpb, only those of responses that are encoded here.
// They are fixed for ever: they are the wire format.
const (
	headerCluster  protowire.Number = 1
	headerMember   protowire.Number = 2
	headerRevision protowire.Number = 3
	headerTerm     protowire.Number = 4

	responseHeader protowire.Number = 1 // of every response

	rangeKvs   protowire.Number = 2
	rangeMore  protowire.Number = 3
	rangeCount protowire.Number = 4

	streamRange protowire.Number = 1 // RangeStreamResponse.range_response

	putPrevKv protowire.Number = 2

	deleteDeleted protowire.Number = 2
	deletePrevKvs protowire.Number = 3

	txnSucceeded protowire.Number = 2
	txnResponses protowire.Number = 3

	opRange  protowire.Number = 1
	opPut    protowire.Number = 2
	opDelete protowire.Number = 3
	opTxn    protowire.Number = 4
)

// headRoom is enough for a ResponseHeader with its tag and length.
const headRoom = 2 + 4*(1+10)

// head is what a ResponseHeader says.
type head struct {
	cluster, member uint64
	revision        int64
	term            uint64
}

// head is header for responses that are encoded by hand.
func (s *Server) head(revision int64) head {
	return head{cluster: s.clusterID, member: s.memberID, revision: revision, term: s.term}
}

// revisionOnly is the header of a response inside a transaction's (HDR-2).
func revisionOnly(revision int64) head { return head{revision: revision} }

// append adds the header as a field of a response.
func (h head) append(dst []byte) []byte {
	dst, start := beginMessage(dst, responseHeader)
	dst = appendUint(dst, headerCluster, h.cluster)
	dst = appendUint(dst, headerMember, h.member)
	dst = appendUint(dst, headerRevision, uint64(h.revision))
	dst = appendUint(dst, headerTerm, h.term)
	return endMessage(dst, start)
}

// appendUint adds a number, or nothing if it is 0. Negative int64s are given as
// their two's complement, as protobuf has it.
func appendUint(dst []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	dst = protowire.AppendTag(dst, num, protowire.VarintType)
	return protowire.AppendVarint(dst, v)
}

func appendBool(dst []byte, num protowire.Number, v bool) []byte {
	if !v {
		return dst
	}
	return appendUint(dst, num, 1)
}

// appendPrefix adds what comes before the n bytes of an embedded message.
func appendPrefix(dst []byte, num protowire.Number, n int) []byte {
	dst = protowire.AppendTag(dst, num, protowire.BytesType)
	return protowire.AppendVarint(dst, uint64(n))
}

// beginMessage opens an embedded message whose length is not known yet, and
// returns where its content starts: what endMessage wants.
func beginMessage(dst []byte, num protowire.Number) ([]byte, int) {
	dst = protowire.AppendTag(dst, num, protowire.BytesType)
	dst = append(dst, 0)
	return dst, len(dst)
}

// endMessage closes the message that starts at start. Contents of more than 127
// bytes are moved to make room for their length.
func endMessage(dst []byte, start int) []byte {
	n := len(dst) - start
	if n < 0x80 {
		dst[start-1] = byte(n)
		return dst
	}
	var room [9]byte
	extra := protowire.SizeVarint(uint64(n)) - 1
	dst = append(dst, room[:extra]...)
	copy(dst[start+extra:], dst[start:start+n])
	protowire.AppendVarint(dst[:start-1], uint64(n))
	return dst
}

// appendItems adds each item as an embedded KeyValue.
func appendItems(st *store.Store, dst []byte, items []store.Item, num protowire.Number, keysOnly bool) ([]byte, error) {
	if len(items) == 0 {
		return dst, nil
	}
	if keysOnly {
		return store.AppendKeysOnly(dst, items, num), nil
	}
	return st.AppendValues(dst, items, num)
}

// itemsSize is how many bytes appendItems adds: exactly with values, at most
// with keys only.
func itemsSize(items []store.Item, num protowire.Number, keysOnly bool) int {
	if !keysOnly {
		return store.FramedSize(items, num)
	}
	n := 0
	for i := range items {
		n += keyOnlyRoom + len(items[i].Key)
	}
	return n
}

// keyOnlyRoom is enough for a KeyValue without key and value: its prefix, the
// key's, and four numbers.
const keyOnlyRoom = 2*(1+5) + 4*(1+10)
