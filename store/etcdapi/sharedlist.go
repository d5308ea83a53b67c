package etcdapi

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc/mem"

	"github.com/tarn-kv/tarn/store"
)

// sharedLists lets large lists of the same range share their bytes while one of them
// is being built or sent: when every client lists at once, after a restart, they ask for
// the same. Nothing is kept for later. Its methods may be called from any goroutine.
type sharedLists struct {
	mu     sync.Mutex
	lists  map[sharedKey]*sharedList
	shared uint64 // lists that used the bytes of another one
}

// sharedKey is what two requests must have in common.
type sharedKey struct {
	key, end string
	items    int64
	keysOnly bool
}

// sharedList is the items of one list. The lists that have joined it hold a reference
// to each piece, and it holds one itself until the last of them is sent.
type sharedList struct {
	at    int64 // revision
	built chan struct{}
	items raw // valid once built is closed; nil if it could not be built
	grant *grant

	users int // under sharedLists.mu
}

func newSharedLists() *sharedLists { return &sharedLists{lists: map[sharedKey]*sharedList{}} }

// get returns the encoded items of a range: those of another list, if nothing in the
// range has changed between the two revisions, or else what build makes. done must be
// called once the items are sent.
func (l *sharedLists) get(ctx context.Context, key sharedKey, r *store.Reader, keys store.KeyRange,
	build func(context.Context) (encoded, error)) (items raw, done func(), err error) {
	for {
		one, first := l.join(key, r, keys)
		if first {
			return l.build(ctx, key, one, build)
		}
		select {
		case <-one.built:
		case <-ctx.Done():
			l.leave(key, one)
			return nil, nil, ctx.Err()
		}
		if one.items != nil {
			return one.refer(), func() { l.leave(key, one) }, nil
		}
		l.leave(key, one) // its client has gone; next one
	}
}

// join returns the list to share, and whether it has to be built by the caller.
func (l *sharedLists) join(key sharedKey, r *store.Reader, keys store.KeyRange) (one *sharedList, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one = l.lists[key]; one != nil && r.SameAt(keys, one.at) {
		one.users++
		l.shared++
		return one, false
	}
	one = &sharedList{at: r.At(), built: make(chan struct{}), users: 1}
	l.lists[key] = one
	return one, true
}

func (l *sharedLists) build(ctx context.Context, key sharedKey, one *sharedList,
	build func(context.Context) (encoded, error)) (raw, func(), error) {
	all, err := build(ctx)
	if err != nil {
		l.forget(key, one) // before others are woken: they would find it again
		close(one.built)
		l.leave(key, one)
		return nil, nil, err
	}
	one.items, one.grant = all.items, all.grant
	close(one.built)
	return one.refer(), func() { l.leave(key, one) }, nil
}

// refer returns the items with a reference to each piece.
func (o *sharedList) refer() raw {
	for _, piece := range o.items {
		piece.Ref()
	}
	return slices.Clone(o.items)
}

// afterwards returns the items so that done is called when the last piece is sent.
func (items raw) afterwards(done func()) raw {
	last := items[len(items)-1]
	b := last.ReadOnlyData()
	items[len(items)-1] = mem.NewBuffer(&b, whenFreed(func() {
		last.Free()
		done()
	}))
	return items
}

// leave gives up one use; after the last one the items are freed, and the budget is too: connections that
// broke may not have freed theirs.
func (l *sharedLists) leave(key sharedKey, one *sharedList) {
	l.mu.Lock()
	one.users--
	last := one.users == 0
	if last && l.lists[key] == one {
		delete(l.lists, key)
	}
	l.mu.Unlock()
	if last {
		mem.BufferSlice(one.items).Free()
		one.grant.abandon()
	}
}

func (l *sharedLists) forget(key sharedKey, one *sharedList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lists[key] == one {
		delete(l.lists, key)
	}
}

// count returns how many lists used the bytes of another one.
func (l *sharedLists) count() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shared
}
