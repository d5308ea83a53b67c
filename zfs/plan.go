package zfs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Why nothing can be sent to a target. Test with errors.Is.
var (
	// ErrDiverged is returned when the newest state at the target is not one that
	// the source had.
	ErrDiverged = errors.New("the target has another history")
	// ErrTargetInUse is returned when the target is mounted, or is something else than a backup.
	ErrTargetInUse = errors.New("the target is in use")
	// ErrMixed is returned when raw streams would meet others.
	ErrMixed = errors.New("raw and other streams can not be mixed")
	// ErrInterrupted is returned when what was received in part can not be continued.
	ErrInterrupted = errors.New("an interrupted transfer can not be continued")
	// ErrUnderWay is returned when another transfer writes to the target.
	ErrUnderWay = errors.New("another push or pull into it is under way")
	// ErrNothingToSend is returned when the source has none of our snapshots.
	ErrNothingToSend = errors.New("there is no snapshot of tarn")
)

// step is one stream: all of to if from is nil.
type step struct {
	from *state
	to   state
}

// newestCommon is the newest snapshot at the target that the source has or
// remembers with a bookmark, as it is called at the source and at the target. The
// GUID decides: a name can be given twice.
func newestCommon(from, to *history) (source, target state, ok bool) {
	for _, t := range slices.Backward(to.snapshots) {
		if s, has := from.byGUID(t.guid); has {
			return s, t, true
		}
	}
	return state{}, state{}, false
}

// planSteps says which of our snapshots are to be sent from one history to
// another, in order. written is how many bytes were written at the target after
// the newest common snapshot.
func planSteps(from, to *history, written func(common state) (int64, error)) ([]step, error) {
	ours := from.ours()
	if len(ours) == 0 {
		return nil, fmt.Errorf("%s: %w; make one with tarn snapshot create", from.dataset, ErrNothingToSend)
	}
	if !to.exists {
		return chain(nil, ours), nil
	}
	if len(to.snapshots) == 0 {
		return nil, fmt.Errorf("%s on %s exists and has no snapshot: %w; name a dataset that does not exist, it is made then", to.dataset, to.host, ErrTargetInUse)
	}
	source, err := baseOf(from, to, written)
	if err != nil {
		return nil, err
	}
	newer := slices.DeleteFunc(ours, func(s state) bool { return s.order <= source.order })
	return chain(&source, newer), nil
}

// baseOf is the state of the source that the next stream to the target begins from.
// ErrDiverged and ErrMixed are returned if there can be none.
func baseOf(from, to *history, written func(common state) (int64, error)) (state, error) {
	source, target, ok := newestCommon(from, to)
	if !ok {
		return state{}, diverged(from, to, nil, 0)
	}
	if err := sameKind(from, to, source, target); err != nil {
		return state{}, err
	}
	n, err := written(target)
	if err != nil {
		return state{}, err
	}
	if n != 0 {
		return state{}, diverged(from, to, &target, n)
	}
	return source, nil
}

// chain is a stream for each state, from the one before.
func chain(from *state, to []state) []step {
	var steps []step
	for i := range to {
		steps = append(steps, step{from, to[i]})
		from = &to[i]
	}
	return steps
}

// checkUnmounted refuses to receive into a mounted dataset: what programs have
// mapped of its files would stay as it was in their eyes, also after a restart.
func (h *history) checkUnmounted() error {
	if h.mountpoint == "" {
		return nil
	}
	return fmt.Errorf("%s on %s is mounted at %s: %w; nothing is ever received into a mounted dataset. If it is the backup: "+
		"zfs unmount %s, and zfs set canmount=noauto %s; if not, name another target", h.dataset, h.host, h.mountpoint, ErrTargetInUse, h.dataset, h.dataset)
}

// sameKind refuses to put a raw stream on top of a state that was not received raw,
// which zfs refuses too, but only while receiving.
func sameKind(from, to *history, source, target state) error {
	if !from.encrypted || to.encrypted && source.ivset == target.ivset {
		return nil
	}
	return fmt.Errorf("%s on %s holds %s, which was not received as a raw stream, and %s is encrypted: %w; "+
		"name a new dataset as the target", to.dataset, to.host, target.name, from.dataset, ErrMixed)
}

// diverged says what is in the way, and what can be done.
func diverged(from, to *history, common *state, written int64) error {
	newest := to.snapshots[len(to.snapshots)-1].name
	if common == nil {
		return fmt.Errorf("%s on %s and %s have no snapshot in common (the newest there is %s): %w; nothing was changed. "+
			"Name a dataset that does not exist, or move this one out of the way there: zfs rename %s %s-old",
			to.dataset, to.host, from.dataset, newest, ErrDiverged, to.dataset, to.dataset)
	}
	var newer []string
	for _, s := range to.snapshots {
		if s.order > common.order {
			newer = append(newer, s.name)
		}
	}
	with := "no snapshot was taken there since"
	if len(newer) > 0 {
		with = "snapshots there since: " + strings.Join(newer, ", ")
	}
	return fmt.Errorf("%s on %s was written to after %s, the newest snapshot that it shares with %s (%d bytes; %s): %w; nothing was changed. "+
		"To keep what was written there, name another target. To give it up, on %s: zfs rollback -r %s@%s, which destroys all that is newer there",
		to.dataset, to.host, common.name, from.dataset, written, with, ErrDiverged, to.host, to.dataset, common.name)
}
