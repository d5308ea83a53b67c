package etcdapi

import (
	"context"
	"math"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/mem"

	"github.com/tarn-kv/tarn/store"
)

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
	all, err := k.s.encodeItems(ctx, int64(size), l.keysOnly, func(buf []store.Item) []store.Item {
		n := copy(buf, left)
		left = left[n:]
		return buf[:n]
	})
	if err != nil {
		return nil, err
	}
	done, err := k.s.turnOf(ctx, all.items, all.grant.abandon)
	if err != nil {
		return nil, err
	}
	return l.around(all.items, done), nil
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

// list answers a range in key order.
func (s *Server) list(ctx context.Context, req *pb.RangeRequest) (raw, error) {
	r, err := s.openReader(ctx, req)
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

	buf := scanBuffers.Get().(*[]store.Item)
	n := int(min(want, scanItems))
	items := r.Scan(keys).Next((*buf)[:0], n, math.MaxInt)
	defer putItems(&scanBuffers, buf, len(items))
	if int64(len(items)) < want {
		return s.listLarge(ctx, r, keys, want, l, func(ctx context.Context) (encoded, error) {
			return s.encodeRange(ctx, r, keys, want, l.keysOnly)
		})
	}
	size := itemsSize(items, rangeKvs, l.keysOnly)
	if size < smallRead {
		return l.encode(s.store, items, size)
	}
	return s.listLarge(ctx, r, keys, want, l, func(ctx context.Context) (encoded, error) {
		return s.encodeFound(ctx, items, size, l.keysOnly)
	})
}

// listLarge is list for what is not known to be small. Its items are those of another such list,
// or what build makes.
func (s *Server) listLarge(ctx context.Context, r *store.Reader, keys store.KeyRange, want int64, l listing,
	build func(context.Context) (encoded, error)) (raw, error) {
	key := sharedKey{string(keys.Key), string(keys.End), want, l.keysOnly}
	items, done, err := s.shared.get(ctx, key, r, keys, build)
	if err != nil {
		return nil, err
	}
	if done, err = s.turnOf(ctx, items, done); err != nil {
		return nil, err
	}
	return l.around(items, done), nil
}

// cut sets more for a limit, and returns how many items are wanted.
func (l *listing) cut(limit int64) int64 {
	if limit <= 0 || limit >= l.count {
		return l.count
	}
	l.more = true
	return limit
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

// around completes a RangeResponse of which the items are encoded. done is called when gRPC
// has sent it.
func (l *listing) around(items raw, done func()) raw {
	out := append(make(raw, 0, len(items)+2), mem.SliceBuffer(l.head.append(nil)))
	out = append(out, items...)
	end := appendRangeEnd(nil, l.more, l.count) // not empty: there are items
	end = slices.Grow(end, unpooledSize+1)      // gRPC would never tell that a smaller one is free
	return append(out, mem.NewBuffer(&end, whenFreed(done)))
}
