package zfs

import (
	"context"
	"errors"
	"fmt"
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
	case strings.Contains(text, "has been modified"):
		return fmt.Errorf("transfer %s: %w: %w", sent.Snapshot, ErrDiverged, err)
	case strings.Contains(text, "partially-complete state"):
		return fmt.Errorf("transfer %s: another transfer to %s is running, or was cut off just now: %w; run it again", sent.Snapshot, r.to.dataset, err)
	case keptPart(err):
		return fmt.Errorf("the transfer of %s broke off after %d bytes; run it again, it goes on where it was: %w", sent.Snapshot, sent.SizeBytes, err)
	}
	return fmt.Errorf("transfer %s: %w", sent.Snapshot, err)
}
