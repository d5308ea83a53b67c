package etcdapi

import (
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tarn-kv/tarn/store"
)

// message is a response being built piece by piece, so that a large one costs
// its bytes once. Either take or drop ends it.
type message struct {
	pieces  mem.BufferSlice
	grant   *grant
	granted int // bytes in buffers of the grant
}

// addItems appends items as KeyValues of field num, in pieces of about chunkSize.
func (m *message) addItems(st *store.Store, items []store.Item, num protowire.Number, keysOnly bool) error {
	var bufs [][]byte
	for rest := items; len(rest) > 0; {
		n, size := splitChunk(rest, num, keysOnly)
		buf, pool := m.grant.allocate(size)
		if keysOnly {
			*buf = store.AppendKeysOnly(*buf, rest[:n], num)
		} else {
			*buf = (*buf)[:size]
			bufs = append(bufs, *buf)
		}
		m.pieces = append(m.pieces, m.grant.buffer(buf, pool))
		m.granted += len(*buf)
		rest = rest[n:]
	}
	if len(bufs) == 0 {
		return nil
	}
	return st.FillValues(bufs, items, num)
}

// splitChunk returns how many of the items, at least one, make a chunk, and its size.
func splitChunk(items []store.Item, num protowire.Number, keysOnly bool) (n, size int) {
	for n < len(items) {
		one := itemsSize(items[n:n+1], num, keysOnly)
		if n > 0 && size+one > chunkSize {
			break
		}
		size += one
		n++
	}
	return n, size
}

// encoded is a message, or a part of one, and the share of the list budget that it holds.
type encoded struct {
	items raw
	grant *grant
}

// take returns the message; gRPC frees it.
func (m *message) take() encoded {
	m.grant.settle(int64(m.granted))
	return encoded{raw(m.pieces), m.grant}
}

// drop frees a message that is not sent.
func (m *message) drop() {
	m.grant.settle(0)
	m.pieces.Free()
	m.pieces = nil
}
