package difftest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// saveSnapshot writes the snapshot stream to path as etcdctl does.
func (s *Session) saveSnapshot(ctx context.Context, path string) error {
	st, err := pb.NewMaintenanceClient(s.Server.conn).Snapshot(ctx, &pb.SnapshotRequest{})
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return file.Close()
		}
		if err != nil {
			return err
		}
		if _, err := file.Write(m.Blob); err != nil {
			return err
		}
	}
}

// etcdutl runs etcdutl and returns its standard output.
func (s *Session) etcdutl(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.Bins.Etcdutl, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("etcdutl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}

// RoundTrip saves a snapshot, checks it with etcdutl, restores it, starts a
// real etcd on the result and compares that etcd with the server the snapshot
// came from: revision, keys and the hash at every readable revision. Restart
// before it, so that the server has no stored hashes of compactions (MNT-4).
func RoundTrip() Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		if err := s.roundTrip(ctx, &f); err != nil {
			f.add("!error", s.ownIDs(err.Error()))
		}
		return f
	}
}

func (s *Session) roundTrip(ctx context.Context, f *Facts) error {
	dir, err := os.MkdirTemp(filepath.Dir(s.Server.Dir), s.Server.Name+"-snapshot")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "snapshot.db")
	if err := s.saveSnapshot(ctx, path); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	if err := s.snapshotStatus(ctx, f, path); err != nil {
		return err
	}
	restored, err := s.restore(ctx, path, filepath.Join(dir, "restored"))
	if err != nil {
		return err
	}
	defer func() {
		restored.close()
		if err := restored.Server.Stop(true); err != nil {
			f.add("!restored stop", err)
		}
	}()
	own := State()(ctx, s)
	again := State()(ctx, restored)
	for i, line := range Diff("saved", own.ignoring(".raft_term"), "restored", again.ignoring(".raft_term")) {
		f.add(fmt.Sprintf("!restored differs [%d]", i), line)
	}
	*f = append(*f, own...)
	return s.hashFile(ctx, f, path)
}

// ignoring drops facts whose path ends in suffix.
func (f Facts) ignoring(suffix string) Facts {
	var kept Facts
	for _, x := range f {
		if !strings.HasSuffix(x.Path, suffix) {
			kept = append(kept, x)
		}
	}
	return kept
}

// snapshotStatus compares what etcdutl says of the file, without size and hash
// of the whole file, which are each server's own.
func (s *Session) snapshotStatus(ctx context.Context, f *Facts, path string) error {
	out, err := s.etcdutl(ctx, "snapshot", "status", "-w", "json", path)
	if err != nil {
		return err
	}
	var st map[string]any
	if err := json.Unmarshal(out, &st); err != nil {
		return fmt.Errorf("snapshot status: %w", err)
	}
	for _, k := range []string{"revision", "totalKey", "version"} {
		f.add("status "+k, st[k])
	}
	return nil
}

// restore makes a data directory from the file and starts a real etcd on it.
func (s *Session) restore(ctx context.Context, path, dir string) (*Session, error) {
	restored, err := s.prepareRestore(ctx, path, dir)
	if err != nil {
		return nil, err
	}
	return restored, restored.Server.Start(ctx)
}

// prepareRestore makes a data directory from the file, for an etcd that is not started yet.
func (s *Session) prepareRestore(ctx context.Context, path, dir string, flags ...string) (*Session, error) {
	sv, err := NewServer("restored", s.Bins.Etcd, filepath.Dir(dir), true, nil)
	if err != nil {
		return nil, err
	}
	peer := "http://" + sv.Peer
	args := append([]string{"snapshot", "restore", path, "--data-dir", sv.Dir, "--name", "default",
		"--initial-cluster", "default=" + peer, "--initial-advertise-peer-urls", peer}, flags...)
	if _, err := s.etcdutl(ctx, args...); err != nil {
		return nil, err
	}
	return newSession(sv, s.Bins), nil
}

// hashFile compares etcdutl's hash of a copy of the file (it changes what it
// reads) with the server's own.
func (s *Session) hashFile(ctx context.Context, f *Facts, path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fileCopy := path + ".copy"
	if err := os.WriteFile(fileCopy, b[:len(b)-len(b)%512], 0o600); err != nil {
		return err
	}
	out, err := s.etcdutl(ctx, "hashkv", "-w", "json", fileCopy)
	if err != nil {
		return err
	}
	var h map[string]any
	if err := json.Unmarshal(out, &h); err != nil {
		return fmt.Errorf("hashkv: %w", err)
	}
	own, err := pb.NewMaintenanceClient(s.Server.conn).HashKV(ctx, &pb.HashKVRequest{})
	if err != nil {
		return err
	}
	f.add("etcdutl hash is the server's", fmt.Sprintf("%.0f", h["hash"]) == fmt.Sprint(own.Hash))
	return nil
}

// Exported saves a snapshot, has a real etcd serve it and compares what that answers to
// each request.
func Exported(reqs ...proto.Message) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		if err := s.exported(ctx, &f, reqs); err != nil {
			f.add("!error", s.ownIDs(err.Error()))
		}
		return f
	}
}

func (s *Session) exported(ctx context.Context, f *Facts, reqs []proto.Message) error {
	dir, err := os.MkdirTemp(filepath.Dir(s.Server.Dir), s.Server.Name+"-exported")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "snapshot.db")
	if err := s.saveSnapshot(ctx, path); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	restored, err := s.restore(ctx, path, filepath.Join(dir, "restored"))
	if err != nil {
		return err
	}
	defer func() {
		restored.close()
		if err := restored.Server.Stop(true); err != nil {
			f.add("!restored stop", err)
		}
	}()
	for i, req := range reqs {
		for _, x := range Call(req)(ctx, restored).ignoring(".raft_term") {
			f.add(fmt.Sprintf("[%d] %s", i, x.Path), x.Value)
		}
	}
	return nil
}
