package store

import (
	"testing"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
)

// fill puts values until the store refuses one, and returns how many fit.
func fill(t *testing.T, s *Store) (n int) {
	t.Helper()
	for ; n < 1000; n++ {
		_, err := do(s, putOp("fill", string(make([]byte, 10_000))))
		if err != nil {
			wantErr(t, err, ErrNoSpace)
			return n
		}
	}
	t.Fatal("the quota is not enforced")
	return n
}

func TestQuota(t *testing.T) { // ALM-5, ALM-7
	s := openStore(t, Options{Dir: t.TempDir(), Quota: 300_000})
	s.SetMemberID(9)
	if n := fill(t, s); n < 10 || n > 30 {
		t.Errorf("%d values of 10 kB fit in 300 kB", n)
	}
	rev := s.Revision()
	alarms := func(want ...Alarm) {
		t.Helper()
		if got := s.Alarms(); len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Errorf("alarms %v, want %v", got, want)
		}
	}
	alarms(Alarm{9, NoSpace})
	refused := func(err error) {
		t.Helper()
		wantErr(t, err, ErrNoSpace)
	}
	_, err := do(s, putOp("a", ""))
	refused(err)
	_, err = s.LeaseGrant(bg, 0, 10) // LSE-3
	refused(err)
	never := Compare{KeyRange: single("a"), Target: CompareMod, Int: 99}
	_, err = s.Txn(bg, &TxnRequest{Compare: []Compare{never}, Success: []Op{putOp("a", "")}, Failure: []Op{deleteOp(single("a"))}})
	refused(err)
	_, err = do(s, Op{Txn: &TxnRequest{Success: []Op{putOp("a", "")}}})
	refused(err)
	if s.Revision() != rev {
		t.Errorf("revision %d after refused writes, was %d", s.Revision(), rev)
	}
	if _, err = do(s, deleteOp(single("nope")), rangeOp(everything)); err != nil {
		t.Errorf("a transaction without puts: %v", err)
	}
	s = reopen(t, s)
	s.SetMemberID(9)
	alarms(Alarm{9, NoSpace})
	must(t, s.AlarmActivate(bg, Alarm{9, NoSpace})) // again: nothing changes
	was, err := s.AlarmDeactivate(bg, Alarm{9, NoSpace})
	if !was || err != nil {
		t.Errorf("deactivate: %v, %v", was, err)
	}
	if was, _ = s.AlarmDeactivate(bg, Alarm{9, NoSpace}); was {
		t.Error("it was deactivated twice")
	}
	_, err = do(s, putOp("a", string(make([]byte, 50_000))))
	refused(err) // and raised again
	alarms(Alarm{9, NoSpace})
}

// The store's own alarm goes when there is room again; one that a person set stays (ALM-8 is
// etcd's way, where every alarm stays).
func TestAlarmClearsItself(t *testing.T) {
	s := openStore(t, Options{Dir: t.TempDir(), Quota: 300_000})
	s.SetMemberID(9)
	fill(t, s)
	s = reopen(t, s) // it knows its own again, be it from the tree or from the log
	s.SetMemberID(9)
	rev := del(t, s, everything)
	compactTo(t, s, rev)
	put(t, s, "a", "1")
	if got := s.Alarms(); len(got) > 0 {
		t.Errorf("alarms %v", got)
	}
	must(t, s.AlarmActivate(bg, Alarm{7, NoSpace}))
	_, err := do(s, putOp("a", ""))
	wantErr(t, err, ErrNoSpace)
	compactTo(t, s, s.Revision())
	_, err = do(s, putOp("a", ""))
	wantErr(t, err, ErrNoSpace)
}

func TestNoQuota(t *testing.T) { // ALM-6
	s := openStore(t, Options{Dir: t.TempDir(), Quota: -1})
	put(t, s, "a", string(make([]byte, 1<<20)))
	if st := s.Status(); st.Quota != -1 || st.InUse < 1<<20 {
		t.Errorf("status %+v", st)
	}
}

func TestCorruptAlarm(t *testing.T) {
	s := testStore(t)
	grant(t, s, 1, 100)
	put(t, s, "a", "1")
	must(t, s.AlarmActivate(bg, Alarm{1, Corrupt}))
	_, err := do(s, putOp("a", ""))
	wantErr(t, err, ErrCorrupt)
	_, err = do(s, deleteOp(everything))
	wantErr(t, err, ErrCorrupt)
	_, err = s.LeaseGrant(bg, 0, 10)
	wantErr(t, err, ErrCorrupt)
	_, err = s.LeaseRevoke(bg, 1)
	wantErr(t, err, ErrCorrupt)
	if ttl, err := s.LeaseKeepAlive(bg, 1); ttl != 100 || err != nil {
		t.Errorf("keepalive: %d, %v", ttl, err)
	}
	_, err = do(s, rangeOp(everything))
	must(t, err)
}

