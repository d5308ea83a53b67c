package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tarn-kv/tarn/store/etcdapi"
	"github.com/tarn-kv/tarn/store/vfs"
)

// askTime is how long the server gets to tell its revision: the snapshot matters more.
const askTime = 10 * time.Second

// errOtherServer is returned when the server that was asked does not have the data directory.
var errOtherServer = errors.New("it is another server than the one that has the data directory")

// serverFacts is what a server tells of itself, beside how it is.
type serverFacts struct {
	revision  int64
	size      int64 // bytes of its file
	clusterID string
	compared  bool // it is known to be the one that has the data directory
}

// askFacts asks a server, and compares it with the holder of a data directory where that tells
// its instance. errOtherServer is returned (with the facts) if they differ.
func (c *client) askFacts(ctx context.Context, holder vfs.Holder) (f serverFacts, err error) {
	var header metadata.MD
	status, err := etcdserverpb.NewMaintenanceClient(c).Status(ctx, &etcdserverpb.StatusRequest{}, grpc.Header(&header))
	if err != nil {
		return f, err
	}
	f.revision, f.size = status.GetHeader().GetRevision(), status.DbSize
	f.clusterID = fmt.Sprintf("%x", status.GetHeader().GetClusterId())
	if holder.Instance == "" {
		return f, nil
	}
	// A server that wrote the lock file sends this; one that does not is not it.
	if got := header.Get(etcdapi.InstanceHeader); len(got) != 1 || got[0] != holder.Instance {
		return f, errOtherServer
	}
	f.compared = true
	return f, nil
}

// askOwner asks the server at the endpoint, which should be the holder of the data directory.
func (o *snapshotCreateOptions) askOwner(ctx context.Context, dir string, holder vfs.Holder) (f serverFacts, err error) {
	if holder.Offline {
		return f, fmt.Errorf("%w %s: it is in use by %s; %s", errCommandHolds, dir, holder.Who, holder.NextStep(""))
	}
	c, err := o.server.dial()
	if err != nil {
		return f, withExit(exitUsage, err)
	}
	defer c.close()
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if asking, err = o.server.login(asking, c); err == nil {
		f, err = c.askFacts(asking, holder)
	}
	switch {
	case errors.Is(err, errOtherServer):
		return f, fmt.Errorf("the server at %s: %w %s, which is in use by %s; give the endpoint of that one with --endpoint", o.server.endpoint, err, dir, holder.Who)
	case err != nil:
		return f, fmt.Errorf("ask %s for its revision: %w", o.server.endpoint, o.server.explain(ctx, err))
	}
	return f, nil
}
