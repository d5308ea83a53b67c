package main

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/store/etcdapi"
)

// faulty passes everything on to a real server, but for what a test changes.
type faulty struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedLeaseServer
	etcdserverpb.UnimplementedMaintenanceServer
	etcdserverpb.UnimplementedWatchServer

	kv    etcdserverpb.KVClient
	lease etcdserverpb.LeaseClient
	maint etcdserverpb.MaintenanceClient
	watch etcdserverpb.WatchClient

	status   func(*etcdserverpb.StatusResponse)
	ranged   func(*etcdserverpb.RangeResponse)
	txn      func(*etcdserverpb.TxnRequest, *etcdserverpb.TxnResponse) error
	progress func(*etcdserverpb.WatchResponse) bool // false: not sent
	streamed func(*etcdserverpb.RangeStreamResponse)
	noStream bool
}

func (s *faulty) Status(ctx context.Context, r *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	resp, err := s.maint.Status(ctx, r)
	if err == nil && s.status != nil {
		s.status(resp)
	}
	return resp, err
}

func (s *faulty) Range(ctx context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	resp, err := s.kv.Range(ctx, r)
	if err == nil && s.ranged != nil {
		s.ranged(resp)
	}
	return resp, err
}

func (s *faulty) Txn(ctx context.Context, r *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	resp, err := s.kv.Txn(ctx, r)
	if err == nil && s.txn != nil {
		err = s.txn(r, resp)
	}
	return resp, err
}

