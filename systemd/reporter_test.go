package systemd

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, told := newTold()
		var revision atomic.Int64
		r := NewReporter(n, func() string { return fmt.Sprint("revision ", revision.Load()) })
		go r.Run(t.Context())
		write := func() {
			revision.Add(1)
			r.Event()
		}
		write()
		synctest.Wait()
		if got := told.take(); len(got) != 1 || got[0] != "STATUS=revision 1" {
			t.Errorf("the first event: %q", got)
		}
		for range 3600 { // an hour of writes
			time.Sleep(time.Second)
			write()
		}
		synctest.Wait()
		if n := len(told.take()); n < 300 || n > 360 {
			t.Errorf("%d reports in an hour of writes, one in 10 s is wanted", n)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := told.take(); len(got) > 0 {
			t.Errorf("reports while nothing happened: %q", got)
		}
		write()
		synctest.Wait()
		if got := told.take(); len(got) != 1 {
			t.Errorf("an event after an idle hour: %q", got)
		}
		n.Stopping("enough")
		told.take()
		time.Sleep(time.Minute)
		write()
		synctest.Wait()
		if got := told.take(); len(got) > 0 {
			t.Errorf("told after why the service ends: %q", got)
		}
	})
}

// An event costs a write nothing to speak of.
func TestReporterEventAllocates(t *testing.T) {
	n, _ := newTold()
	r := NewReporter(n, func() string { return "" })
	if n := testing.AllocsPerRun(1000, r.Event); n > 0 {
		t.Errorf("%v allocations per event", n)
	}
}
