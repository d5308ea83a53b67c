package store

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs"
)

// unsynced is a file system that makes nothing durable: what is measured is the
// processor's work and not the disk's.
type unsynced struct{ vfs.FS }

type unsyncedFile struct{ vfs.File }

func (unsyncedFile) Sync() error { return nil }

func (u unsynced) Create(name string) (vfs.File, error) {
	f, err := u.FS.Create(name)
	return unsyncedFile{f}, err
}

func (u unsynced) Open(name string) (vfs.File, error) {
	f, err := u.FS.Open(name)
	return unsyncedFile{f}, err
}

// benchValue has the size of a Kubernetes lease.
var benchValue = strings.Repeat("v", 424)

// updateRequest is kube-apiserver's update of an object that has the revision mod.
func updateRequest(key string, mod int64) *TxnRequest {
	return &TxnRequest{
		Compare: []Compare{{KeyRange: single(key), Target: CompareMod, Int: mod}},
		Success: []Op{putOp(key, benchValue)},
		Failure: []Op{rangeOp(single(key))},
	}
}

// update returns a function that updates a key each time it is called.
func update(b *testing.B, s *Store, key string) func() {
	var mod int64
	return func() {
		res, err := s.Txn(bg, updateRequest(key, mod))
		if err != nil {
			b.Error(err)
			return
		}
		if !res.Succeeded {
			b.Errorf("%s is not at revision %d any more", key, mod)
		}
		mod = res.Revision
		res.Close()
	}
}

// BenchmarkTxnUpdate updates objects on the disk that TMPDIR is on, and without one.
func BenchmarkTxnUpdate(b *testing.B) {
	for name, fs := range map[string]vfs.FS{"synced": vfs.OS, "unsynced": unsynced{vfs.OS}} {
		for _, clients := range []int{1, 16, 128} {
			b.Run(fmt.Sprintf("%s/%d", name, clients), func(b *testing.B) {
				s := openStore(b, Options{Dir: b.TempDir(), FS: fs})
				b.ReportAllocs()
				if clients == 1 {
					write := update(b, s, "key")
					for b.Loop() {
						write()
					}
					return
				}
				b.SetParallelism(max(1, clients/runtime.GOMAXPROCS(0)))
				var started atomic.Int64
				b.RunParallel(func(p *testing.PB) {
					write := update(b, s, fmt.Sprintf("key-%d", started.Add(1)))
					for p.Next() {
						write()
					}
				})
			})
		}
	}
}

// BenchmarkWatchDelivery is an update and its delivery to a number of watchers, on
// streams of their own.
func BenchmarkWatchDelivery(b *testing.B) {
	for _, watchers := range []int{0, 1, 10, 1000} {
		b.Run(fmt.Sprint(watchers), func(b *testing.B) {
			s := openStore(b, Options{Dir: b.TempDir(), FS: unsynced{vfs.OS}})
			streams := make([]*WatchStream, watchers)
			for i := range streams {
				streams[i] = s.NewWatchStream(func() {})
				b.Cleanup(streams[i].Close)
				_, err := streams[i].Create(WatchRequest{KeyRange: single("key"), PrevKV: true})
				must(b, err)
				takeAll(b, streams[i])
			}
			write := update(b, s, "key")
			b.ReportAllocs()
			for b.Loop() {
				write()
				for _, w := range streams {
					if n := takeAll(b, w); n != 1 {
						b.Fatalf("%d events of one update", n)
					}
				}
			}
		})
	}
}

// takeAll takes everything that a stream has and returns the number of events.
func takeAll(b *testing.B, w *WatchStream) (events int) {
	for {
		m, ok, err := w.Next()
		must(b, err)
		if !ok {
			return events
		}
		for _, e := range m.Events {
			e.Encoded(m.PrevKV)
		}
		events += len(m.Events)
		w.Sent(m)
	}
}

// BenchmarkCatchUp takes the messages of a watch that begins at the start of a history,
// which is in the log alone, or in the tree alone.
func BenchmarkCatchUp(b *testing.B) {
	const keys, revisions = 100, 10_000
	for _, place := range []string{"log", "tree"} {
		b.Run(place, func(b *testing.B) {
			s := openStore(b, Options{Dir: b.TempDir(), FS: unsynced{vfs.OS}})
			writes := make([]func(), keys)
			for i := range writes {
				writes[i] = update(b, s, fmt.Sprintf("key-%03d", i))
			}
			for i := range revisions {
				writes[i%keys]()
			}
			if place == "tree" {
				must(b, s.Checkpoint(bg))
			}
			b.ReportAllocs()
			var w *WatchStream
			bytes, messages := 0, 0
			for b.Loop() {
				m, ok := caughtUp(b, w)
				for !ok { // the history is at its end: again
					if w != nil {
						w.Close()
					}
					w = s.NewWatchStream(func() {})
					_, err := w.Create(WatchRequest{KeyRange: everything, Start: 2, PrevKV: true})
					must(b, err)
					m, ok = caughtUp(b, w)
				}
				bytes += len(m.Framed)
				messages++
				m.Release()
			}
			w.Close()
			b.ReportMetric(float64(bytes)/float64(messages), "B/message")
		})
	}
}

// caughtUp returns the next message from the history.
func caughtUp(b *testing.B, w *WatchStream) (WatchMessage, bool) {
	for w != nil {
		m, ok, err := w.Next()
		must(b, err)
		if !ok {
			break
		}
		w.Sent(m)
		if len(m.Framed) > 0 {
			return m, true
		}
	}
	return WatchMessage{}, false
}
