package zfs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// PropPush begins the name of the properties of a dataset that say what was pushed
// where; the target's id ends it. Their value is a PushRecord.
const PropPush = "tarn-kv:push-"

// PushRecord is what a source remembers of one target.
type PushRecord struct {
	Target   string    `json:"target"`
	Snapshot string    `json:"snapshot"` // the newest that is there, without the dataset
	Time     time.Time `json:"time"`     // of the last push that went well, whole seconds
}

// String is the value of the property: time, snapshot, and target.
func (p PushRecord) String() string {
	return p.Time.UTC().Format(time.RFC3339) + " " + p.Snapshot + " " + p.Target
}

func parsePushRecord(s string) (p PushRecord, ok bool) {
	f := strings.SplitN(s, " ", 3)
	if len(f) != 3 {
		return PushRecord{}, false
	}
	t, err := time.Parse(time.RFC3339, f[0])
	return PushRecord{Target: f[2], Snapshot: f[1], Time: t}, err == nil
}

// Push sends our snapshots of a dataset of this machine that are not at the target
// yet, the oldest first. A target that does not exist is made.
//
// What is at the target is only added to. Nothing is received into a mounted
// dataset, and nothing that is in the way is destroyed: see ErrDiverged,
// ErrTargetInUse, ErrMixed and ErrInterrupted. The result tells what was done also
// when an error is returned.
//
// At the source a bookmark of what was sent is left, so that the snapshot may be
// destroyed, and the newest snapshot at the target is held with the tag HoldTag.
func Push(ctx context.Context, source string, target Target, opts TransferOptions) (TransferResult, error) {
	if target.IsDir() {
		return pushToDir(ctx, source, target, opts)
	}
	if target.Host == "" && (target.Dataset == source || strings.HasPrefix(target.Dataset, source+"/")) {
		return TransferResult{}, fmt.Errorf("push %s to %s: that is the dataset itself or in it: %w; name a dataset beside it, best in another pool", source, target.Dataset, ErrTargetInUse)
	}
	r := replication{opts: opts, result: TransferResult{Sent: []Sent{}}}
	err := r.read(ctx, host{}, target.host(), source, target.Dataset)
	if err == nil {
		book := &ledger{dataset: source, target: target, opts: &r.opts}
		r.book = book
		if err = r.run(ctx); err == nil && !opts.DryRun {
			err = book.close(ctx, &r.from)
		}
	}
	if err != nil {
		return r.result, fmt.Errorf("push %s to %s: %w", source, target, err)
	}
	return r.result, nil
}

// ledger keeps the bookmarks, holds and records at the source of a push. What it
// can not do for want of rights is noted, and the push goes on: a source that
// keeps its snapshots long enough needs none of it.
type ledger struct {
	dataset string
	target  Target
	opts    *TransferOptions
	newest  *state
	noted   map[string]bool
}

// sending holds a snapshot, so that an interrupted transfer can be resumed.
func (l *ledger) sending(ctx context.Context, s state) error {
	if l.target.IsDir() {
		return nil // a stream file is begun anew, from any snapshot
	}
	_, err := output(ctx, "zfs", "hold", l.target.HoldTag(), l.dataset+"@"+s.name)
	return l.allow("holds", err)
}

// sent leaves a bookmark.
func (l *ledger) sent(ctx context.Context, s state) error {
	l.newest = &s
	if s.bookmark {
		return nil
	}
	_, err := output(ctx, "zfs", "bookmark", l.dataset+"@"+s.name, l.dataset+"#"+s.name)
	return l.allow("bookmarks", err)
}

// allow makes notes of missing rights, and takes what is done already for done.
func (l *ledger) allow(what string, err error) error {
	var c *CommandError
	switch {
	case err == nil, errors.Is(err, ErrExists):
		return nil
	case errors.As(err, &c) && strings.Contains(c.Stderr, "bookmark exists"):
		return nil
	case !errors.Is(err, ErrPermission):
		return err
	}
	if !l.noted[what] {
		l.opts.note("%s can not be set or taken away at the source: %v", what, err)
	}
	if l.noted == nil {
		l.noted = map[string]bool{}
	}
	l.noted[what] = true
	return nil
}

