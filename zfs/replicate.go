package zfs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// TransferOptions are those of Push and Pull.
type TransferOptions struct {
	// AbortResume gives up what an interrupted transfer has left at the receiving
	// side. Snapshots that were received whole stay.
	AbortResume bool
	// DryRun finds out what is to be sent, and changes nothing.
	DryRun bool
	// Progress, if not nil, is called for each piece that was sent, from one
	// goroutine at a time.
	Progress func(Progress)
	// Note, if not nil, gets what did not work and was not needed for the transfer.
	Note func(text string)
}

func (o *TransferOptions) note(format string, args ...any) {
	if o.Note != nil {
		o.Note(fmt.Sprintf(format, args...))
	}
}

// Progress is how far a transfer is.
type Progress struct {
	Snapshot    string // which is being sent
	Step, Steps int    // the first is 1
	SentBytes   int64  // of this stream
	SizeBytes   int64  // of this stream, as estimated by zfs; 0: unknown
}

// Sent is one stream of a transfer.
type Sent struct {
	Snapshot  string `json:"snapshot"`
	From      string `json:"from,omitempty"` // "" for a full stream
	SizeBytes int64  `json:"sizeBytes"`      // with DryRun, the estimate
	Resumed   bool   `json:"resumed,omitempty"`
}

// TransferResult is what a transfer did.
type TransferResult struct {
	Sent   []Sent `json:"sent"`
	Newest string `json:"newest,omitempty"` // snapshot that is at both sides now
	// Part is the stream that was interrupted, with what was sent of it.
	Part *Sent `json:"part,omitempty"`
}

// atSource is what the source does before a snapshot is sent, and when it is at the target.
type atSource interface {
	sending(ctx context.Context, s state) error
	sent(ctx context.Context, s state) error
}

// replication sends the snapshots of one dataset into another.
type replication struct {
	from, to history
	upTo     string // the last snapshot to send, "" for all
	book     atSource
	opts     TransferOptions
	result   TransferResult
	// pretended tells that the newest snapshot of to is not there: a dry run.
	pretended bool
}

// newTargetOptions are those of a dataset that is made by receiving: it is not
// mounted by itself, so that it hides nothing, nobody writes to it, and
// zfs-auto-snapshot leaves it alone.
var newTargetOptions = []string{"-o", "canmount=noauto", "-o", "readonly=on", "-o", "com.sun:auto-snapshot=false"}

func (r *replication) read(ctx context.Context, from, to host, source, target string) (err error) {
	if r.from, err = readHistory(ctx, from, source); err != nil {
		return err
	}
	if !r.from.exists {
		return fmt.Errorf("dataset %s on %s: %w; zfs list shows those that do", source, from, ErrNotFound)
	}
	if r.to, err = readHistory(ctx, to, target); err != nil || r.to.exists {
		return err
	}
	parent := target[:strings.LastIndexByte(target, '/')]
	if _, err := to.properties(ctx, parent, "type"); err != nil {
		return fmt.Errorf("the place for %s is missing: %w; create it there, or import the pool", target, err)
	}
	return nil
}

// run makes the target a copy of the source as far as our snapshots go.
func (r *replication) run(ctx context.Context) error {
	if err := r.to.checkUnmounted(); err != nil {
		return err
	}
	if r.to.exists && r.to.token != "" {
		if err := r.interrupted(ctx); err != nil {
			return err
		}
	} else if r.opts.AbortResume {
		r.opts.note("%s on %s has nothing left of an interrupted transfer", r.to.dataset, r.to.host)
	}
	steps, err := planSteps(&r.from, &r.to, func(common state) (int64, error) { return r.writtenSince(ctx, common) })
	if errors.Is(err, ErrDiverged) && r.othersSent(ctx) {
		return r.underWay()
	}
	if err != nil {
		return err
	}
	if steps, err = r.limit(steps); err != nil {
		return err
	}
	for i, s := range steps {
		if err := r.step(ctx, s, i+1, len(steps)); err != nil {
			return err
		}
	}
	return r.finish(ctx, steps)
}

// limit leaves out what comes after upTo.
func (r *replication) limit(steps []step) ([]step, error) {
	if r.upTo == "" {
		return steps, nil
	}
	if i := slices.IndexFunc(steps, func(s step) bool { return s.to.name == r.upTo }); i >= 0 {
		return steps[:i+1], nil
	}
	if i := slices.IndexFunc(r.from.ours(), func(s state) bool { return s.name == r.upTo }); i < 0 {
		return nil, fmt.Errorf("snapshot %s@%s: %w; tarn backup list shows those that do", r.from.dataset, r.upTo, ErrNotFound)
	}
	return nil, nil // it is there already
}

func (r *replication) writtenSince(ctx context.Context, s state) (int64, error) {
	if r.pretended {
		return 0, nil
	}
	return r.to.writtenSince(ctx, s)
}

