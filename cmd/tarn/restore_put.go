package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/vfs"
)

const (
	// putOps and putBytes limit one transaction, below the limits that servers have (128
	// operations, 1.5 MiB).
	putOps   = 60
	putBytes = 1 << 20
	// shownKeys is how many keys a message lists.
	shownKeys = 10
)

// putVerdict is what --put prints; the JSON names are stable.
type putVerdict struct {
	Snapshot  string   `json:"-"`
	Endpoint  string   `json:"endpoint"`
	ClusterID string   `json:"clusterID"` // in hex, of the server
	DryRun    bool     `json:"dryRun"`
	Keys      int      `json:"keys"`     // that were written, or would be
	Replaced  int      `json:"replaced"` // that existed before
	Revision  int64    `json:"revision"` // of the last transaction, 0 with --dry-run
	Leaseless []string `json:"withoutLease"`
}

// putter writes keys of a snapshot into a server.
type putter struct {
	kv        etcdserverpb.KVClient
	leases    etcdserverpb.LeaseClient
	overwrite bool

	alive map[int64]bool // leases that were asked for
	batch []*etcdserverpb.PutRequest
	size  int
	r     putVerdict
}

// putBack writes the keys of a range. First it looks whether any exists; each transaction then looks again.
func (o *restoreOptions) putBack(ctx context.Context, v *store.View, wanted store.KeyRange, p process) error {
	server := &o.key.server
	c, err := server.dial()
	if err != nil {
		return withExit(exitUsage, err)
	}
	defer c.close()
	fail := func(err error) error {
		return fmt.Errorf("put keys into %s: %w", server.endpoint, server.explain(context.WithoutCancel(ctx), err))
	}
	asking, err := server.login(ctx, c)
	if err != nil {
		return fail(err)
	}
	w := &putter{
		kv: etcdserverpb.NewKVClient(c), leases: etcdserverpb.NewLeaseClient(c), overwrite: o.key.overwrite, alive: map[int64]bool{},
		r: putVerdict{Endpoint: server.endpoint.String(), DryRun: o.dryRun, Leaseless: []string{}},
	}
	if w.r.ClusterID, err = o.putTarget(asking, c); err != nil {
		if errors.Is(err, errOtherServer) {
			return withExit(exitRestoreTarget, err)
		}
		return fail(err)
	}
	existing, err := w.existing(asking, v, wanted)
	if err != nil {
		return fail(err)
	}
	if w.r.Replaced = len(existing); len(existing) > 0 && !o.key.overwrite {
		return withExit(exitRestoreExists, fmt.Errorf("nothing was written: %d key(s) exist on %s: %s; delete them first, or add --overwrite",
			len(existing), server.endpoint, fewKeys(existing)))
	}
	err = v.Scan(asking, wanted, 0, func(kv store.KeyValue) error { return w.add(asking, kv) })
	if err == nil {
		err = w.flush(asking)
	}
	if err != nil {
		if w.r.Revision > 0 {
			err = fmt.Errorf("after %d keys: %w; a second run with --overwrite writes all of them again", w.r.Keys, err)
		}
		return fail(err)
	}
	if o.output == outputJSON {
		return json.NewEncoder(p.stdout).Encode(w.r)
	}
	_, err = fmt.Fprint(p.stdout, w.r.page())
	return err
}

// putTarget tells the cluster ID of the server that is written to. Where it can be seen that the server is
// not the one of the data directory, errOtherServer is returned, unless another store may be written.
func (o *restoreOptions) putTarget(ctx context.Context, c *client) (clusterID string, err error) {
	dir, err := o.liveDir(ctx)
	if err != nil {
		return "", err
	}
	holder, _ := vfs.HolderOf(dir)
	f, err := c.askFacts(ctx, holder)
	if errors.Is(err, errOtherServer) && o.otherStore {
		err = nil
	}
	if errors.Is(err, errOtherServer) {
		err = fmt.Errorf("nothing was written: the server at %s: %w %s, which is in use by %s; give the endpoint of that one with --endpoint, or add --other-store to write into this one",
			o.key.server.endpoint, err, dir, holder.Who)
	}
	return f.clusterID, err
}

// liveDir is the data directory that the snapshots are of, "" if it can not be reached.
func (o *restoreOptions) liveDir(ctx context.Context) (string, error) {
	if o.dataset == "" {
		return o.dataDir, nil
	}
	d, err := o.openDataset(ctx)
	if err != nil || d == nil {
		return "", err
	}
	return d.Dir(), nil
}

