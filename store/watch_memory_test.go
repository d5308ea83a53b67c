package store

import (
	"runtime"
	"testing"
)

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What waits for a client that does not read does not hold on to what was written beside it.
func TestUnreadWatcherKeepsOnlyItsOwn(t *testing.T) {
	const rounds, big = 60, 1 << 20
	s := testStore(t)
	w := watchStream(t, s)
	watch(t, w, WatchRequest{KeyRange: single("small"), PrevKV: true})
	other := string(make([]byte, big))
	before := heapInUse()
	for range rounds {
		_, err := do(s, putOp("small", "x"), putOp("big", other))
		must(t, err)
	}
	must(t, s.Checkpoint(bg))
	if grown := heapInUse() - before; grown > rounds*big/4 {
		t.Errorf("%d small events hold %d bytes", rounds, grown)
	}
	for range rounds + 1 {
		next(t, w)
	}
	nothing(t, w)
}
