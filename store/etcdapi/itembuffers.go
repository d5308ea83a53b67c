package etcdapi

import (
	"context"
	"runtime"
	"sync"

	"github.com/tarn-kv/tarn/store"
)

const (
	// scanItems is how many items are looked at between two checks whether the
	// client still waits.
	scanItems = 512
	// fillItems is how many items' values are read at a time. Values are read in the
	// order of revisions: the more at a time, the more of them are on the same page.
	fillItems = 16 << 10
)

// scanBuffers holds buffers of scanItems items.
var scanBuffers = sync.Pool{New: func() any {
	b := make([]store.Item, scanItems)
	return &b
}}

// putItems puts a buffer back of which no more than the first n items were used.
func putItems(pool *sync.Pool, buf *[]store.Item, n int) {
	clear((*buf)[:n]) // let go of the keys
	pool.Put(buf)
}

// fillBuffers lends buffers of fillItems items, of more than 1 MB each, to as many
// requests as there are processors: what is done with one waits for nobody.
type fillBuffers struct {
	slots chan struct{}
	pool  sync.Pool
}

func newFillBuffers() *fillBuffers {
	f := &fillBuffers{slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	f.pool.New = func() any {
		b := make([]store.Item, fillItems)
		return &b
	}
	return f
}

// with calls fn with a buffer; fn returns how many items of it were used. It returns
// ctx's error if that ends before.
func (f *fillBuffers) with(ctx context.Context, fn func(buf []store.Item) (int, error)) error {
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-f.slots }()
	if err := ctx.Err(); err != nil {
		return err
	}
	buf := f.pool.Get().(*[]store.Item)
	used, err := fn(*buf)
	putItems(&f.pool, buf, used)
	return err
}
