package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// saveTree writes the data of a running server to a file in dir, as a server finds
// it there: without the hash that ends a snapshot of etcd, which is compared here.
func (o *clientOptions) saveTree(ctx context.Context, dir string) (err error) {
	c, err := o.dial()
	if err != nil {
		return err
	}
	defer c.close()
	f, err := os.OpenFile(filepath.Join(dir, treeFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	asking, err := o.login(ctx, c)
	if err != nil {
		return fmt.Errorf("ask %s for its data: %w", o.endpoint, o.explain(ctx, err))
	}
	stream, err := etcdserverpb.NewMaintenanceClient(c).Snapshot(asking, &etcdserverpb.SnapshotRequest{})
	w := newHashedFile(f)
	for err == nil {
		var part *etcdserverpb.SnapshotResponse
		if part, err = stream.Recv(); err == nil {
			if err := w.write(part.Blob); err != nil {
				return err // of the disk
			}
		}
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("ask %s for its data: %w", o.endpoint, o.explain(ctx, err))
	}
	return w.end()
}

// hashedFile writes all that comes but the hash at the end of it.
type hashedFile struct {
	f    *os.File
	sum  hash.Hash
	tail []byte // the last bytes so far, which can be the hash
}

func newHashedFile(f *os.File) *hashedFile { return &hashedFile{f: f, sum: sha256.New()} }

func (w *hashedFile) write(p []byte) error {
	all := append(w.tail, p...)
	n := max(0, len(all)-sha256.Size)
	w.sum.Write(all[:n])
	w.tail = bytes.Clone(all[n:])
	_, err := w.f.Write(all[:n])
	return err
}

func (w *hashedFile) end() error {
	if !bytes.Equal(w.sum.Sum(nil), w.tail) {
		return errors.New("the data that the server sent does not have the hash at its end; try again")
	}
	return nil
}
