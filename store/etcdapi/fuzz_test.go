package etcdapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/etcdapi/concurrencypb"
	"github.com/tarn-kv/tarn/store/vfs"
)

const (
	// fuzzScript is the length in bytes up to which a script is looked at.
	fuzzScript = 8 << 10
	// fuzzMemory is what serving one may allocate: starting a server takes a tenth
	// of it, and the largest answers to the longest script the rest.
	fuzzMemory = 64 << 20
)

// FuzzRequests gives bytes as messages to every method of a server with an empty store,
// through its codec, its interceptors and its handlers. (Not through HTTP/2, whose goroutines
// would make each run another one.) The server answers or refuses; it does not panic or
// hang, and takes no more memory than such requests can be worth. What it can
// decode, and what it answers, is what the generated code of protobuf decodes and encodes.
// After all of it the data directory is a good one.
func FuzzRequests(f *testing.F) {
	for _, script := range fuzzRequestSeeds(f) {
		f.Add(script)
	}
	s, log := newFuzzServer(f)
	f.Fuzz(func(t *testing.T, script []byte) {
		hang := time.AfterFunc(2*waitLimit, func() { panic("a request does not end") })
		defer hang.Stop()
		before := allocated()
		dir := t.TempDir()
		revision, hash := serveScript(t, s, dir, script[:min(len(script), fuzzScript)])
		if used := allocated() - before; used > fuzzMemory {
			t.Errorf("%d bytes were allocated for a script of %d", used, len(script))
		}
		if text := log.text.Swap(nil); text != nil {
			t.Errorf("a handler panicked: %s", *text)
		}
		r, err := store.Check(testContext(t), dir)
		if err != nil || len(r.Findings) > 0 || r.Revision != revision || r.Hash != hash {
			t.Errorf("the directory afterwards: %v, %+v, want revision %d and hash %08x", err, r, revision, hash)
		}
	})
}

// allocated is the number of bytes that were allocated so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// serveScript serves one script from a new store and returns what that holds at the end.
func serveScript(t *testing.T, s *Server, dir string, script []byte) (revision int64, hash uint32) {
	st, err := store.Open(store.Options{Dir: dir, FS: sparseFS{vfs.OS}})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	st.SetMemberID(s.memberID)
	s.store = st
	c := newFuzzClient(t, s)
	c.run(script)
	c.end()
	kv, err := st.HashKV(testContext(t), 0)
	if err != nil {
		t.Error(err)
	}
	return st.Revision(), kv.Hash
}

// newFuzzServer makes the server for all scripts. Its own store is only used to begin with.
func newFuzzServer(f *testing.F) (*Server, *panicLog) {
	st, err := store.Open(store.Options{Dir: f.TempDir(), FS: sparseFS{vfs.OS}})
	if err != nil {
		f.Fatal(err)
	}
	log := new(panicLog)
	s, err := New(Config{Store: st, Logger: slog.New(log), BcryptCost: MinBcryptCost})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := errors.Join(s.Stop(context.Background()), st.Close()); err != nil {
			f.Error(err)
		}
	})
	return s, log
}

// sparseFS takes no space and no time for what is reserved ahead: the log's reserve is
// one large hole, and its segments grow.
type sparseFS struct{ vfs.FS }

func (s sparseFS) Create(name string) (vfs.File, error) {
	f, err := s.FS.Create(name)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(name) != "" {
		return growingFile{f}, nil
	}
	return holeFile{f}, nil
}

func (s sparseFS) Open(name string) (vfs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return growingFile{f}, nil
}

type growingFile struct{ vfs.File }

func (growingFile) Preallocate(int64) error { return nil }

type holeFile struct{ vfs.File }

func (f holeFile) Preallocate(size int64) error { return f.Truncate(size) }

// panicLog keeps what a server logs about a panic of a handler.
type panicLog struct{ text atomic.Pointer[string] }

func (p *panicLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }
func (p *panicLog) WithAttrs([]slog.Attr) slog.Handler           { return p }
func (p *panicLog) WithGroup(string) slog.Handler                { return p }

func (p *panicLog) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "panic" || a.Key == "stack" {
			text := fmt.Sprintln(r.Message, a.Value)
			if old := p.text.Load(); old != nil {
				text = *old + text
			}
			p.text.Store(&text)
		}
		return true
	})
	return nil
}

// fuzzMethods are the methods by the number that scripts have for them. New ones are added
// at the end, so that old scripts keep their meaning.
var fuzzMethods = []string{
	"KV/Range", "KV/RangeStream", "KV/Put", "KV/DeleteRange", "KV/Txn", "KV/Compact",
	"Watch/Watch",
	"Lease/LeaseGrant", "Lease/LeaseRevoke", "Lease/LeaseKeepAlive", "Lease/LeaseTimeToLive", "Lease/LeaseLeases",
	"Maintenance/Alarm", "Maintenance/Status", "Maintenance/Defragment", "Maintenance/Hash", "Maintenance/HashKV",
	"Maintenance/Snapshot", "Maintenance/MoveLeader", "Maintenance/Downgrade",
	"Cluster/MemberAdd", "Cluster/MemberRemove", "Cluster/MemberUpdate", "Cluster/MemberList", "Cluster/MemberPromote",
	"Auth/AuthEnable", "Auth/AuthDisable", "Auth/AuthStatus", "Auth/Authenticate",
	"Auth/UserAdd", "Auth/UserGet", "Auth/UserList", "Auth/UserDelete", "Auth/UserChangePassword",
	"Auth/UserGrantRole", "Auth/UserRevokeRole", "Auth/RoleAdd", "Auth/RoleGet", "Auth/RoleList",
	"Auth/RoleDelete", "Auth/RoleGrantPermission", "Auth/RoleRevokePermission",
	"Lock/Lock", "Lock/Unlock",
	"Election/Campaign", "Election/Proclaim", "Election/Leader", "Election/Observe", "Election/Resign",
}

// fuzzWaits are the methods that can wait for other clients for ever.
var fuzzWaits = []string{"Watch", "Lock", "Campaign", "Observe"}

var fuzzFiles = []protoreflect.FileDescriptor{pb.File_rpc_proto, concurrencypb.File_v3lock_proto, concurrencypb.File_v3election_proto}

// fuzzMethod is the descriptor of a method by its number.
func fuzzMethod(n int) protoreflect.MethodDescriptor {
	service, method, _ := strings.Cut(fuzzMethods[n%len(fuzzMethods)], "/")
	for _, f := range fuzzFiles {
		if s := f.Services().ByName(protoreflect.Name(service)); s != nil {
			return s.Methods().ByName(protoreflect.Name(method))
		}
	}
	return nil
}

func TestFuzzMethodsAreAll(t *testing.T) {
	for _, f := range fuzzFiles {
		for i := range f.Services().Len() {
			service := f.Services().Get(i)
			for j := range service.Methods().Len() {
				if name := fmt.Sprintf("%s/%s", service.Name(), service.Methods().Get(j).Name()); !slices.Contains(fuzzMethods, name) {
					t.Errorf("%s is missing", name)
				}
			}
		}
	}
	for n, name := range fuzzMethods {
		if fuzzMethod(n) == nil {
			t.Errorf("there is no %s", name)
		}
	}
}