// existing lists the keys of the snapshot that the server has.
func (w *putter) existing(ctx context.Context, v *store.View, wanted store.KeyRange) (keys []string, err error) {
	var ask []string
	look := func() error {
		txn := &etcdserverpb.TxnRequest{}
		for _, key := range ask {
			txn.Success = append(txn.Success, &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestRange{
				RequestRange: &etcdserverpb.RangeRequest{Key: []byte(key), CountOnly: true},
			}})
		}
		resp, err := w.kv.Txn(ctx, txn)
		if err != nil {
			return err
		}
		for i, op := range resp.Responses {
			if op.GetResponseRange().GetCount() > 0 && i < len(ask) {
				keys = append(keys, ask[i])
			}
		}
		ask = ask[:0]
		return nil
	}
	items, err := v.Items(wanted, 0)
	if err != nil {
		return nil, err
	}
	for it := range items {
		if ask = append(ask, it.Key); len(ask) == putOps {
			if err := look(); err != nil {
				return nil, err
			}
		}
	}
	if len(ask) > 0 {
		err = look()
	}
	return keys, err
}

// add takes one key. Its lease is kept if the server has it.
func (w *putter) add(ctx context.Context, kv store.KeyValue) error {
	put := &etcdserverpb.PutRequest{Key: []byte(kv.Key), Value: append([]byte(nil), kv.Value...), Lease: kv.Lease}
	if kv.Lease != 0 {
		alive, err := w.leaseAlive(ctx, kv.Lease)
		if err != nil {
			return err
		}
		if !alive {
			put.Lease = 0
			w.r.Leaseless = append(w.r.Leaseless, kv.Key)
		}
	}
	size := len(put.Key) + len(put.Value)
	if len(w.batch) == putOps || len(w.batch) > 0 && w.size+size > putBytes {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.batch, w.size = append(w.batch, put), w.size+size
	return nil
}

func (w *putter) leaseAlive(ctx context.Context, id int64) (bool, error) {
	if alive, known := w.alive[id]; known {
		return alive, nil
	}
	resp, err := w.leases.LeaseTimeToLive(ctx, &etcdserverpb.LeaseTimeToLiveRequest{ID: id})
	if err != nil {
		return false, err
	}
	w.alive[id] = resp.TTL > 0
	return w.alive[id], nil
}

// errAppeared is returned when a key exists that did not a moment before.
var errAppeared = errors.New("a key has been created by somebody else meanwhile")

// flush writes what was taken, in one transaction, if none of the keys exists.
func (w *putter) flush(ctx context.Context) error {
	if len(w.batch) == 0 {
		return nil
	}
	if w.r.DryRun {
		w.r.Keys += len(w.batch)
		w.batch, w.size = nil, 0
		return nil
	}
	txn := &etcdserverpb.TxnRequest{}
	for _, put := range w.batch {
		txn.Success = append(txn.Success, &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestPut{RequestPut: put}})
		if !w.overwrite {
			txn.Compare = append(txn.Compare, &etcdserverpb.Compare{
				Key: put.Key, Target: etcdserverpb.Compare_CREATE, Result: etcdserverpb.Compare_EQUAL,
				TargetUnion: &etcdserverpb.Compare_CreateRevision{CreateRevision: 0},
			})
		}
	}
	resp, err := w.kv.Txn(ctx, txn)
	if err != nil {
		return err
	}
	if !resp.Succeeded {
		return withExit(exitRestoreExists, fmt.Errorf("%w, between %q and %q", errAppeared, w.batch[0].Key, w.batch[len(w.batch)-1].Key))
	}
	w.r.Keys += len(w.batch)
	w.r.Revision = resp.Header.GetRevision()
	w.batch, w.size = nil, 0
	return nil
}

func (r *putVerdict) page() string {
	var b strings.Builder
	if r.DryRun {
		fmt.Fprintf(&b, "nothing was written: %d key(s) would be put into %s (cluster %s), %d of them replaced\n", r.Keys, r.Endpoint, r.ClusterID, r.Replaced)
	} else {
		fmt.Fprintf(&b, "%d key(s) were put into %s (cluster %s), %d of them replaced; revision %d\n", r.Keys, r.Endpoint, r.ClusterID, r.Replaced, r.Revision)
	}
	if n := len(r.Leaseless); n > 0 {
		fmt.Fprintf(&b, "NOTE: %d of them had a lease that is gone, so they have none now and stay until they are deleted: %s\n", n, fewKeys(r.Leaseless))
	}
	return b.String()
}

// fewKeys lists a few keys.
func fewKeys(keys []string) string {
	var b strings.Builder
	for i, key := range keys {
		if i == shownKeys {
			fmt.Fprintf(&b, " and %d more", len(keys)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(printable(key))
	}
	return b.String()
}
