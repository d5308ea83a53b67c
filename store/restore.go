package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
)

// The steps of a restore, as RestoreOptions.Progress gets them.
const (
	RestoreStepCheck  = "checking the snapshot" // without numbers
	RestoreStepCopy   = "copying"               // in bytes
	RestoreStepVerify = "checking the copy"     // without numbers
)

// Errors of a restore. Nothing in the data directory was changed.
var (
	// ErrSnapshot is returned when the snapshot can not be restored: it is damaged, or holds no store.
	ErrSnapshot = errors.New("the snapshot can not be restored")
	// ErrRestoreTarget is returned when the directory can not take the restored state: it holds another
	// store, or one where none may be.
	ErrRestoreTarget = errors.New("the directory can not take the restored state")
)

// RestoreOptions say what to restore. Dir and Source are needed.
type RestoreOptions struct {
	Dir    string // the data directory; made if it is missing
	Source string // the data directory as the snapshot holds it: only read
	FS     vfs.FS // for what is written; default vfs.OS

	Snapshot   string // name of the snapshot, for the journal and texts
	Empty      bool   // Dir must be empty or missing
	OtherStore bool   // Dir may hold another store than Source

	// Known is a revision that was handed out, as other snapshots tell; 0 if none is known.
	Known int64
	// KnownStore is the store that Dir holds, as its snapshots tell; "" if that is not known. It counts
	// only where the present state can not be read.
	KnownStore string
	// Compare, if set, compares what was found in the snapshot with what is recorded of it. The
	// findings are damage; an error ends the restore.
	Compare func(context.Context, CheckReport) (findings []string, err error)
	// Advance is how far the revision is moved above all that are known: 0 means enough (see
	// RestoreReport.Revision); negative, only with Empty, leaves revision and history as they are.
	Advance int64

	// DryRun ends it before anything is changed or made: all is checked, and the report tells what would
	// be done.
	DryRun bool
	// Before, if set, is called when that point is reached, while nobody else has the directory. Its
	// error ends the restore.
	Before func(context.Context, RestoreReport) error

	Time     time.Time                            // now, for the name of what is kept; default time.Now
	Progress func(step string, done, total int64) // if set, is called now and then; total 0: not known
}

// RestoreReport tells what a restore did.
type RestoreReport struct {
	StoreID          string
	Keys             int64
	SnapshotRevision int64
	OldStoreID       string // of what was in the directory; "" if that is not known
	OldRevision      int64  // of what was in the directory; 0 if there was none or it could not be read
	OldProblem       string // why it could not be read, "" if it could or there was none
	Revision         int64  // of the restored state, and up to where it is compacted
	Aside            string // path of the directory that keeps the old state, "" if there was none
	Made             bool   // the directory was missing
	UID              int    // whom the restored state belongs to
	Exchanged        bool   // the exchange was begun, so the directory need not be as it was; told with errors too
	Short            int64  // bytes that are missing if the copy can not share its blocks; 0: enough, or not known
}

// Restore makes the data directory hold what Source holds. The new state is copied, completed and
// checked beside the old one, then takes its place; the old one is kept in a directory of its own.
//
// The revision moves above all that were handed out, and everything below counts as compacted. So no
// client takes the revisions of the restored state for those that it knows: watches from old ones are
// cancelled, and clients list again.
//
// ErrInUse, ErrSnapshot, ErrRestoreTarget and ErrRestoring are returned as their texts say. After an error the
// directory is as it was, unless the error matches ErrRestoring: then ResumeRestore finishes it, and no
// server starts before. Only the very last sync can fail after all is done, as its error says.
func Restore(ctx context.Context, o RestoreOptions) (r RestoreReport, err error) {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Time.IsZero() {
		o.Time = time.Now()
	}
	if o.Advance < 0 && !o.Empty || o.Advance > 0 && o.Advance < leastAdvance {
		return r, fmt.Errorf("the revision can not be moved by %d: at least by %d", o.Advance, leastAdvance)
	}
	x := &restorer{RestoreOptions: o, staging: filepath.Join(o.Dir, stagingName)}
	if err := x.checkTarget(); err != nil { // before the long part
		return r, err
	}
	if err := x.checkSource(ctx); err != nil {
		return r, err
	}
	if x.DryRun {
		if err := x.tryDir(); err != nil {
			return r, err
		}
		err = x.run(ctx)
		return x.report, err
	}
	lock, err := x.lockDir()
	if err != nil {
		return r, err
	}
	defer func() {
		if err != nil && !errors.Is(err, ErrRestoring) {
			x.cleanUp(x.report.Made)
		}
		err = errors.Join(err, lock.Close())
	}()
	if err := x.checkTarget(); err != nil { // now that nobody else is in there
		return r, err
	}
	err = x.run(ctx)
	return x.report, err
}

