//go:build zfs

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/zfs"
	"github.com/tarn-kv/tarn/zfs/zfstest"
)

const (
	snapshotCountEnv     = "TARN_SNAPSHOTS"
	snapshotCountDefault = 20

	snapshotBatch = 10              // then comes a time without
	snapshotQuiet = 5 * time.Second // at most
	snapshotPool  = 4 << 30         // bytes, of a sparse file
	// Every fifth is made as a person makes it, the others by zfs alone, as other tools do.
	snapshotOwn = 5

	// Full load is many clients that do not wait.
	fullLoadClients = 24
	fullLoadKeys    = 400
)

// snapshotRun makes snapshots of a store under load, and compares what each holds with
// what the clients were told.
type snapshotRun struct {
	crashRun
	dataset string
	url     string
	taken   []takenSnapshot
	during  atomic.Bool // snapshots are being made
	waits   [2]waits    // of writes, without snapshots and during them
}

// takenSnapshot is what had been promised before it began, and what had not after it ended.
type takenSnapshot struct {
	zfs.Snapshot
	own          bool  // made by tarn snapshot create
	acknowledged int64 // newest revision that anybody was shown
	floor        int64 // compact revision that was acknowledged
	floorTried   int64 // newest that had been asked for when it was done
	leases       []*crashLease
	took         time.Duration
}

// TestZFSSnapshotLoad: each snapshot of a store under full load is a prefix of the
// acknowledged history, with all that was acknowledged before the snapshot began.
func TestZFSSnapshotLoad(t *testing.T) {
	count, seed := snapshotCountDefault, uint64(time.Now().UnixNano())
	crashSetting(t, snapshotCountEnv, func(n uint64) { count = int(n) })
	crashSetting(t, crashSeedEnv, func(n uint64) { seed = n })
	t.Logf("to run this again: %s=%d %s=%d make test-zfs ZFSTEST=SnapshotLoad", crashSeedEnv, seed, snapshotCountEnv, count)

	pool := zfstest.NewSized(t, snapshotPool)
	r := &snapshotRun{dataset: pool.Dataset(t, "load", "-o", "recordsize=16K", "-o", "compression=lz4", "-o", "atime=off")}
	r.crashRun = crashRun{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 0)), hist: newCrashHistory(), bin: buildTarn(t),
		dir: filepath.Join(pool.Path("load"), "data"), watches: []*crashWatch{newCrashWatch("everything", "\x00", "\x00")}}
	for n := range fullLoadClients {
		c := newCrashClient(n, seed, r.hist)
		c.keys = fullLoadKeys
		r.clients = append(r.clients, c)
	}
	events, end := r.takeUnderLoad(count)
	if t.Failed() {
		t.FailNow()
	}
	begin := time.Now()
	if err := r.compareAll(events, end); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	t.Logf("seed %d: snapshots %d, each a prefix of the history; %s; compared in %s", seed, count, r.hist.summary(), time.Since(begin).Round(time.Second))
}

// takeUnderLoad makes the snapshots. It returns the whole history and its last revision.
func (r *snapshotRun) takeUnderLoad(count int) ([]*mvccpb.Event, int64) {
	t := r.t
	t.Helper()
	r.server = startCrashServer(t, r.bin, r.dir)
	r.server.dial(t, grpc.WithUnaryInterceptor(r.timed))
	r.url = "http://" + strings.TrimPrefix(r.server.conn.Target(), "passthrough:///")
	everything := r.watches[0]
	everything.start(t.Context(), r.server.conn)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := r.load(ctx)
	time.Sleep(2 * time.Second)
	for len(r.taken) < count && !t.Failed() {
		begin := time.Now()
		r.during.Store(true)
		for range min(snapshotBatch, count-len(r.taken)) {
			time.Sleep(time.Duration(r.rnd.IntN(50)) * time.Millisecond)
			r.take()
		}
		r.during.Store(false)
		t.Logf("%d snapshots, the last %d in %s; %d and %d writes without and during snapshots so far",
			len(r.taken), snapshotBatch, time.Since(begin).Round(time.Millisecond), r.waits[0].count(), r.waits[1].count())
		time.Sleep(min(time.Since(begin), snapshotQuiet))
	}
	cancel()
	r.wait(done, "the clients to end")
	ctx, cancel = context.WithTimeout(t.Context(), crashStepLimit)
	defer cancel()
	end, err := r.hist.fence(ctx, r.server.conn)
	if err == nil {
		err = everything.waitFor(ctx, end)
	}
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", r.seed, err, r.server.log())
	}
	r.server.stop(t, syscall.SIGTERM)
	r.report()
	return everything.take(end), end
}

// take makes one snapshot.
func (r *snapshotRun) take() {
	h := r.hist
	h.mu.Lock()
	s := takenSnapshot{acknowledged: h.published, floor: h.floor}
	for _, l := range h.leases {
		if l.long() && l.revoke == nil {
			s.leases = append(s.leases, l)
		}
	}
	h.mu.Unlock()
	begin := time.Now()
	if s.own = len(r.taken)%snapshotOwn == 0; s.own {
		code, out, errs := tarn(r.t, nil, "snapshot", "create", "--data-dir="+r.dir, "--endpoint="+r.url, "--output=json")
		if err := json.Unmarshal([]byte(out), &s.Snapshot); code != exitOK || err != nil || errs != "" {
			r.t.Errorf("seed %d, snapshot %d: exit code %d, %v: %s%s", r.seed, len(r.taken), code, err, out, errs)
			return
		}
	} else {
		s.Name, s.Created = fmt.Sprintf("autosnap_%d", len(r.taken)), begin
		zfstest.Run(r.t, "zfs", "snapshot", r.dataset+"@"+s.Name)
	}
	s.took = time.Since(begin)
	h.mu.Lock()
	s.floorTried = h.floorTried
	h.mu.Unlock()
	r.taken = append(r.taken, s)
}