func (s *faulty) RangeStream(r *etcdserverpb.RangeRequest, to grpc.ServerStreamingServer[etcdserverpb.RangeStreamResponse]) error {
	if s.noStream {
		return grpcstatus.Error(codes.Unimplemented, "unknown method RangeStream")
	}
	from, err := s.kv.RangeStream(to.Context(), r)
	for err == nil {
		var part *etcdserverpb.RangeStreamResponse
		if part, err = from.Recv(); err == nil {
			if s.streamed != nil {
				s.streamed(part)
			}
			err = to.Send(part)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return err
}

func (s *faulty) Watch(to grpc.BidiStreamingServer[etcdserverpb.WatchRequest, etcdserverpb.WatchResponse]) error {
	from, err := s.watch.Watch(to.Context())
	if err != nil {
		return err
	}
	go func() {
		for {
			r, err := to.Recv()
			if err != nil || from.Send(r) != nil {
				return
			}
		}
	}()
	for {
		r, err := from.Recv()
		if err != nil {
			return err
		}
		if !r.Created && s.progress != nil && !s.progress(r) {
			continue
		}
		if err := to.Send(r); err != nil {
			return err
		}
	}
}

func (s *faulty) LeaseGrant(ctx context.Context, r *etcdserverpb.LeaseGrantRequest) (*etcdserverpb.LeaseGrantResponse, error) {
	return s.lease.LeaseGrant(ctx, r)
}

func (s *faulty) LeaseRevoke(ctx context.Context, r *etcdserverpb.LeaseRevokeRequest) (*etcdserverpb.LeaseRevokeResponse, error) {
	return s.lease.LeaseRevoke(ctx, r)
}

// serveFaulty puts a faulty server before a real one and returns a client of it.
func serveFaulty(t *testing.T, real *running, change func(*faulty)) (*client, *clientOptions) {
	t.Helper()
	c := real.client(t)
	s := &faulty{
		kv: etcdserverpb.NewKVClient(c), lease: etcdserverpb.NewLeaseClient(c),
		maint: etcdserverpb.NewMaintenanceClient(c), watch: etcdserverpb.NewWatchClient(c),
	}
	change(s)
	g := grpc.NewServer()
	etcdserverpb.RegisterKVServer(g, s)
	etcdserverpb.RegisterLeaseServer(g, s)
	etcdserverpb.RegisterMaintenanceServer(g, s)
	etcdserverpb.RegisterWatchServer(g, s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go g.Serve(l)
	t.Cleanup(g.Stop)
	o := &clientOptions{endpoint: etcdapi.ListenURL{Scheme: "http", Addr: l.Addr().String()}}
	front, err := o.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(front.close)
	return front, o
}

// probeOf runs the probe and returns its findings by what they are about.
func probeOf(t *testing.T, c *client, o *clientOptions, write bool) map[string]finding {
	t.Helper()
	f := &findings{area: "store"}
	explain := func(err error) error { return o.explain(context.WithoutCancel(t.Context()), err) }
	(&datastoreProbe{c: c, explain: explain, wait: time.Minute, write: write}).run(t.Context(), f)
	by := map[string]finding{}
	for _, found := range f.all() {
		by[found.What] = found
	}
	return by
}

func keyCount(t *testing.T, c *client) (keys, revision int64) {
	t.Helper()
	r, err := etcdserverpb.NewKVClient(c).Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}, CountOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return r.Count, r.GetHeader().GetRevision()
}

func TestProbeOfOurServer(t *testing.T) {
	real := start(t, testOptions(t), nil)
	c := real.client(t)
	o := &clientOptions{endpoint: mustURLs(t, real.url)[0]}
	for _, key := range []string{masterLeases + "10.0.0.1", masterLeases + "10.0.0.2", "/registry/pods/default/p"} {
		if err := put(t, c, key, "x"); err != nil {
			t.Fatal(err)
		}
	}
	keys, revision := keyCount(t, c)
	found := probeOf(t, c, o, false)
	for _, what := range []string{"version", "read", "progress", "stream"} {
		if found[what].Weight != weightOK {
			t.Errorf("%s: %+v", what, found[what])
		}
	}
	for _, what := range []string{"compaction", "bootstrap"} {
		if found[what].Weight != weightNote {
			t.Errorf("%s: %+v", what, found[what])
		}
	}
	if k, r := keyCount(t, c); k != keys || r != revision {
		t.Errorf("reading alone has changed the store: %d keys at revision %d, %d at %d before", k, r, keys, revision)
	}
	found = probeOf(t, c, o, true)
	if found["bootstrap"].Weight != weightOK {
		t.Errorf("%+v", found["bootstrap"])
	}
	leases, err := etcdserverpb.NewLeaseClient(c).LeaseLeases(t.Context(), &etcdserverpb.LeaseLeasesRequest{})
	if k, _ := keyCount(t, c); k != keys || err != nil || len(leases.Leases) > 0 {
		t.Errorf("%d keys are there, %d were; leases: %v, %v", k, keys, leases, err)
	}
	if err := put(t, c, compactClock, "2"); err != nil {
		t.Fatal(err)
	}
	if found := probeOf(t, c, o, false)["compaction"]; found.Weight != weightOK || !strings.Contains(found.Found, "written 0 revision(s) ago, the 1st time") {
		t.Errorf("%+v", found)
	}
}

func TestProbeFindsFaults(t *testing.T) {
	real := start(t, testOptions(t), nil)
	if err := put(t, real.client(t), masterLeases+"10.0.0.1", "x"); err != nil {
		t.Fatal(err)
	}
	version := func(v string) func(*faulty) {
		return func(s *faulty) { s.status = func(r *etcdserverpb.StatusResponse) { r.Version = v } }
	}
	isPut := func(r *etcdserverpb.TxnRequest) bool { return r.Success[0].GetRequestPut() != nil }
	for name, c := range map[string]struct {
		change func(*faulty)
		what   string
		weight weight
		want   string
	}{
		"version 3.5.0":     {version("3.5.0"), "version", weightProblem, "3.5.13 and later"},
		"version 3.5.12":    {version("3.5.12"), "version", weightProblem, "no progress"},
		"version 3.4.30":    {version("3.4.30"), "version", weightProblem, "no progress"},
		"version 3.4.31":    {version("3.4.31"), "version", weightOK, ""},
		"version 3.5.13":    {version("3.5.13"), "version", weightOK, ""},
		"version 3.6.0-rc":  {version("3.6.0-rc.1"), "version", weightOK, ""},
		"version of nobody": {version("kine"), "version", weightProblem, "can not read"},
		"progress to watch 0": {func(s *faulty) {
			s.progress = func(r *etcdserverpb.WatchResponse) bool { r.WatchId = 0; return true }
		}, "progress", weightProblem, "answered to watch 0"},
		"old progress": {func(s *faulty) {
			s.progress = func(r *etcdserverpb.WatchResponse) bool { r.Header.Revision = 1; return true }
		}, "progress", weightProblem, "with revision 1"},
		"no streams": {func(s *faulty) { s.noStream = true }, "stream", weightWarning, "not implemented"},
		"a stream without its end": {func(s *faulty) {
			s.streamed = func(r *etcdserverpb.RangeStreamResponse) { r.RangeResponse.Count = 0 }
		}, "stream", weightProblem, "count 0"},
		"old reads": {func(s *faulty) {
			s.ranged = func(r *etcdserverpb.RangeResponse) { r.Header.Revision = 1 }
		}, "read", weightProblem, "revision 1"},
		"no empty values": {func(s *faulty) {
			s.txn = func(r *etcdserverpb.TxnRequest, _ *etcdserverpb.TxnResponse) error {
				if isPut(r) && len(r.Success[0].GetRequestPut().Value) == 0 {
					return grpcstatus.Error(codes.InvalidArgument, "empty value")
				}
				return nil
			}
		}, "bootstrap", weightProblem, "empty value"},
		"no failed comparisons": {func(s *faulty) {
			s.txn = func(_ *etcdserverpb.TxnRequest, r *etcdserverpb.TxnResponse) error { r.Succeeded = true; return nil }
		}, "bootstrap", weightProblem, "created twice"},
		"failure without its read": {func(s *faulty) {
			s.txn = func(_ *etcdserverpb.TxnRequest, r *etcdserverpb.TxnResponse) error {
				for _, op := range r.Responses {
					if got := op.GetResponseRange(); got != nil {
						got.Kvs = []*mvccpb.KeyValue{}
					}
				}
				return nil
			}
		}, "bootstrap", weightProblem, "present value"},
	} {
		t.Run(name, func(t *testing.T) {
			front, o := serveFaulty(t, real, c.change)
			keys, _ := keyCount(t, real.client(t))
			found := probeOf(t, front, o, true)[c.what]
			if found.Weight != c.weight || !strings.Contains(found.Found, c.want) {
				t.Errorf("%+v", found)
			}
			if k, _ := keyCount(t, real.client(t)); k != keys {
				t.Errorf("%d key(s) are there after it, and %d were before", k, keys)
			}
		})
	}
}

// A server that never answers a progress request ends the question, and not the whole.
func TestProbeWithoutProgress(t *testing.T) {
	real := start(t, testOptions(t), nil)
	front, o := serveFaulty(t, real, func(s *faulty) {
		s.progress = func(*etcdserverpb.WatchResponse) bool { return false }
	})
	f := &findings{area: "store"}
	p := datastoreProbe{c: front, explain: func(err error) error { return o.explain(t.Context(), err) }, wait: 200 * time.Millisecond}
	p.askProgress(t.Context(), f, probeContact{version: "3.7.0", revision: 1})
	if all := f.all(); len(all) != 1 || all[0].Weight != weightProblem || !strings.Contains(all[0].Found, "no answer to a progress request within 200ms") {
		t.Errorf("%+v", all)
	}
}

func TestProbeWithoutServer(t *testing.T) {
	o := &clientOptions{endpoint: mustURLs(t, "http://127.0.0.1:1")[0]}
	c, err := o.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	found := probeOf(t, c, o, true)
	if f := found["answer"]; len(found) != 1 || f.Weight != weightProblem || f.Do == "" || !strings.Contains(f.Found, "no server is reachable") {
		t.Errorf("%+v", found)
	}
}

func TestBootstrapKeysOfOthers(t *testing.T) {
	key := func(name, value string) *mvccpb.KeyValue {
		return &mvccpb.KeyValue{Key: []byte(name), Value: []byte(value)}
	}
	for name, c := range map[string]struct {
		kvs  []*mvccpb.KeyValue
		want weight
	}{
		"none": {nil, weightNote},
		"one":  {[]*mvccpb.KeyValue{key("/bootstrap/0123456789ab", "x")}, weightOK},
		"lock": {[]*mvccpb.KeyValue{key("/bootstrap/0123456789ab", "")}, weightWarning},
		"two":  {[]*mvccpb.KeyValue{key("/bootstrap/0123456789ab", "x"), key("/bootstrap/ba9876543210", "x")}, weightProblem},
	} {
		f := &findings{area: "store"}
		judgeBootstrap(f, c.kvs)
		if all := f.all(); len(all) != 1 || all[0].Weight != c.want {
			t.Errorf("%s: %+v", name, all)
		}
	}
}
