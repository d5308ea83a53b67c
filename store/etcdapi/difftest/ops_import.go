package difftest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// Imported saves a snapshot, imports it with `tarn import etcd`, starts tarn on the result and
// compares that with the server that the snapshot came from: keys and the hash at every readable
// revision, and the answers to requests. Restart before it, as before RoundTrip.
func Imported(reqs ...proto.Message) Op {
	return importing(func(ctx context.Context, s *Session, dir string) (*Session, []string, error) {
		path := filepath.Join(dir, "snapshot.db")
		if err := s.saveSnapshot(ctx, path); err != nil {
			return nil, nil, fmt.Errorf("save: %w", err)
		}
		return s, []string{path}, nil
	}, reqs)
}

// ImportedBumped restores a snapshot as etcdutl does when the revision has to move forward, imports
// the member's database that it made, and compares tarn with an etcd on the same.
func ImportedBumped(reqs ...proto.Message) Op {
	return importing(func(ctx context.Context, s *Session, dir string) (*Session, []string, error) {
		path := filepath.Join(dir, "snapshot.db")
		if err := s.saveSnapshot(ctx, path); err != nil {
			return nil, nil, fmt.Errorf("save: %w", err)
		}
		restored, err := s.prepareRestore(ctx, path, filepath.Join(dir, "restored"), "--bump-revision", "1000", "--mark-compacted")
		if err != nil {
			return nil, nil, err
		}
		// etcd compacts the file at its start, and locks it.
		db := filepath.Join(dir, "db")
		b, err := os.ReadFile(filepath.Join(restored.Server.Dir, "member", "snap", "db"))
		if err != nil {
			return nil, nil, err
		}
		if err := os.WriteFile(db, b, 0o600); err != nil {
			return nil, nil, err
		}
		return restored, []string{db, "--skip-hash-check"}, restored.Server.Start(ctx)
	}, reqs)
}

// importing runs prepare, which gives the session to compare with and the arguments of the import.
func importing(prepare func(ctx context.Context, s *Session, dir string) (*Session, []string, error), reqs []proto.Message) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		if s.Bins.Self {
			return f // there is no tarn
		}
		if err := s.imported(ctx, &f, prepare, reqs); err != nil {
			f.add("!error", s.ownIDs(err.Error()))
		}
		return f
	}
}

func (s *Session) imported(ctx context.Context, f *Facts, prepare func(context.Context, *Session, string) (*Session, []string, error), reqs []proto.Message) error {
	dir, err := os.MkdirTemp(filepath.Dir(s.Server.Dir), s.Server.Name+"-import")
	if err != nil {
		return err
	}
	source, args, err := prepare(ctx, s, dir)
	if source != nil && source != s {
		defer source.end(f)
	}
	if err != nil {
		return err
	}
	sv, err := NewServer("imported", s.Bins.Subject, dir, false, nil)
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, s.Bins.Subject, append([]string{"import", "etcd", "--data-dir", sv.Dir}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("import: %w: %s", err, out)
	}
	imported := newSession(sv, s.Bins)
	defer imported.end(f)
	if err := sv.Start(ctx); err != nil {
		return err
	}
	if source != s {
		if err := errors.Join(source.settle(ctx), imported.settle(ctx)); err != nil {
			return err
		}
	}
	want, got := source.everything(ctx, reqs), imported.everything(ctx, reqs)
	for i, line := range Diff("saved", want, "imported", got) {
		f.add(fmt.Sprintf("!imported differs [%d]", i), line)
	}
	*f = append(*f, got...)
	return nil
}

// settle brings the compaction to its end that a bumped file asks for, and restarts the server, so
// that it has no hash of a compaction stored (MNT-4).
func (s *Session) settle(ctx context.Context) error {
	r, err := s.kv().Put(ctx, &pb.PutRequest{Key: []byte("settle")})
	if err != nil {
		return err
	}
	if _, err := s.kv().Compact(ctx, &pb.CompactionRequest{Revision: r.Header.Revision, Physical: true}); err != nil {
		return err
	}
	if err := s.Server.Stop(false); err != nil {
		return err
	}
	return s.Server.Start(ctx)
}

// everything is the whole data, and the answers to requests.
func (s *Session) everything(ctx context.Context, reqs []proto.Message) Facts {
	all := State()(ctx, s)
	for i, req := range reqs {
		for _, x := range Call(req)(ctx, s) {
			all.add(fmt.Sprintf("[%d] %s", i, x.Path), x.Value)
		}
	}
	return all.ignoring(".raft_term")
}

// end stops a server that a step has started.
func (s *Session) end(f *Facts) {
	s.close()
	if err := s.Server.Stop(true); err != nil {
		f.add("!stop", err)
	}
}
