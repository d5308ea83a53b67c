package main

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	prefix   = "installed/"
	fenceKey = prefix + "fence"
)

// event is what a watch was told: that a key got a value at a revision.
type event write

// readHistory returns all changes below the prefix up to the end, as a new watch from the
// first revision gets them. A key that is written for this marks the end.
func readHistory(ctx context.Context, client *clientv3.Client) (events []event, end int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fence, err := client.Put(ctx, fenceKey, "end")
	if err != nil {
		return nil, 0, fmt.Errorf("write the end of the history: %w", err)
	}
	end = fence.Header.Revision
	for answer := range client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if err := answer.Err(); err != nil {
			return nil, 0, fmt.Errorf("watch from the first revision: %w", err)
		}
		for _, e := range answer.Events {
			events = append(events, event{e.Kv.ModRevision, string(e.Kv.Key), string(e.Kv.Value)})
		}
		if n := len(events); n > 0 && events[n-1].revision >= end {
			return events, end, nil
		}
	}
	return nil, 0, fmt.Errorf("the watch from the first revision has ended before revision %d: %w", end, ctx.Err())
}

// checkHistory tells whether the history has each write that was acknowledged at its
// revision, and none twice: each value is written once only.
func checkHistory(events []event, acknowledged map[int64]write) error {
	seen := map[string]int64{}
	found := 0
	last := int64(0)
	for _, e := range events {
		if e.revision <= last {
			return fmt.Errorf("the history has revision %d after %d", e.revision, last)
		}
		last = e.revision
		if w, ok := acknowledged[e.revision]; ok {
			if w != write(e) {
				return fmt.Errorf("at revision %d the acknowledged write was %s = %s; the server has %s = %s", w.revision, w.key, w.value, e.key, e.value)
			}
			found++
		}
		if e.key == fenceKey {
			continue
		}
		if earlier, ok := seen[e.value]; ok {
			return fmt.Errorf("the value %s of %s was written once, and is there at revisions %d and %d", e.value, e.key, earlier, e.revision)
		}
		seen[e.value] = e.revision
	}
	if found == len(acknowledged) {
		return nil
	}
	there := map[int64]bool{}
	for _, e := range events {
		there[e.revision] = true
	}
	for _, w := range acknowledged {
		if !there[w.revision] {
			return fmt.Errorf("%d of %d acknowledged writes are lost, such as %s = %s at revision %d", len(acknowledged)-found, len(acknowledged), w.key, w.value, w.revision)
		}
	}
	return nil
}

// below are the events of the keys with a prefix from a revision on.
func below(events []event, prefix string, from int64) (some []event) {
	for _, e := range events {
		if e.revision >= from && strings.HasPrefix(e.key, prefix) {
			some = append(some, e)
		}
	}
	return some
}

// runCheck compares the server's history with the journal of an earlier load.
func runCheck(ctx context.Context, o settings) error {
	acknowledged, err := readJournal(o.journal)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	secure, err := o.tls()
	if err != nil {
		return err
	}
	client, err := new(dials).client(o.endpoint(0), secure)
	if err != nil {
		return err
	}
	defer client.Close()
	events, end, err := readHistory(ctx, client)
	if err != nil {
		return err
	}
	if err := checkHistory(events, acknowledged); err != nil {
		return err
	}
	fmt.Printf("history: %d changes up to revision %d; acknowledged writes: %d, lost: 0\n", len(events), end, len(acknowledged))
	return nil
}