// restorer is one restore.
type restorer struct {
	RestoreOptions
	staging string
	source  CheckReport
	old     oldState
	report  RestoreReport
}

func (x *restorer) progress(step string, done, total int64) {
	if x.Progress != nil {
		x.Progress(step, done, total)
	}
}

// checkTarget tells whether the directory can take a restore, and changes nothing.
func (x *restorer) checkTarget() error {
	names, err := x.FS.List(x.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the directory: %w", err)
	}
	if slices.Contains(names, RestoreJournal) {
		return restoring(x.Dir)
	}
	if slices.Contains(names, "member") {
		return fmt.Errorf("%w: %s is a data directory of etcd; use another one", ErrRestoreTarget, x.Dir)
	}
	if !x.Empty {
		return nil
	}
	for _, name := range names {
		if !slices.Contains([]string{stagingName, RestoreJournal + ".new", vfs.LockName, "lost+found"}, name) {
			return fmt.Errorf("%w: %s is not empty (%s is in it); use an empty or a new directory", ErrRestoreTarget, x.Dir, name)
		}
	}
	return nil
}

// checkSource reads all of the snapshot.
func (x *restorer) checkSource(ctx context.Context) error {
	x.progress(RestoreStepCheck, 0, 0)
	x.source.liveAt = headRevision
	err := x.source.checkDir(ctx, x.Source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// What is recorded of it can tell that there was a store.
		if x.Compare != nil {
			x.source.Findings, _ = x.Compare(ctx, x.source)
		}
		if len(x.source.Findings) == 0 {
			return fmt.Errorf("%w: %w", ErrSnapshot, err)
		}
		return x.damagedSource()
	case errors.Is(err, ErrInUse):
		return sourceInUse(x.Source)
	case err != nil:
		return err
	}
	if x.Compare != nil {
		findings, err := x.Compare(ctx, x.source)
		if err != nil {
			return err
		}
		x.source.Findings = append(x.source.Findings, findings...)
	}
	if len(x.source.Findings) > 0 {
		return x.damagedSource()
	}
	x.report.StoreID, x.report.Keys, x.report.SnapshotRevision = x.source.StoreID, x.source.Keys, x.source.Revision
	return nil
}

// damagedSource tells what was found in the snapshot.
func (x *restorer) damagedSource() error {
	return fmt.Errorf("%w: %s is damaged: %s; use another one (`tarn snapshot verify --all` finds a good one)",
		ErrSnapshot, x.name(), strings.Join(x.source.Findings, "; "))
}

// sourceInUse says that what was to be restored is a directory that changes.
func sourceInUse(dir string) error {
	h, _ := vfs.HolderOf(dir)
	return fmt.Errorf("%w: %s, from which was to be restored, is in use by %s; %s",
		ErrInUse, dir, h.Who, h.NextStep("restore from a snapshot of it (tarn snapshot create), or stop that process first"))
}

// name is what the snapshot is called.
func (x *restorer) name() string {
	if x.Snapshot != "" {
		return x.Snapshot
	}
	return x.Source
}

func (x *restorer) run(ctx context.Context) error {
	if err := x.readOld(ctx); err != nil {
		return err
	}
	if err := x.choose(); err != nil {
		return err
	}
	if err := x.checkRoom(); err != nil {
		return err
	}
	if x.DryRun {
		return nil
	}
	if x.Before != nil {
		if err := x.Before(ctx, x.report); err != nil {
			return err
		}
	}
	if err := x.stage(ctx); err != nil {
		return x.explainNoSpace(err)
	}
	if err := ctx.Err(); err != nil { // the last chance to stop
		return err
	}
	aside, err := x.makeAside()
	if err != nil {
		return x.explainNoSpace(err)
	}
	j := journal{Snapshot: x.name(), Time: x.Time.UTC(), Revision: x.report.Revision, Aside: aside}
	if err := writeJournal(x.FS, x.Dir, j); err != nil {
		return x.explainNoSpace(x.withdraw(err, aside))
	}
	x.report.Exchanged = true
	if err := exchange(x.FS, x.Dir, j); err != nil {
		return err
	}
	if aside != "" {
		x.report.Aside = filepath.Join(x.Dir, aside)
	}
	return nil
}
