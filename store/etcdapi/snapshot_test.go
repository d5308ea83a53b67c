package etcdapi

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestSnapshot(t *testing.T) {
	a := newAdminTest(t, Config{})
	for i := range 300 {
		a.put(fmt.Sprintf("key/%03d", i), fmt.Sprintf("%0500d", i))
	}
	stream, err := a.Snapshot(a.ctx, &pb.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var blobs [][]byte
	var remaining []uint64
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if m.Version != etcdStorageVersion || m.Header != nil {
			t.Fatalf("SNP-3 HDR-5: version %q, header %v", m.Version, m.Header)
		}
		blobs, remaining = append(blobs, m.Blob), append(remaining, m.RemainingBytes)
	}
	last := len(blobs) - 1
	file := bytes.Join(blobs[:last], nil)
	t.Run("SNP-1", func(t *testing.T) {
		left := uint64(len(file))
		for i, b := range blobs[:last] {
			left -= uint64(len(b))
			if len(b) > 32768 || (len(b) < 32768 && i != last-1) || remaining[i] != left {
				t.Fatalf("blob %d of %d: %d bytes, %d said to remain, %d do", i, last, len(b), remaining[i], left)
			}
		}
	})
	t.Run("SNP-2", func(t *testing.T) {
		if sum := sha256.Sum256(file); !bytes.Equal(blobs[last], sum[:]) || remaining[last] != 0 {
			t.Errorf("trailer %x with %d remaining, want %x", blobs[last], remaining[last], sum)
		}
	})
	t.Run("SNP-4", func(t *testing.T) {
		if len(file) == 0 || len(file)%512 != 0 {
			t.Errorf("%d bytes", len(file))
		}
	})
	t.Run("SNP-5 opens", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		err = db.View(func(tx *bbolt.Tx) error {
			if n := tx.Bucket([]byte("key")).Stats().KeyN; n != 300 {
				t.Errorf("%d records", n)
			}
			for err := range tx.Check() {
				return err
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestSnapshotCutShort checks that no client takes half a file for whole.
func TestSnapshotCutShort(t *testing.T) {
	sent := 0
	w := &snapshotWriter{s: &Server{stop: make(chan struct{})}, stream: fakeSnapshotStream{sent: &sent}, remaining: 100_000, sum: sha256.New()}
	if _, err := w.Write(make([]byte, 50_000)); err != nil {
		t.Fatal(err)
	}
	if err := w.finish(); err == nil {
		t.Error("the end is missing and the stream ends well")
	}
	if sent != 2 {
		t.Errorf("%d messages", sent)
	}
	close(w.s.stop)
	if _, err := w.Write(make([]byte, snapshotBlob)); !errors.Is(err, errStopped) {
		t.Errorf("V-18: %v", err)
	}
}

type fakeSnapshotStream struct {
	snapshotStream
	sent *int
}

func (f fakeSnapshotStream) Send(*pb.SnapshotResponse) error {
	*f.sent++
	return nil
}
