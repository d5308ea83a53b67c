package store

import (
	"fmt"
	"sync"
	"testing"
)

// Requests that come while a store closes are answered or get ErrStopped; what
// was answered is there after the next start.
func TestCloseUnderLoad(t *testing.T) {
	s := testStore(t)
	for i := range 100 {
		put(t, s, fmt.Sprint(i), "x")
	}
	must(t, s.Checkpoint(bg))
	var wg sync.WaitGroup
	var begun, acked [4]int
	started := make(chan struct{}, 8)
	for i := range 4 {
		wg.Go(func() {
			for {
				begun[i]++
				if _, err := do(s, putOp(fmt.Sprint("w", i), fmt.Sprint(begun[i]))); err != nil {
					if !errorsIs(err, ErrStopped) {
						t.Errorf("put: %v", err)
					}
					return
				}
				acked[i] = begun[i]
				select {
				case started <- struct{}{}:
				default:
				}
			}
		})
		wg.Go(func() {
			for {
				if _, _, err := read(s, &RangeRequest{KeyRange: everything}); err != nil {
					if !errorsIs(err, ErrStopped) {
						t.Errorf("range: %v", err)
					}
					return
				}
			}
		})
	}
	for range 8 {
		<-started
	}
	must(t, s.Close())
	wg.Wait()
	must(t, s.Err())
	must(t, s.Close()) // a second time does nothing
	s = openStore(t, s.opts)
	for i := range acked {
		_, kvs, err := read(s, &RangeRequest{KeyRange: single(fmt.Sprint("w", i))})
		must(t, err)
		var got int
		if len(kvs) == 1 {
			fmt.Sscan(string(kvs[0].Value), &got)
		}
		if got < acked[i] || got > begun[i] {
			t.Errorf("writer %d: %d is stored, %d was acknowledged", i, got, acked[i])
		}
	}
}

func TestClosedStore(t *testing.T) {
	s := testStore(t)
	put(t, s, "a", "1")
	w := s.NewWatchStream(func() {})
	_, err := w.Create(WatchRequest{KeyRange: everything})
	must(t, err)
	must(t, s.Close())
	_, _, err = w.Next()
	wantErr(t, err, ErrStopped)
	w.Close()
	_, err = do(s, putOp("a", "2"))
	wantErr(t, err, ErrStopped)
	_, err = s.Range(bg, &RangeRequest{KeyRange: everything})
	wantErr(t, err, ErrStopped)
	_, err = s.Txn(bg, &TxnRequest{Success: []Op{rangeOp(everything)}})
	wantErr(t, err, ErrStopped)
	_, err = s.Compact(bg, 2, false)
	wantErr(t, err, ErrStopped)
	_, err = s.LeaseGrant(bg, 0, 5)
	wantErr(t, err, ErrStopped)
	_, err = s.HashKV(bg, 0)
	wantErr(t, err, ErrStopped)
	must(t, s.Err())
}