func (r *replication) sendFlag() string {
	if r.from.encrypted {
		return "-w"
	}
	// Large blocks always or never: a change in between breaks the chain.
	return "-Lc"
}

// step sends one snapshot.
func (r *replication) step(ctx context.Context, s step, i, n int) error {
	args := []string{r.sendFlag()}
	sent := Sent{Snapshot: s.to.name}
	if s.from != nil {
		args = append(args, "-i", r.from.full(*s.from))
		sent.From = s.from.name
	}
	args = append(args, r.from.full(s.to))
	size, err := r.estimate(ctx, args)
	if err != nil {
		return err
	}
	if r.opts.DryRun {
		sent.SizeBytes = size
		r.result.Sent = append(r.result.Sent, sent)
		return nil
	}
	if err := r.book.sending(ctx, s.to); err != nil {
		return err
	}
	receive := []string{"zfs", "receive", "-s", "-u"}
	if s.from == nil {
		receive = append(receive, newTargetOptions...)
	}
	if err := r.stream(ctx, sent, Progress{Step: i, Steps: n, SizeBytes: size}, append([]string{"zfs", "send"}, args...), receive); err != nil {
		return err
	}
	return r.received(ctx, s.to)
}

// estimate is how long a stream will be, without what is around the data.
func (r *replication) estimate(ctx context.Context, args []string) (int64, error) {
	lines, err := r.from.output(ctx, append([]string{"zfs", "send", "-nP"}, args...)...)
	if err != nil {
		return 0, err
	}
	return sizeLine(lines), nil
}

// sizeLine finds the size in what zfs send -nP prints.
func sizeLine(lines [][]string) int64 {
	for _, f := range lines {
		if len(f) == 2 && f[0] == "size" {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return n
			}
		}
	}
	return 0
}

// stream runs one transfer and adds it to the result.
func (r *replication) stream(ctx context.Context, sent Sent, p Progress, send, receive []string) error {
	p.Snapshot = sent.Snapshot
	err := transfer(ctx, r.from.host, send, r.to.host, append(receive, r.to.dataset), func(n int) {
		p.SentBytes += int64(n)
		if r.opts.Progress != nil {
			r.opts.Progress(p)
		}
	})
	sent.SizeBytes = p.SentBytes
	if err != nil {
		r.result.Part = &sent
		return r.explain(ctx, sent, err)
	}
	r.result.Sent = append(r.result.Sent, sent)
	return nil
}

// received finishes what a received snapshot needs: its properties, without which
// nothing there knows it as ours. They do not travel in the stream: a resumed one
// has none.
func (r *replication) received(ctx context.Context, s state) error {
	if err := setProperties(ctx, r.to.host, r.to.dataset+"@"+s.name, s.ours.snapshotProperties()); err != nil {
		return fmt.Errorf("%s was received, but not marked as a snapshot of tarn: %w", s.name, err)
	}
	return r.book.sent(ctx, s)
}

func setProperties(ctx context.Context, on host, of string, props map[string]string) error {
	args := []string{"zfs", "set"}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		args = append(args, name+"="+props[name])
	}
	_, err := on.output(ctx, append(args, of)...)
	return err
}

// finish repairs what an interrupted run has left out, also when nothing was to be
// sent, and looks at the target once more.
func (r *replication) finish(ctx context.Context, steps []step) error {
	if err := r.markUnmarked(ctx); err != nil {
		return err
	}
	switch source, _, ok := newestCommon(&r.from, &r.to); {
	case len(steps) > 0:
		r.result.Newest = steps[len(steps)-1].to.name
	case ok:
		r.result.Newest = source.name
		if !r.opts.DryRun && (source.bookmark || source.ours != nil) {
			if err := r.book.sent(ctx, source); err != nil {
				return err
			}
		}
	}
	if r.opts.DryRun || len(steps) == 0 || steps[0].from != nil {
		return nil
	}
	props, err := r.to.properties(ctx, r.to.dataset, "canmount", "readonly")
	if err != nil {
		return err
	}
	if props["canmount"].Value == "on" || props["readonly"].Value != "on" {
		r.opts.note("%s on %s could be mounted and written to by accident; as root there: zfs set canmount=noauto readonly=on %s",
			r.to.dataset, r.to.host, r.to.dataset)
	}
	return nil
}

// markUnmarked gives their properties to received snapshots that have none, because a
// run ended between the two.
func (r *replication) markUnmarked(ctx context.Context) error {
	for _, there := range r.to.snapshots {
		here, ok := r.from.byGUID(there.guid)
		if !ok || here.ours == nil || there.ours != nil || r.opts.DryRun {
			continue
		}
		if err := setProperties(ctx, r.to.host, r.to.full(there), here.ours.snapshotProperties()); err != nil {
			return fmt.Errorf("%s was received earlier, but not marked as a snapshot of tarn: %w", there.name, err)
		}
	}
	return nil
}
