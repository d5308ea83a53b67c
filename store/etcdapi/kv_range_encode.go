package etcdapi

import (
	"context"
	"math"

	"github.com/tarn-kv/tarn/store"
)

// encodeRange encodes the items of a range, want in all. If they fit one buffer, and the list
// budget has room for them at once, they are looked at once; else once to learn their size, and
// again to read them, so that the items of a large list are never in memory all at once and
// nothing that others need is held while the budget has no room.
func (s *Server) encodeRange(ctx context.Context, r *store.Reader, keys store.KeyRange, want int64, keysOnly bool) (encoded, error) {
	if want <= fillItems {
		if all, ok, err := s.encodeAtOnce(ctx, r, keys, want, keysOnly); ok || err != nil {
			return all, err
		}
	}
	size, err := rangeSize(ctx, r, keys, want, keysOnly)
	if err != nil {
		return encoded{}, err
	}
	return s.encodeItems(ctx, size, keysOnly, limited(r.Scan(keys), want))
}

// encodeAtOnce is encodeRange for what fits one buffer; ok is false if the list budget has no room.
func (s *Server) encodeAtOnce(ctx context.Context, r *store.Reader, keys store.KeyRange, want int64, keysOnly bool) (_ encoded, ok bool, _ error) {
	s.procs.widen()
	var m message
	err := s.fills.with(ctx, func(buf []store.Item) (used int, err error) {
		items := r.Scan(keys).Next(buf[:0], int(want), math.MaxInt)
		if m.grant, ok = s.tryReserve(int64(itemsSize(items, rangeKvs, keysOnly))); ok {
			err = m.addItems(s.store, items, rangeKvs, keysOnly)
		}
		return len(items), err
	})
	switch {
	case err != nil:
		m.drop()
		return encoded{}, false, err
	case !ok:
		return encoded{}, false, nil
	}
	return m.take(), true, nil
}

// rangeSize works out the size of the items of a range.
func rangeSize(ctx context.Context, r *store.Reader, keys store.KeyRange, want int64, keysOnly bool) (size int64, err error) {
	buf := scanBuffers.Get().(*[]store.Item)
	defer putItems(&scanBuffers, buf, scanItems)
	next := limited(r.Scan(keys), want)
	for items := next(*buf); len(items) > 0; items = next(*buf) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		size += int64(itemsSize(items, rangeKvs, keysOnly))
	}
	return size, nil
}

// encodeFound encodes items of the given size, once the list budget has room for them.
func (s *Server) encodeFound(ctx context.Context, items []store.Item, size int, keysOnly bool) (encoded, error) {
	g, err := s.reserve(ctx, int64(size))
	if err != nil {
		return encoded{}, err
	}
	s.procs.widen()
	m := message{grant: g}
	if err := m.addItems(s.store, items, rangeKvs, keysOnly); err != nil {
		m.drop()
		return encoded{}, err
	}
	return m.take(), nil
}

// limited returns a function that puts the next items of a scan, want in all, into
// a buffer, and returns those it has put there.
func limited(sc *store.Scanner, want int64) func(buf []store.Item) []store.Item {
	return func(buf []store.Item) []store.Item {
		n := int(min(int64(len(buf)), want))
		if n == 0 {
			return nil
		}
		items := sc.Next(buf[:0], n, math.MaxInt)
		want -= int64(len(items))
		return items
	}
}

// encodeItems encodes the items that next puts into a buffer, in pieces, once the list
// budget has room for their size.
func (s *Server) encodeItems(ctx context.Context, size int64, keysOnly bool,
	next func(buf []store.Item) []store.Item) (encoded, error) {
	g, err := s.reserve(ctx, size)
	if err != nil {
		return encoded{}, err
	}
	s.procs.widen()
	m := message{grant: g}
	for more := true; more; {
		err := s.fills.with(ctx, func(buf []store.Item) (used int, err error) {
			items := next(buf)
			more = len(items) > 0
			return len(items), m.addItems(s.store, items, rangeKvs, keysOnly)
		})
		if err != nil {
			m.drop()
			return encoded{}, err
		}
	}
	return m.take(), nil
}
