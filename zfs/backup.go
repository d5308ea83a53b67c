package zfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Backup is what is at a target.
type Backup struct {
	Target    string           `json:"target"`
	Snapshots []BackupSnapshot `json:"snapshots"` // the oldest first
	// Interrupted tells that a part of a transfer waits to be continued.
	Interrupted bool `json:"interrupted"`
	// Foreign are the names of snapshots there that are not ours.
	Foreign []string `json:"foreign,omitempty"`
}

// BackupSnapshot is a snapshot at a target.
type BackupSnapshot struct {
	Snapshot
	File string `json:"file,omitempty"` // in a directory
	// AtSource tells whether the source has it too. It is nil if there was no source to ask.
	AtSource *bool `json:"atSource,omitempty"`
}

// ListBackup lists what is at a target. source is the dataset of this machine to
// compare with, "" for none. ErrNoBackup is returned if nothing is there.
func ListBackup(ctx context.Context, target Target, source string) (Backup, error) {
	b := Backup{Target: target.String(), Snapshots: []BackupSnapshot{}}
	if err := b.read(ctx, target); err != nil {
		return b, fmt.Errorf("list the backup %s: %w", target, err)
	}
	if source == "" {
		return b, nil
	}
	from, err := readHistory(ctx, host{}, source)
	if err != nil || !from.exists {
		return b, err // a lost source is a reason to look at the backup
	}
	for i := range b.Snapshots {
		at := slices.ContainsFunc(from.snapshots, func(s state) bool { return s.guid == b.Snapshots[i].GUID })
		b.Snapshots[i].AtSource = &at
	}
	return b, nil
}

func (b *Backup) read(ctx context.Context, target Target) error {
	if target.IsDir() {
		files, _, err := readManifest(target.Dir)
		if err != nil {
			return err
		}
		for _, f := range files {
			s, err := f.snapshot()
			if err != nil {
				return err
			}
			b.Snapshots = append(b.Snapshots, BackupSnapshot{Snapshot: s, File: f.File})
		}
		return nil
	}
	h, err := readHistory(ctx, target.host(), target.Dataset)
	if err != nil {
		return err
	}
	if !h.exists {
		return fmt.Errorf("%s on %s: %w: the dataset does not exist", target.Dataset, h.host, ErrNoBackup)
	}
	for _, s := range h.snapshots {
		if s.ours == nil {
			b.Foreign = append(b.Foreign, s.name)
			continue
		}
		b.Snapshots = append(b.Snapshots, BackupSnapshot{Snapshot: *s.ours})
	}
	b.Interrupted = h.token != ""
	return nil
}

// VerifyOptions are those of VerifyBackup.
type VerifyOptions struct {
	// Deep reads all data of the newest snapshot of a dataset, or has zstream check
	// stream files.
	Deep     bool
	Progress func(Progress) // as in TransferOptions
}

// BackupReport is what VerifyBackup found.
type BackupReport struct {
	Snapshots int      `json:"snapshots"`        // that were found in order
	Newest    string   `json:"newest,omitempty"` // that can be restored
	Findings  []string `json:"findings"`         // what is damaged, or keeps a push out
	Notes     []string `json:"notes"`            // what is odd and no damage
}

func (r *BackupReport) find(format string, args ...any) {
	r.Findings = append(r.Findings, fmt.Sprintf(format, args...))
}

// VerifyBackup checks what is at a target. Of a directory it reads all files. For a
// dataset ZFS keeps checksums of all data itself, which Deep makes it check.
// source is as in ListBackup.
func VerifyBackup(ctx context.Context, target Target, source string, opts VerifyOptions) (report BackupReport, err error) {
	if target.IsDir() {
		report, err = verifyDir(ctx, target.Dir, opts)
	} else {
		report, err = verifyDataset(ctx, target, source, opts)
	}
	report.Findings = append([]string{}, report.Findings...)
	report.Notes = append([]string{}, report.Notes...)
	if err != nil {
		return report, fmt.Errorf("verify the backup %s: %w", target, err)
	}
	return report, nil
}

func verifyDataset(ctx context.Context, target Target, source string, opts VerifyOptions) (report BackupReport, err error) {
	h, err := readHistory(ctx, target.host(), target.Dataset)
	if err != nil {
		return report, err
	}
	if !h.exists {
		return report, fmt.Errorf("%s on %s: %w: the dataset does not exist", target.Dataset, h.host, ErrNoBackup)
	}
	ours := h.ours()
	report.Snapshots = len(ours)
	if h.token != "" {
		report.Notes = append(report.Notes, "a transfer was interrupted; the next push goes on with it")
	}
	if h.mountpoint != "" {
		report.Notes = append(report.Notes, fmt.Sprintf("it is mounted at %s, so the next push will refuse it", h.mountpoint))
	}
	if len(ours) == 0 {
		report.find("%s on %s has no snapshot of tarn", target.Dataset, h.host)
		return report, nil
	}
	newest := ours[len(ours)-1]
	report.Newest = newest.name
	if err := report.compare(ctx, &h, source); err != nil || !opts.Deep {
		return report, err
	}
	return report, report.readAll(ctx, &h, newest, opts)
}

// compare finds snapshots that have the name of one at the source and are another, and
// what would make a push refuse the target.
func (r *BackupReport) compare(ctx context.Context, h *history, source string) error {
	if source == "" {
		return nil
	}
	from, err := readHistory(ctx, host{}, source)
	if err != nil || !from.exists {
		return err
	}
	for _, there := range h.ours() {
		for _, here := range from.snapshots {
			if here.name == there.name && here.guid != there.guid {
				r.find("%s: the snapshot of this name on %s is another one (GUID %s there, %s at the target)", there.name, source, here.guid, there.guid)
			}
		}
	}
	base, err := baseOf(&from, h, func(common state) (int64, error) { return h.writtenSince(ctx, common) })
	if errors.Is(err, ErrDiverged) || errors.Is(err, ErrMixed) {
		r.find("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	behind := 0
	for _, here := range from.ours() {
		if _, there := h.byGUID(here.guid); !there && here.order > base.order {
			behind++
		}
	}
	if behind > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d newer snapshot(s) of %s are not there yet", behind, source))
	}
	return nil
}

// readAll makes zfs read all that a snapshot refers to.
func (r *BackupReport) readAll(ctx context.Context, h *history, s state, opts VerifyOptions) error {
	p := Progress{Snapshot: s.name, Step: 1, Steps: 1, SizeBytes: s.ours.SizeBytes}
	one := replication{from: *h}
	err := h.run(ctx, nil, &meter{io.Discard, func(n int) {
		p.SentBytes += int64(n)
		if opts.Progress != nil {
			opts.Progress(p)
		}
	}}, "zfs", "send", one.sendFlag(), h.full(s))
	if err == nil || ctx.Err() != nil {
		return err
	}
	if c, ok := asCommandError(err); ok && isReadError(c) {
		r.find("%s can not be read in full: %v; see zpool status -v on %s", s.name, err, h.host)
		return nil
	}
	return err
}