// compareAll goes through the history and compares each snapshot where it ends.
func (r *snapshotRun) compareAll(events []*mvccpb.Event, end int64) error {
	writes := r.hist.byRevision()
	for i := range r.taken {
		s := &r.taken[i]
		advance := func(rev int64) error {
			n := slices.IndexFunc(events, func(e *mvccpb.Event) bool { return e.Kv.ModRevision > rev })
			if n < 0 {
				n = len(events)
			}
			now := events[:n]
			events = events[n:]
			return r.hist.advance(writes, now, rev)
		}
		if err := r.compare(s, advance); err != nil {
			return fmt.Errorf("snapshot %d of %d, %s, %s: %w", i+1, len(r.taken), s.Name, s.Created.Format(time.RFC3339Nano), err)
		}
	}
	if err := r.serveClone(&r.taken[len(r.taken)-1]); err != nil {
		return fmt.Errorf("a server on a clone of the last snapshot: %w", err)
	}
	if err := r.hist.advance(writes, events, end); err != nil {
		return err
	}
	return r.hist.settle()
}

// compare reads a snapshot at two revisions, and goes to the newest of it.
func (r *snapshotRun) compare(s *takenSnapshot, advance func(int64) error) error {
	ctx := r.t.Context()
	v, err := store.OpenView(ctx, r.inSnapshot(s))
	if err != nil {
		return err
	}
	defer v.Close()
	newest, compacted := v.Revision(), v.CompactRevision()
	switch {
	case newest < s.acknowledged || newest < s.Revision:
		return fmt.Errorf("it ends at revision %d; acknowledged before was %d, its property says %d", newest, s.acknowledged, s.Revision)
	case newest < r.hist.rev:
		return fmt.Errorf("it ends at revision %d, an older one at %d", newest, r.hist.rev)
	case compacted < s.floor || compacted > s.floorTried:
		return fmt.Errorf("compact revision %d; acknowledged before was %d, asked for later %d", compacted, s.floor, s.floorTried)
	case s.own && v.ID() != s.StoreID:
		return fmt.Errorf("store %s, its property says %s", v.ID(), s.StoreID)
	}
	earlier := max(r.hist.rev, compacted)
	earlier += r.rnd.Int64N(newest - earlier + 1)
	for _, rev := range []int64{earlier, newest} {
		if err := advance(rev); err != nil {
			return err
		}
		if err := r.hist.compareView(ctx, v, rev); err != nil {
			return fmt.Errorf("at revision %d of %d: %w", rev, newest, err)
		}
	}
	for _, l := range s.leases {
		if ttl, ok := v.LeaseTTL(l.id); l.revoke == nil && (!ok || ttl != l.ttl) {
			return fmt.Errorf("lease %x of %d s: in the snapshot %v, %d s", l.id, l.ttl, ok, ttl)
		}
	}
	return nil
}

// inSnapshot is the data directory as the snapshot has it.
func (r *snapshotRun) inSnapshot(s *takenSnapshot) string {
	return filepath.Join(filepath.Dir(r.dir), ".zfs", "snapshot", s.Name, filepath.Base(r.dir))
}

// compareView compares all keys at a revision with the replayed state.
func (h *crashHistory) compareView(ctx context.Context, v *store.View, rev int64) error {
	keys := slices.Sorted(maps.Keys(h.state))
	n := 0
	err := v.Scan(ctx, store.KeyRange{Key: []byte{0}, End: []byte{0}}, rev, func(kv store.KeyValue) error {
		got := &mvccpb.KeyValue{Key: []byte(kv.Key), Value: kv.Value, CreateRevision: kv.Create, ModRevision: kv.Rev.Main, Version: kv.Version, Lease: kv.Lease}
		if n++; n > len(keys) || !proto.Equal(got, h.state[keys[n-1]]) {
			return fmt.Errorf("key %d of %d, %s at revision %d, is not as the history has it", n, len(keys), kv.Key, kv.Rev.Main)
		}
		return nil
	})
	if err == nil && n != len(keys) {
		err = fmt.Errorf("%d keys instead of %d", n, len(keys))
	}
	return err
}

// serveClone starts a server on a clone of the snapshot that the state was replayed to.
func (r *snapshotRun) serveClone(s *takenSnapshot) error {
	clone := r.dataset + "-clone"
	zfstest.Run(r.t, "zfs", "clone", r.dataset+"@"+s.Name, clone)
	server := startCrashServer(r.t, r.bin, filepath.Join(zfstest.Run(r.t, "zfs", "get", "-Ho", "value", "mountpoint", clone), filepath.Base(r.dir)))
	server.dial(r.t)
	then := &crashHistory{state: r.hist.state, floor: s.floor}
	err := then.compareState(r.t.Context(), server.conn, r.hist.rev)
	server.stop(r.t, syscall.SIGTERM)
	return err
}

// timed notes how long each write took.
func (r *snapshotRun) timed(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if method != etcdserverpb.KV_Txn_FullMethodName {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	during, begin := r.during.Load(), time.Now()
	err := invoke(ctx, method, req, reply, cc, opts...)
	if took := time.Since(begin); err == nil && during == r.during.Load() {
		i := 0
		if during {
			i = 1
		}
		r.waits[i].add(took)
	}
	return err
}
