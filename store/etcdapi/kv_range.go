package etcdapi

import (
	"context"
	"fmt"
	"math"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/store"
)

// scanItems is how many items are looked at between two checks whether the
// client still waits.
const scanItems = 512

// itemBuffers holds buffers for scanItems items.
var itemBuffers = sync.Pool{New: func() any {
	b := make([]store.Item, 0, scanItems)
	return &b
}}

// Range reads one snapshot (RNG-20).
func (k *kvService) Range(ctx context.Context, req *pb.RangeRequest) (raw, error) {
	if err := checkRange(req); err != nil {
		return nil, err
	}
	if inKeyOrder(req) {
		return k.s.list(ctx, req)
	}
	res, err := k.s.store.Range(ctx, rangeRequest(req))
	if err != nil {
		return nil, err
	}
	defer res.Close()
	l := listing{
		head:     k.s.head(res.Revision),
		keysOnly: req.KeysOnly,
		more:     res.More,
		count:    res.Count,
	}
	size := itemsSize(res.Items, rangeKvs, req.KeysOnly)
	if size < smallRead {
		return l.encode(k.s.store, res.Items, size)
	}
	left := res.Items
	return k.s.encodeLarge(ctx, l, int64(size), func(n int) []store.Item {
		part := left[:min(n, len(left))]
		left = left[len(part):]
		return part
	})
}

// inKeyOrder tells whether a scan gives the result as it is wanted.
func inKeyOrder(r *pb.RangeRequest) bool {
	if r.CountOnly {
		return true
	}
	return r.SortOrder != pb.RangeRequest_DESCEND && r.SortTarget == pb.RangeRequest_KEY && !hasBounds(r)
}

// listing is what a RangeResponse says beside its KeyValues.
type listing struct {
	head     head
	keysOnly bool
	more     bool
	count    int64
}

// list answers a range in key order. It looks at the items once if they are few;
// else once to learn the size, for the list budget, and again to read them, so
// that the items of a large list are never in memory all at once.
func (s *Server) list(ctx context.Context, req *pb.RangeRequest) (raw, error) {
	r, err := s.store.NewReader(ctx, req.Revision)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	keys := store.KeyRange{Key: req.Key, End: req.RangeEnd}
	l := listing{head: s.head(r.Current()), keysOnly: req.KeysOnly, count: r.Count(keys)}
	if req.CountOnly {
		return l.encode(s.store, nil, 0)
	}
	want := l.cut(req.Limit)

	buf := itemBuffers.Get().(*[]store.Item)
	defer putItems(buf)
	next := limited(r.Scan(keys), buf, want)
	items := next(scanItems)
	size := int64(itemsSize(items, rangeKvs, l.keysOnly))
	if int64(len(items)) == want && size < smallRead {
		return l.encode(s.store, items, int(size))
	}
	for len(items) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		items = next(scanItems)
		size += int64(itemsSize(items, rangeKvs, l.keysOnly))
	}
	return s.encodeLarge(ctx, l, size, limited(r.Scan(keys), buf, want))
}

// cut sets more for a limit, and returns how many items are wanted.
func (l *listing) cut(limit int64) int64 {
	if limit <= 0 || limit >= l.count {
		return l.count
	}
	l.more = true
	return limit
}

// limited returns a function that gives the next up to n items of a scan, want in
// all. They are in buf, and valid until the next call.
func limited(sc *store.Scanner, buf *[]store.Item, want int64) func(n int) []store.Item {
	return func(n int) []store.Item {
		n = int(min(int64(n), want))
		if n == 0 {
			return nil
		}
		*buf = sc.Next((*buf)[:0], n, math.MaxInt)
		want -= int64(len(*buf))
		return *buf
	}
}

func putItems(buf *[]store.Item) {
	clear(*buf) // let go of the keys
	*buf = (*buf)[:0]
	itemBuffers.Put(buf)
}

// encode makes a small RangeResponse in one buffer. size is that of the items.
func (l *listing) encode(st *store.Store, items []store.Item, size int) (raw, error) {
	buf, pool := allocate(tailRoom + size)
	b := l.head.append(*buf)
	b, err := appendItems(st, b, items, rangeKvs, l.keysOnly)
	if err != nil {
		if pool != nil {
			pool.Put(buf)
		}
		return nil, err
	}
	*buf = appendRangeEnd(b, l.more, l.count)
	return raw{mem.NewBuffer(buf, pool)}, nil
}

// encodeLarge makes a RangeResponse in pieces, from the items that next gives,
// once the list budget has room for their size.
func (s *Server) encodeLarge(ctx context.Context, l listing, size int64, next func(n int) []store.Item) (raw, error) {
	if size > math.MaxInt32-tailRoom {
		return nil, tooLargeToSend(size)
	}
	g, err := s.reserve(ctx, size)
	if err != nil {
		return nil, err
	}
	m := message{grant: g}
	m.add(l.head.append(nil))
	for items := next(scanItems); len(items) > 0; items = next(scanItems) {
		err := ctx.Err()
		if err == nil {
			err = m.addItems(s.store, items, rangeKvs, l.keysOnly)
		}
		if err != nil {
			m.drop()
			return nil, err
		}
	}
	m.add(appendRangeEnd(nil, l.more, l.count))
	return m.take(), nil
}

// tooLargeToSend is the error that gRPC would give, before the memory is spent.
func tooLargeToSend(size int64) error {
	return status.Error(codes.ResourceExhausted,
		fmt.Sprintf("trying to send message larger than max (%d vs. %d)", size, math.MaxInt32))
}
