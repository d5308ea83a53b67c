package zfs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// interrupted goes on with what an earlier transfer left at the target, or gives
// it up if that is wished.
func (r *replication) interrupted(ctx context.Context) error {
	if r.opts.AbortResume {
		return r.abort(ctx)
	}
	guid, size, err := r.readToken(ctx)
	if err != nil {
		return err
	}
	ours := r.from.ours()
	i := slices.IndexFunc(ours, func(s state) bool { return s.guid == guid })
	if i < 0 {
		return r.cannotResume("its snapshot is not on " + r.from.dataset + " any more, or it is the transfer of somebody else")
	}
	sent := Sent{Snapshot: ours[i].name, SizeBytes: size, Resumed: true}
	if r.opts.DryRun {
		r.result.Sent = append(r.result.Sent, sent)
		// The plan goes on as if it were there.
		r.to.snapshots = append(r.to.snapshots, ours[i])
		r.pretended = true
		return nil
	}
	if err := r.book.sending(ctx, ours[i]); err != nil {
		return err
	}
	if err := r.stream(ctx, sent, Progress{Step: 1, Steps: 1, SizeBytes: size},
		[]string{"zfs", "send", "-t", r.to.token}, []string{"zfs", "receive", "-s", "-u"}); err != nil {
		return err
	}
	if err := r.received(ctx, ours[i]); err != nil {
		return err
	}
	return r.readTarget(ctx)
}

func (r *replication) readTarget(ctx context.Context) (err error) {
	r.to, err = readHistory(ctx, r.to.host, r.to.dataset)
	return err
}

// abort deletes what was received in part. Of a dataset that was to be made by it,
// nothing is left then.
func (r *replication) abort(ctx context.Context) error {
	if r.opts.DryRun {
		return fmt.Errorf("a dry run can not give up the interrupted transfer to %s; leave one of the two out", r.to.dataset)
	}
	if _, err := r.to.output(ctx, "zfs", "receive", "-A", r.to.dataset); errors.Is(err, ErrBusy) {
		return r.underWay() // what it would delete is being received
	} else if err != nil {
		return fmt.Errorf("give up the interrupted transfer to %s: %w", r.to.dataset, err)
	}
	return r.readTarget(ctx)
}

var tokenGUID = regexp.MustCompile(`(?m)^\s*toguid = 0x([0-9a-f]+)$`)

// readToken is which snapshot a token is about, and how many bytes are left to send.
func (r *replication) readToken(ctx context.Context) (guid string, size int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	// It prints what is in the token also when that can not be sent any more.
	var text strings.Builder
	err = r.from.run(ctx, nil, &text, "zfs", "send", "-nvP", "-t", r.to.token)
	m := tokenGUID.FindStringSubmatch(text.String())
	if m == nil {
		if err == nil {
			err = errors.New("zfs does not say of which snapshot it is")
		}
		return "", 0, r.cannotResume(err.Error())
	}
	n, parseErr := strconv.ParseUint(m[1], 16, 64)
	if parseErr != nil {
		return "", 0, r.cannotResume(parseErr.Error())
	}
	guid = strconv.FormatUint(n, 10)
	if err != nil && slices.ContainsFunc(r.from.ours(), func(s state) bool { return s.guid == guid }) {
		return "", 0, r.cannotResume(err.Error())
	}
	var lines [][]string
	for line := range strings.Lines(text.String()) {
		lines = append(lines, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return guid, sizeLine(lines), nil
}

func (r *replication) cannotResume(why string) error {
	return fmt.Errorf("%s on %s holds a part of an interrupted transfer: %w: %s. "+
		"Run it again with --abort-resume: that deletes the part, and no snapshot", r.to.dataset, r.to.host, ErrInterrupted, why)
}
