package zfs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// explain adds to a failed transfer what it means.
func (r *replication) explain(ctx context.Context, sent Sent, err error) error {
	text := ""
	var c *CommandError
	if errors.As(err, &c) {
		text = c.Stderr
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the transfer of %s was interrupted after %d bytes; run it again, it goes on where it was: %w", sent.Snapshot, sent.SizeBytes, ctx.Err())
	case errors.Is(err, ErrPermission):
		return fmt.Errorf("transfer %s: %w; the rights that are needed: zfs allow -u USER send,hold,bookmark,release,userprop,destroy %s on %s, "+
			"and zfs allow -u USER receive:append,create,mount,canmount,readonly,userprop on the dataset above %s on %s (before ZFS 2.3, receive in place of receive:append)",
			sent.Snapshot, err, r.from.dataset, r.from.host, r.to.dataset, r.to.host)
	case strings.Contains(text, "key must be loaded"):
		return fmt.Errorf("transfer %s: %w; load the key of the target: zfs load-key -r %s", sent.Snapshot, err, r.to.dataset)
	case strings.Contains(text, "IV set guid mismatch"), strings.Contains(text, "raw receive on top of"):
		return fmt.Errorf("transfer %s: %w: %w; name a new dataset as the target", sent.Snapshot, ErrMixed, err)
	case overtaken(text), strings.Contains(text, "has been modified") && r.othersSent(ctx):
		// What zfs says is left out: it advises to overwrite.
		return fmt.Errorf("transfer %s: %w", sent.Snapshot, r.underWay())
	case strings.Contains(text, "has been modified"):
		return fmt.Errorf("transfer %s: %w: %w", sent.Snapshot, ErrDiverged, err)
	case keptPart(err):
		return fmt.Errorf("the transfer of %s broke off after %d bytes; run it again, it goes on where it was: %w", sent.Snapshot, sent.SizeBytes, err)
	}
	return fmt.Errorf("transfer %s: %w", sent.Snapshot, err)
}

// overtaken tells by what zfs receive says that the target is not any more as it was
// found a moment ago.
func overtaken(text string) bool {
	return slices.ContainsFunc([]string{
		"partially-complete state", "must specify -F to overwrite", "destination already exists", "dataset is busy",
	}, func(s string) bool { return strings.Contains(text, s) })
}

// othersSent tells whether the target has got snapshots of the source meanwhile that
// are not of this run.
func (r *replication) othersSent(ctx context.Context) bool {
	now, err := readHistory(ctx, r.to.host, r.to.dataset)
	return err == nil && slices.ContainsFunc(now.snapshots, func(s state) bool {
		_, known := r.from.byGUID(s.guid)
		_, before := r.to.byGUID(s.guid)
		mine := slices.ContainsFunc(r.result.Sent, func(sent Sent) bool { return sent.Snapshot == s.name })
		return known && !before && !mine
	})
}

func (r *replication) underWay() error {
	return fmt.Errorf("%s on %s: %w, or was cut off just now, or somebody else has made the dataset meanwhile; wait for its end, and run it again",
		r.to.dataset, r.to.host, ErrUnderWay)
}
