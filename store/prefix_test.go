package store

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// naivePrefix is the longest prefix of a key, told by its segments.
func naivePrefix(key string) string {
	parts := strings.SplitAfter(key, "/")
	if strings.HasPrefix(key, "/") && len(parts) > 1 {
		parts[1] = "/" + parts[1]
		parts = parts[1:]
	}
	parts = parts[:len(parts)-1] // what ends in no slash
	if len(parts) > 2 && !strings.Contains(parts[1], ".") {
		parts = parts[:2]
	}
	return strings.Join(parts[:min(3, len(parts))], "")
}

// prefixKeys have all forms of prefixes, often several keys of one.
func prefixKeys() (keys []string) {
	for _, p := range []string{
		"", "/", "//", "a", "a/", "a/b/", "/a/", "/a.b/", "/a/b/", "/a/b/c/", "/a/b.c/", "/a/b.c/d/", "/a/b.c/d.e/f/", "/\xff/",
		"/registry/", "/registry/pods/", "/registry/pods/kube-system/", "/registry/podtemplates/", "/registry/events/default/",
		"/registry/k3s.cattle.io/", "/registry/k3s.cattle.io/addons/", "/registry/k3s.cattle.io/addons/kube-system/",
		"/registry/apiextensions.k8s.io/customresourcedefinitions/", "/registry/services/specs/default/", "/registryx/pods/",
	} {
		keys = append(keys, p+"x", p+"yy", p+"z.z")
	}
	return keys
}

func TestPrefixOfKey(t *testing.T) {
	var p prefixCounts
	for key, want := range map[string]string{
		"/registry/pods/default/a": "/registry/pods/", "/registry/masterleases/10.0.0.1": "/registry/masterleases/",
		"/registry/k3s.cattle.io/addons/kube-system/x": "/registry/k3s.cattle.io/addons/",
		"/registry/health": "/registry/", "compact_rev_key": OtherKeys, "/x": OtherKeys, "": OtherKeys,
		"/kubernetes.io/pods/a/b": "/kubernetes.io/pods/", "a/b/c/d": "a/b/", "/\xff\"/a": `/\xff\"/`, `/\/x/y`: `/\\/x/`,
		"/a/" + strings.Repeat("b", maxPrefixLen) + "/c": "/a/", strings.Repeat("b", maxPrefixLen) + "/c/d": OtherKeys,
	} {
		for range 2 {
			if got := p.of(key).label; got != want {
				t.Errorf("%q belongs to %q, want %q", key, got, want)
			}
		}
	}
	for _, key := range prefixKeys() {
		if got, want := p.of(key).prefix, naivePrefix(key); got != want {
			t.Errorf("%q belongs to %q, want %q", key, got, want)
		}
	}
}

// prefixRunner does random operations on a store and on the naive model.
type prefixRunner struct {
	*testing.T
	r      *rand.Rand
	s      *Store
	m      *model
	fs     *faultFS
	keys   []string
	opened int // records in the model's history when the store was opened
}

// TestPrefixTotals compares the totals with a count of everything after each of many random
// operations: writes, refused ones, the end of leases, compactions, restarts.
func TestPrefixTotals(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	x := &prefixRunner{T: t, r: rand.New(rand.NewPCG(seed, 0)), m: newModel(), fs: newFaultFS(), keys: prefixKeys()}
	x.s = openStore(t, Options{Dir: t.TempDir(), FS: x.fs, CheckpointBytes: 5000})
	for range 500 {
		x.step()
		x.compare()
	}
}

func (x *prefixRunner) key() string { return x.keys[x.r.IntN(len(x.keys))] }

func (x *prefixRunner) txn() *TxnRequest {
	req := &TxnRequest{}
	used := map[string]bool{}
	for range 1 + x.r.IntN(4) {
		key := x.key()
		if used[key] {
			continue
		}
		used[key] = true
		put := putOp(key, strings.Repeat("v", x.r.IntN(300)))
		if x.m.leases[1] != 0 && x.r.IntN(4) == 0 {
			put.Put.Lease = 1
		}
		req.Success = append(req.Success, put)
	}
	if x.r.IntN(4) == 0 {
		req.Success = []Op{deleteOp(between(x.key(), x.key()))}
	}
	return req
}

func (x *prefixRunner) step() {
	switch x.r.IntN(16) {
	case 0, 1:
		low := max(x.m.compacted+1, 1)
		rev := low + x.r.Int64N(x.m.rev-low+2)
		_, err := x.s.Compact(bg, rev, true)
		if want := x.m.compact(rev); want == nil || !errorsIs(err, want) {
			must(x, err)
		}
	case 2:
		must(x, x.s.Checkpoint(bg))
	case 3:
		x.s = reopen(x.T, x.s)
		x.s.compact.wait()
		x.opened = len(x.m.history)
	case 4:
		x.lease()
	case 5, 6:
		x.refused()
	default:
		req := x.txn()
		res, err := x.s.Txn(bg, req)
		must(x, err)
		res.Close()
		_, err = x.m.txn(req)
		must(x, err)
	}
}

// lease grants the lease, or ends it with its keys.
func (x *prefixRunner) lease() {
	if x.m.leases[1] == 0 {
		grant(x.T, x.s, 1, 1000)
		x.m.leases[1] = 1000
		return
	}
	_, err := x.s.LeaseRevoke(bg, 1)
	must(x, err)
	must(x, x.m.revoke(1))
}

