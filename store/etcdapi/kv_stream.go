package etcdapi

import (
	"context"
	"math"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/tarn-kv/tarn/store"
)

// How the chunks of a stream grow (RS-7).
const (
	firstChunkKeys = 10
	goodChunkBytes = 3 << 19 // 1.5 MiB
	maxChunkBytes  = 2 * goodChunkBytes
)

// nextChunkKeys is how many keys the next chunk may have, after one of the given
// size with at most keys keys.
func nextChunkKeys(keys, size int) int {
	switch {
	case size < goodChunkBytes/2:
		return keys * 2
	case size > maxChunkBytes:
		return max(keys/2, 1)
	default:
		return keys
	}
}

// RangeStream sends a range in chunks, all of one revision: a compaction in the
// middle does not end it (V-14).
func (k *kvService) RangeStream(req *pb.RangeRequest, stream grpc.ServerStream) error {
	if err := checkRangeStream(req); err != nil {
		return err
	}
	if !inKeyOrder(req) {
		return k.streamSorted(req, stream)
	}
	r, err := k.s.openReader(stream.Context(), req)
	if err != nil {
		return err
	}
	defer r.Close()
	keys := store.KeyRange{Key: req.Key, End: req.RangeEnd}
	l := listing{head: k.s.head(r.Current()), keysOnly: req.KeysOnly, count: r.Count(keys)}
	var want int64
	if !req.CountOnly {
		want = l.cut(req.Limit)
	}
	c := chunker{s: k.s, source: r.Scan(keys), reader: r, listing: l, left: want, keys: firstChunkKeys}
	return c.send(stream)
}

// streamSorted sends a range whose request has a target but no order, sorted as
// Range does it (RS-9).
func (k *kvService) streamSorted(req *pb.RangeRequest, stream grpc.ServerStream) error {
	res, err := k.s.store.Range(stream.Context(), rangeRequest(req))
	if err != nil {
		return err
	}
	defer res.Close()
	l := listing{head: k.s.head(res.Revision), keysOnly: req.KeysOnly, more: res.More, count: res.Count}
	rest := sortedItems(res.Items)
	c := chunker{s: k.s, source: &rest, listing: l, left: int64(len(rest)), keys: firstChunkKeys}
	return c.send(stream)
}

// sortedItems are the items that a stream has still to send.
type sortedItems []store.Item

// Next is as that of store.Scanner.
func (rest *sortedItems) Next(dst []store.Item, n, maxBytes int) []store.Item {
	for size := 0; n > 0 && size < maxBytes && len(*rest) > 0; n-- {
		dst = append(dst, (*rest)[0])
		size += (*rest)[0].Size
		*rest = (*rest)[1:]
	}
	return dst
}

// chunker makes the chunks of one stream.
type chunker struct {
	s      *Server
	source interface {
		Next(dst []store.Item, n, maxBytes int) []store.Item
	}
	reader  *store.Reader // nil if the items are not in the order of keys
	listing listing
	left    int64 // keys to send
	keys    int   // most keys of the next chunk
	items   []store.Item
}

// send sends all chunks.
func (c *chunker) send(stream grpc.ServerStream) error {
	for done := false; !done; {
		if c.s.stopping() {
			return errStopped
		}
		var m raw
		var err error
		if m, done, err = c.next(stream.Context()); err != nil {
			return err
		}
		if err := stream.SendMsg(m); err != nil {
			return err
		}
	}
	return nil
}

// next returns the next chunk. The last one, also if it is the only one and
// empty, has the header, more and count (RS-2, RS-11).
func (c *chunker) next(ctx context.Context) (_ raw, last bool, err error) {
	c.items = c.items[:0]
	if n := int(min(int64(c.keys), c.left)); n > 0 {
		most := maxChunkBytes // also when small values are followed by large ones
		if c.listing.keysOnly {
			most = math.MaxInt // counts values
		}
		c.items = c.source.Next(c.items, n, most)
		c.left -= int64(len(c.items))
	}
	last = c.left == 0 || len(c.items) == 0
	size := itemsSize(c.items, rangeKvs, c.listing.keysOnly)
	c.keys = nextChunkKeys(c.keys, size)
	items, err := c.encode(ctx, size)
	if err != nil {
		return nil, false, err
	}
	return c.around(items, last), last, nil
}

// encode encodes the items. Large chunks are shared with streams of the same range that are
// at the same place, and sent in turn.
func (c *chunker) encode(ctx context.Context, size int) (raw, error) {
	build := func(ctx context.Context) (encoded, error) {
		return c.s.encodeFound(ctx, c.items, size, c.listing.keysOnly)
	}
	if size < smallRead {
		all, err := build(ctx)
		return all.items, err
	}
	turn, err := c.s.turns.take(ctx, int64(size))
	if err != nil {
		return nil, err
	}
	items, done, err := c.encodeLarge(ctx, build)
	if err != nil {
		turn()
		return nil, err
	}
	return items.afterwards(whenSent(ctx, func() { turn(); done() })), nil
}

func (c *chunker) encodeLarge(ctx context.Context, build func(context.Context) (encoded, error)) (_ raw, done func(), err error) {
	if c.reader == nil {
		all, err := build(ctx)
		return all.items, all.grant.abandon, err
	}
	keys := store.KeyRange{Key: []byte(c.items[0].Key), End: []byte(c.items[len(c.items)-1].Key + "\x00")}
	key := sharedKey{string(keys.Key), string(keys.End), int64(len(c.items)), c.listing.keysOnly}
	return c.s.shared.get(ctx, key, c.reader, keys, build)
}

// around makes a chunk of encoded items.
func (c *chunker) around(items raw, last bool) raw {
	size := mem.BufferSlice(items).Len()
	var head, end []byte
	if last {
		head = c.listing.head.append(nil)
		end = appendRangeEnd(nil, c.listing.more, c.listing.count)
	}
	start := appendPrefix(make([]byte, 0, headRoom+10), streamRange, len(head)+size+len(end))
	out := append(make(raw, 0, len(items)+2), mem.SliceBuffer(append(start, head...)))
	out = append(out, items...)
	if len(end) > 0 {
		out = append(out, mem.SliceBuffer(end))
	}
	return out
}
