package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	fillBatch   = 100 // keys that one transaction of fill creates; etcd allows 128
	fillWorkers = 8
	lone        = 64 // workers for transactions with one key
)

// keyset is the keys of a workload, in order, and the last revision of each. One
// worker at a time may use a key.
type keyset struct {
	prefix string
	names  []string
	mods   []int64 // 0: not created
}

func newKeyset(prefix string, n int) *keyset {
	k := &keyset{prefix: prefix, names: make([]string, n), mods: make([]int64, n)}
	for i := range k.names {
		k.names[i] = keyName(prefix, i)
	}
	return k
}

func keyName(prefix string, i int) string { return fmt.Sprintf("%sdefault/object-%07d", prefix, i) }

// newest returns the revision of the last change of a key.
func (k *keyset) newest() int64 {
	var newest int64
	for _, mod := range k.mods {
		newest = max(newest, mod)
	}
	return newest
}

// update changes key i as kube-apiserver does: if it is unchanged put, else get. It
// creates the key if mods[i] is 0. A lost condition is an error: nobody else writes.
func (k *keyset) update(ctx context.Context, kv pb.KVClient, i int, value []byte, lease int64) error {
	key := []byte(k.names[i])
	req := &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: key, Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: k.mods[i]}}},
		Success: []*pb.RequestOp{putOp(key, value, lease)},
	}
	if k.mods[i] != 0 {
		req.Failure = []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}}
	}
	res, err := kv.Txn(ctx, req)
	if err != nil {
		return fmt.Errorf("update %s: %w", key, err)
	}
	if !res.Succeeded {
		return fmt.Errorf("update %s: its revision is not %d any more, and nobody else has written it", key, k.mods[i])
	}
	if res.Header.GetRevision() <= k.mods[i] {
		return fmt.Errorf("update %s: the revision went from %d to %d", key, k.mods[i], res.Header.GetRevision())
	}
	k.mods[i] = res.Header.Revision
	return nil
}

func putOp(key, value []byte, lease int64) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: value, Lease: lease}}}
}

// updates returns an operation that updates the keys in turn. Each worker has keys of
// its own.
func (k *keyset) updates(kvs []pb.KVClient, workers, valueSize int) operation {
	next := make([]int, workers)
	for w := range next {
		next[w] = w
	}
	return func(ctx context.Context, w, _ int) error {
		i := next[w]
		if next[w] += workers; next[w] >= len(k.names) {
			next[w] = w
		}
		return k.update(ctx, kvs[w%len(kvs)], i, newValue(valueSize), 0)
	}
}

// fill creates the keys, many in a transaction if the server allows that.
func (k *keyset) fill(ctx context.Context, kvs []pb.KVClient, valueSize int) error {
	batches := (len(k.names) + fillBatch - 1) / fillBatch
	batch := func(ctx context.Context, w, b int) error {
		req := &pb.TxnRequest{}
		first, end := b*fillBatch, min((b+1)*fillBatch, len(k.names))
		for _, name := range k.names[first:end] {
			req.Success = append(req.Success, putOp([]byte(name), newValue(valueSize), 0))
		}
		res, err := kvs[w%len(kvs)].Txn(ctx, req)
		if err != nil {
			return err
		}
		for i := first; i < end; i++ {
			k.mods[i] = res.Header.Revision
		}
		return nil
	}
	err := batch(ctx, 0, 0)
	if err == nil {
		_, err = times(ctx, fillWorkers, batches-1, func(ctx context.Context, w, n int) error { return batch(ctx, w, n+1) })
	} else {
		_, err = times(ctx, lone, len(k.names), func(ctx context.Context, w, i int) error {
			return k.update(ctx, kvs[w%len(kvs)], i, newValue(valueSize), 0)
		})
	}
	if err != nil {
		return fmt.Errorf("create %d keys: %w", len(k.names), err)
	}
	return nil
}

// filler is what values are cut from.
var filler = func() []byte {
	rnd := rand.New(rand.NewPCG(3, 7))
	b := make([]byte, 1<<20)
	for i := range b {
		b[i] = 'a' + byte(rnd.Uint32()%26)
	}
	return b
}()

// stampSize is the part of a value that says when it was made.
const stampSize = 8

// newValue returns size bytes that no other value has: the time, and text.
func newValue(size int) []byte {
	v := make([]byte, size)
	copy(v, filler[rand.IntN(len(filler)-size):])
	if size >= stampSize {
		binary.BigEndian.PutUint64(v, uint64(time.Now().UnixNano()))
	}
	return v
}

// valueAge tells how long ago a value was made.
func valueAge(v []byte) time.Duration {
	if len(v) < stampSize {
		return 0
	}
	return time.Since(time.Unix(0, int64(binary.BigEndian.Uint64(v))))
}