// refused is a write that the disk has no room for.
func (x *prefixRunner) refused() {
	x.fs.set(func(f *faultFS) { f.write = func() error { return syscall.ENOSPC } })
	res, err := x.s.Txn(bg, x.txn())
	if err == nil {
		res.Close() // there was nothing to delete
	} else {
		wantErr(x, err, ErrNoSpace)
	}
	x.fs.set(func(f *faultFS) { f.write = nil })
	x.s.space.mu.Lock()
	x.s.space.checked = time.Time{} // look again now
	x.s.space.mu.Unlock()
}

// naive counts everything.
func (x *prefixRunner) naive() []PrefixTotals {
	byPrefix := map[string]*PrefixTotals{}
	of := func(key []byte) *PrefixTotals {
		label := cmp.Or(strings.ReplaceAll(naivePrefix(string(key)), "\xff", `\xff`), OtherKeys)
		if byPrefix[label] == nil {
			byPrefix[label] = &PrefixTotals{Prefix: label}
		}
		return byPrefix[label]
	}
	for _, kv := range x.m.at(x.m.rev, everything) {
		t := of(kv.Key)
		t.Keys++
		t.Bytes += int64(len(encodeKV(kv)))
	}
	for _, r := range x.m.stored {
		t := of(r.kv.Key)
		t.Records++
		t.RecordBytes += int64(len(encodeKV(r.kv)))
	}
	for _, r := range x.m.history[x.opened:] {
		of(r.kv.Key).Writes++
	}
	var all []PrefixTotals
	for _, t := range byPrefix {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b PrefixTotals) int { return cmp.Compare(a.Prefix, b.Prefix) })
	return all
}

func (x *prefixRunner) compare() {
	x.Helper()
	got, want := x.s.Prefixes(), x.naive()
	for i := range got {
		got[i].Rest = false
	}
	if !slices.Equal(got, want) {
		x.Fatalf("at revision %d, compacted %d: totals\n%+v, want\n%+v", x.m.rev, x.m.compacted, got, want)
	}
}

// Clients can not make the store tell any number of prefixes apart, nor take all the room; what finds
// none is counted all the same, and is taken off again where it was counted.
func TestPrefixesAreBounded(t *testing.T) {
	s := testStore(t)
	want := sum{}
	write := func(format string) {
		t.Helper()
		for i := 0; i < 3000; i += 100 {
			ops := make([]Op, 100)
			for j := range ops {
				ops[j] = putOp(fmt.Sprintf(format, i+j), "value")
			}
			_, err := do(s, ops...)
			must(t, err)
		}
		want.live += 3000
	}
	check := func() {
		t.Helper()
		all := s.Prefixes()
		got, records := sum{}, int64(0)
		for _, p := range all {
			got.add(sum{p.Keys, p.Bytes})
			records += p.Records
			if p.Keys < 0 || p.Bytes < 0 || p.Records < p.Keys || p.RecordBytes < p.Bytes {
				t.Errorf("totals %+v", p)
			}
		}
		if len(all) > maxPrefixes || len(s.mem.prefixes.list) > maxPrefixes || got.live != want.live || records < want.live {
			t.Errorf("%d prefixes with %d keys and %d records, want %d keys", len(all), got.live, records, want.live)
		}
	}
	write("/one/%d/x")
	check()
	write("/two/g.io/%d/x")
	check()
	write("/%d/x")
	check()
	put(t, s, "/registry/pods/x", "late")
	want.live++
	if all := s.Prefixes(); !slices.ContainsFunc(all, func(p PrefixTotals) bool { return p.Prefix == OtherKeys && p.Rest && p.Keys > 2000 }) ||
		!slices.ContainsFunc(all, func(p PrefixTotals) bool { return p.Prefix == "/one/" && p.Rest && p.Keys > 2000 }) {
		t.Errorf("what found no room is not there: %+v", all)
	}
	compactTo(t, s, del(t, s, everything))
	compactTo(t, s, put(t, s, "/registry/pods/x", "last"))
	want.live = 1
	check()
	s = reopen(t, s)
	if all := s.Prefixes(); len(all) != 1 || all[0].Prefix != "/registry/pods/" || all[0].Keys != 1 || all[0].Records != 1 {
		t.Errorf("after a restart %+v", all)
	}
}

// The totals can be asked for while everything goes on.
func TestPrefixesWhileWriting(t *testing.T) {
	s := testStore(t)
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := range 300 {
				_, err := do(s, putOp(fmt.Sprintf("/w/%d/%d", w, i%20), "value"), putOp(fmt.Sprintf("/new/%d-%d/x", w, i), ""))
				if err == nil && i%50 == 49 {
					_, err = s.Compact(bg, s.Revision(), false)
					if errorsIs(err, ErrCompacted) {
						err = nil
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	stop := make(chan struct{})
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, p := range s.Prefixes() {
				if p.Keys < 0 || p.Bytes < 0 || p.Records < 0 || p.RecordBytes < 0 {
					t.Errorf("totals %+v", p)
					return
				}
			}
		}
	}()
	wg.Wait()
	close(stop)
	<-asked
}

// A write counts in the steady state without allocating.
func TestPrefixAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector")
	}
	var p prefixCounts
	keys := []string{"/registry/pods/a/b", "/registry/g.io/things/a", "/registry/x", "none"}
	count := func() {
		for _, k := range keys {
			p.wrote(k, 100)
		}
	}
	count()
	if n := testing.AllocsPerRun(100, count); n > 0 {
		t.Errorf("counting allocates %v times", n)
	}
}
