package main

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
)

// dial makes a connection with the settings of kube-apiserver's clients.
func dial(addr string) *grpc.ClientConn {
	c, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<31-1)),
	)
	if err != nil {
		panic(err) // the options contradict each other
	}
	return c
}

// needsLeader adds what kube-apiserver sends with its watches.
func needsLeader(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "hasleader", "true")
}

// headRevision returns the server's current revision.
func headRevision(ctx context.Context, kv pb.KVClient) (int64, error) {
	res, err := kv.Range(ctx, &pb.RangeRequest{Key: []byte("none"), Limit: 1})
	if err != nil {
		return 0, err
	}
	return res.Header.Revision, nil
}

// countKeys returns the number of keys with a prefix.
func countKeys(ctx context.Context, kv pb.KVClient, prefix string) (int64, error) {
	res, err := kv.Range(ctx, &pb.RangeRequest{Key: []byte(prefix), RangeEnd: prefixEnd(prefix), CountOnly: true})
	if err != nil {
		return 0, err
	}
	return res.Count, nil
}

// prefixEnd is the end of the range of all keys with a prefix, which must not
// end with the byte 255.
func prefixEnd(prefix string) []byte {
	end := []byte(prefix)
	end[len(end)-1]++
	return end
}