// close records the push, and takes away what the one before has left: holds of
// older snapshots, and bookmarks that no target needs.
func (l *ledger) close(ctx context.Context, from *history) error {
	if l.newest == nil {
		return nil
	}
	now := time.Now().UTC().Truncate(time.Second)
	record := PushRecord{Target: l.target.String(), Snapshot: l.newest.name, Time: now}
	err := setProperties(ctx, host{}, l.dataset, map[string]string{
		PropPush + l.target.id(): record.String(),
		PropLastPush:             now.Format(time.RFC3339) + " " + l.target.String(),
	})
	if err := l.allow("the record of the last push", err); err != nil {
		return err
	}
	if err := l.releaseOlder(ctx); err != nil {
		return err
	}
	return l.forgetBookmarks(ctx, from)
}

func (l *ledger) releaseOlder(ctx context.Context) error {
	d := &Dataset{name: l.dataset}
	snaps, err := d.List(ctx)
	if err != nil {
		return err
	}
	for _, s := range snaps {
		if s.Name == l.newest.name || !slices.Contains(s.Holds, l.target.HoldTag()) {
			continue
		}
		_, err := output(ctx, "zfs", "release", l.target.HoldTag(), l.dataset+"@"+s.Name)
		if errors.Is(err, ErrNotFound) {
			continue // another process was faster
		}
		if err := l.allow("holds", err); err != nil {
			return err
		}
	}
	return nil
}

// forgetBookmarks destroys our bookmarks of snapshots that are at no target the newest.
func (l *ledger) forgetBookmarks(ctx context.Context, from *history) error {
	records, err := PushRecords(ctx, l.dataset)
	if err != nil {
		return err
	}
	for _, b := range from.bookmarks {
		needed := b.order >= l.newest.order || slices.ContainsFunc(records, func(p PushRecord) bool { return p.Snapshot == b.name })
		if needed || !isOurBookmark(b.name) {
			continue
		}
		_, err := output(ctx, "zfs", "destroy", from.full(b))
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err := l.allow("bookmarks", err); err != nil {
			return err
		}
	}
	return nil
}

// PushRecords are what a dataset of this machine remembers of its targets, the one
// pushed to last first.
func PushRecords(ctx context.Context, dataset string) ([]PushRecord, error) {
	lines, err := output(ctx, "zfs", "get", "-Hp", "-s", "local", "-o", "property,value", "all", dataset)
	if err != nil {
		return nil, err
	}
	records := []PushRecord{}
	for _, f := range lines {
		if len(f) == 2 && strings.HasPrefix(f[0], PropPush) {
			if p, ok := parsePushRecord(f[1]); ok {
				records = append(records, p)
			}
		}
	}
	slices.SortFunc(records, func(a, b PushRecord) int { return b.Time.Compare(a.Time) })
	return records, nil
}

// Forget takes away what a source keeps for a target that is no more: its record,
// its hold, and the bookmarks that no other target needs. The target is not
// looked at. ErrNotFound is returned if the source knows nothing of it.
func Forget(ctx context.Context, source string, target Target) error {
	fail := func(err error) error { return fmt.Errorf("forget the target %s of %s: %w", target, source, err) }
	records, err := PushRecords(ctx, source)
	if err != nil {
		return fail(err)
	}
	i := slices.IndexFunc(records, func(p PushRecord) bool { return p.Target == target.String() })
	if i < 0 {
		return fail(fmt.Errorf("%w among its targets; tarn backup list shows them", ErrNotFound))
	}
	from, err := readHistory(ctx, host{}, source)
	if err != nil {
		return fail(err)
	}
	// A ledger without a newest snapshot: all holds of the target are of older ones.
	book := ledger{dataset: source, target: target, opts: &TransferOptions{}, newest: &state{order: ^uint64(0)}}
	if err := book.releaseOlder(ctx); err != nil {
		return fail(err)
	}
	if _, err := output(ctx, "zfs", "inherit", PropPush+target.id(), source); err != nil {
		return fail(err)
	}
	if err := book.forgetBookmarks(ctx, &from); err != nil {
		return fail(err)
	}
	if len(book.noted) > 0 {
		return fail(fmt.Errorf("%w: holds or bookmarks are left; run it as root", ErrPermission))
	}
	return nil
}
