package main

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
)

// toAllWatches is the watch ID of an answer to a progress request: etcd's client gives it to every watch
// of the stream. One with another ID reaches one watch alone, and the others wait for ever.
const toAllWatches = -1

// askProgress watches as kube-apiserver does, and asks how far the watch is: with the answer kube-apiserver
// serves consistent lists from its cache.
func (p *datastoreProbe) askProgress(ctx context.Context, f *findings, at probeContact) {
	ctx, cancel := p.limited(ctx)
	defer cancel()
	const do = "kube-apiserver 1.34 and later waits for it with each consistent list; use a version of the server that answers it"
	answer, err := p.progress(ctx, at.revision)
	switch {
	case ctx.Err() != nil || grpcstatus.Code(err) == codes.DeadlineExceeded:
		f.problem("progress", do, "no answer to a progress request within %s", shortDuration(p.wait))
	case err != nil:
		f.problem("progress", do, "a watch failed: %v", p.explain(err))
	case answer.WatchId != toAllWatches:
		f.problem("progress", do, "a progress request is answered to watch %d, and not to %d, which means all of the stream: kube-apiserver never hears of it",
			answer.WatchId, toAllWatches)
	case answer.GetHeader().GetRevision() < at.revision:
		f.problem("progress", do, "a progress request is answered with revision %d, and the store was at %d before", answer.GetHeader().GetRevision(), at.revision)
	default:
		f.ok("progress", "a watch and a progress request are answered, for all watches of the stream")
	}
}

// progress returns the answer to a progress request on a watch that nothing happens on. ctx must end soon after it.
func (p *datastoreProbe) progress(ctx context.Context, revision int64) (*etcdserverpb.WatchResponse, error) {
	watch, err := etcdserverpb.NewWatchClient(p.c).Watch(metadata.AppendToOutgoingContext(ctx, "hasleader", "true"))
	if err != nil {
		return nil, err
	}
	key := []byte(scratchKey() + "/")
	// From a revision that is there: a watch of the future has no progress before it comes.
	create := &etcdserverpb.WatchCreateRequest{Key: key, RangeEnd: prefixEnd(key), StartRevision: revision, PrevKv: true, ProgressNotify: true}
	if err := watch.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
		return nil, err
	}
	created, err := watch.Recv()
	switch {
	case err != nil:
		return nil, err
	case !created.Created || created.Canceled:
		return nil, fmt.Errorf("the watch is refused (created %v, canceled %v: %s)", created.Created, created.Canceled, created.CancelReason)
	}
	go askForProgress(ctx, watch)
	for toOne := 0; ; {
		answer, err := watch.Recv()
		if err == nil && (answer.Canceled || len(answer.Events) > 0) {
			return nil, fmt.Errorf("the watch is ended (%s), or has %d event(s) of a key that nobody writes", answer.CancelReason, len(answer.Events))
		}
		// What is for one watch can have come unasked, but not again and again.
		if toOne++; err != nil || answer.WatchId == toAllWatches || toOne == enoughToOne {
			return answer, err
		}
	}
}

// enoughToOne are the answers to one watch after which none to all of them is expected any more.
const enoughToOne = 5

// progressPeriod is how often kube-apiserver asks while it waits.
const progressPeriod = 100 * time.Millisecond

// askForProgress asks until ctx ends, as kube-apiserver does: a request is dropped while a watch of the stream still
// catches up.
func askForProgress(ctx context.Context, watch etcdserverpb.Watch_WatchClient) {
	request := &etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_ProgressRequest{ProgressRequest: &etcdserverpb.WatchProgressRequest{}}}
	tick := time.NewTicker(progressPeriod)
	defer tick.Stop()
	for watch.Send(request) == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