// Puts are refused well before the file system is full, and allowed again when there is room.
func TestFileSystemNearlyFull(t *testing.T) {
	fs := newFaultFS()
	s := openStore(t, Options{Dir: t.TempDir(), FS: fs})
	setFree := func(free uint64) {
		fs.set(func(f *faultFS) {
			f.usage = func() vfs.Usage { return vfs.Usage{Total: 10 << 30, Free: free} }
		})
		s.space.mu.Lock()
		s.space.checked = time.Time{}
		s.space.mu.Unlock()
	}
	least := minFree(10<<30, 0)
	setFree(least + 1)
	put(t, s, "a", "1")
	setFree(least - 1)
	_, err := do(s, putOp("a", "2"))
	wantErr(t, err, ErrNoSpace)
	if len(s.Alarms()) != 1 {
		t.Errorf("alarms %v", s.Alarms())
	}
	rev := del(t, s, single("a"))
	compactTo(t, s, rev)
	setFree(least + 1) // not on and off at the border
	_, err = do(s, putOp("a", "2"))
	wantErr(t, err, ErrNoSpace)
	setFree(2 * least)
	put(t, s, "a", "2")
	if len(s.Alarms()) != 0 {
		t.Errorf("alarms %v", s.Alarms())
	}
}

// Others can fill the file system while nobody writes: who asks for the alarms is told.
func TestAlarmsLookAtFileSystem(t *testing.T) {
	fs := newFaultFS()
	s := openStore(t, Options{Dir: t.TempDir(), FS: fs})
	s.SetMemberID(9)
	looks := 0
	age := func() {
		s.space.mu.Lock()
		s.space.checked = time.Time{}
		s.space.mu.Unlock()
	}
	setFree := func(free uint64) {
		fs.set(func(f *faultFS) {
			f.usage = func() vfs.Usage { looks++; return vfs.Usage{Total: 10 << 30, Free: free} }
		})
		age()
	}
	want := func(n int, when string) {
		t.Helper()
		if got := s.Alarms(); len(got) != n || n > 0 && got[0] != (Alarm{9, NoSpace}) {
			t.Errorf("%s: alarms %v", when, got)
		}
	}
	setFree(10 << 30)
	put(t, s, "a", "1")
	setFree(0)
	index := s.Status().Index
	want(1, "full")
	before := looks
	want(1, "asked again")
	if looks > before+1 { // a second may have passed
		t.Errorf("%d looks for one question", looks-before)
	}
	if s.Status().Index != index {
		t.Error("something was written to a full file system")
	}
	_, err := do(s, putOp("a", "2"))
	wantErr(t, err, ErrNoSpace)
	setFree(minFree(10<<30, 0) + 1<<20)
	want(1, "at the border")
	setFree(10 << 30)
	want(0, "room again")
	put(t, s, "a", "2")

	setFree(0)
	want(1, "full again")
	must(t, s.AlarmActivate(bg, Alarm{7, Corrupt}))
	s = reopen(t, s)
	s.SetMemberID(9)
	setFree(0)
	if got := s.Alarms(); len(got) != 1 || got[0].Type != Corrupt {
		t.Errorf("after a restart of a store that is marked corrupt: alarms %v", got)
	}
}

// An alarm that a refused put has written goes as well, and stays away after a restart.
func TestAlarmsClearWhatWasWritten(t *testing.T) {
	fs := newFaultFS()
	s := openStore(t, Options{Dir: t.TempDir(), FS: fs})
	setFree := func(free uint64) {
		fs.set(func(f *faultFS) { f.usage = func() vfs.Usage { return vfs.Usage{Total: 10 << 30, Free: free} } })
		s.space.mu.Lock()
		s.space.checked = time.Time{}
		s.space.mu.Unlock()
	}
	setFree(0)
	_, err := do(s, putOp("a", "1"))
	wantErr(t, err, ErrNoSpace)
	setFree(10 << 30)
	for range 2 {
		if got := s.Alarms(); len(got) > 0 {
			t.Errorf("alarms %v", got)
		}
		s = reopen(t, s)
	}
}

func TestMinFree(t *testing.T) {
	for total, want := range map[uint64]uint64{64 << 20: 16 << 20, 1 << 30: 32 << 20, 5 << 30: 5 << 30 / 50, 1 << 40: 256 << 20} {
		if got := minFree(total, 0); got != want {
			t.Errorf("of %d bytes %d are kept free, want %d", total, got, want)
		}
	}
}
