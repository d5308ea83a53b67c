package etcdapi

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// snapshotBlob is the size of a message's part of the file, etcd's (SNP-1).
const snapshotBlob = 32 << 10

type snapshotStream = grpc.ServerStreamingServer[etcdserverpb.SnapshotResponse]

// Snapshot sends the database file as of now, then its SHA-256. Writes go on
// meanwhile, and the client's speed holds nothing up but this stream.
func (m maintenanceService) Snapshot(_ *etcdserverpb.SnapshotRequest, stream snapshotStream) error {
	if err := m.s.requireAdmin(stream.Context()); err != nil {
		return err
	}
	start := time.Now()
	snap, err := m.s.store.Snapshot(stream.Context())
	if err != nil {
		return toStatus(err)
	}
	defer snap.Close()
	w := &snapshotWriter{s: m.s, stream: stream, remaining: snap.Size(), sum: sha256.New()}
	_, err = snap.WriteTo(w)
	switch {
	case w.err != nil:
		return w.err // the stream's status, without what the file's reader says about it
	case err != nil:
		return toStatus(err)
	}
	if err := w.finish(); err != nil {
		return err
	}
	took := time.Since(start)
	m.s.cfg.Durations.snapshot.Observe(took.Seconds())
	m.s.log.Info("sent a snapshot", "bytes", snap.Size(), "duration", took)
	return nil
}

// snapshotWriter sends what is written to it in blobs of one size.
type snapshotWriter struct {
	s         *Server
	stream    snapshotStream
	blob      []byte
	remaining int64 // bytes of the file not yet sent
	sum       hash.Hash
	err       error // why nothing more can be sent
}

func (w *snapshotWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if w.blob == nil {
			w.blob = make([]byte, 0, snapshotBlob)
		}
		part := min(len(p), snapshotBlob-len(w.blob))
		w.blob = append(w.blob, p[:part]...)
		p = p[part:]
		if len(w.blob) == snapshotBlob {
			if err := w.send(); err != nil {
				return n - len(p), err
			}
		}
	}
	return n, nil
}

func (w *snapshotWriter) send() error {
	if w.s.stopping() {
		w.err = errStopped
		return w.err
	}
	w.remaining -= int64(len(w.blob))
	w.sum.Write(w.blob)
	w.err = w.message(w.blob)
	w.blob = w.blob[:0] // gRPC has encoded it
	return w.err
}

// finish sends the rest of the file and the trailer (SNP-2). A file cut short
// gets no trailer, so that no client takes it for whole.
func (w *snapshotWriter) finish() error {
	if len(w.blob) > 0 {
		if err := w.send(); err != nil {
			return err
		}
	}
	if w.remaining != 0 {
		return toStatus(fmt.Errorf("snapshot: %d bytes of the database file are missing", w.remaining))
	}
	return w.message(w.sum.Sum(nil))
}

func (w *snapshotWriter) message(blob []byte) error {
	return w.stream.Send(&etcdserverpb.SnapshotResponse{
		RemainingBytes: uint64(w.remaining),
		Blob:           blob,
		Version:        etcdStorageVersion,
	})
}
