package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/zfs"
)

// restoreVerdict is what a restore prints; the JSON names are stable.
type restoreVerdict struct {
	Snapshot         string `json:"snapshot,omitempty"`
	Dir              string `json:"dir"`
	DryRun           bool   `json:"dryRun"`
	StoreID          string `json:"storeID,omitempty"`
	Keys             int64  `json:"keys"`
	SnapshotRevision int64  `json:"snapshotRevision,omitempty"`
	OldRevision      int64  `json:"oldRevision,omitempty"` // 0: not known, or there was no store
	OldProblem       string `json:"oldProblem,omitempty"`
	Revision         int64  `json:"revision"`
	Aside            string `json:"aside,omitempty"`
	SafetySnapshot   string `json:"safetySnapshot,omitempty"`
	NewDir           bool   `json:"newDir,omitempty"` // the directory was missing
	otherStore       bool   // another store was replaced
	UID              int    `json:"uid,omitempty"`        // whom the state belongs to
	ShortBytes       int64  `json:"shortBytes,omitempty"` // that are missing if blocks can not be shared
}

func (v *restoreVerdict) fill(r store.RestoreReport) {
	v.StoreID, v.Keys, v.SnapshotRevision, v.OldRevision = r.StoreID, r.Keys, r.SnapshotRevision, r.OldRevision
	v.OldProblem, v.Revision, v.Aside = r.OldProblem, r.Revision, r.Aside
	v.otherStore = r.OldStoreID != "" && r.OldStoreID != r.StoreID
	v.NewDir, v.UID, v.ShortBytes = r.Made, r.UID, r.Short
}

func (v *restoreVerdict) print(format outputFormat, out io.Writer) error {
	if format == outputJSON {
		return json.NewEncoder(out).Encode(v)
	}
	var b strings.Builder
	switch {
	case v.DryRun:
		fmt.Fprintf(&b, "nothing was changed: %s can be restored into %s\n", v.Snapshot, v.Dir)
	case v.Snapshot == "":
		fmt.Fprintf(&b, "the restore into %s is finished\n", v.Dir)
	default:
		fmt.Fprintf(&b, "restored %s into %s\n", v.Snapshot, v.Dir)
	}
	if v.StoreID != "" {
		fmt.Fprintf(&b, "store     %s, %d keys\n", v.StoreID, v.Keys)
	}
	switch {
	case v.SnapshotRevision == 0:
		fmt.Fprintf(&b, "revision  %d\n", v.Revision)
	case v.Revision == v.SnapshotRevision:
		fmt.Fprintf(&b, "revision  %d, as in the snapshot: for looking at it, not for clients\n", v.Revision)
	case v.OldRevision > 0:
		fmt.Fprintf(&b, "revision  %d (the snapshot had %d, the state before %d)\n", v.Revision, v.SnapshotRevision, v.OldRevision)
	default:
		fmt.Fprintf(&b, "revision  %d (the snapshot had %d)\n", v.Revision, v.SnapshotRevision)
	}
	if v.OldProblem != "" {
		fmt.Fprintf(&b, "NOTE      the state before could not be read, and is kept as it was: %s\n", v.OldProblem)
	}
	if note := v.noteOwner(); note != "" && v.StoreID != "" {
		fmt.Fprintf(&b, "NOTE      %s\n", note)
	}
	if v.DryRun && v.ShortBytes > 0 {
		fmt.Fprintf(&b, "NOTE      unless the copy can share its blocks with the snapshot, which shows only when it is made, %s of room are missing: then it fails and changes nothing\n", roughBytes(v.ShortBytes))
	}
	if v.Aside != "" {
		fmt.Fprintf(&b, "kept      the state before, in %s: %srm -r it when you do not need it any more\n", v.Aside, v.undo())
	}
	if v.SafetySnapshot != "" {
		fmt.Fprintf(&b, "snapshot  of the state before: %s (held with the tag %s)\n", v.SafetySnapshot, safetyTag)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// undo says how the restore is undone, "" if that can not be: what could not be read is no source.
func (v *restoreVerdict) undo() string {
	if v.OldProblem != "" {
		return ""
	}
	command := []string{"tarn", "restore", absolute(v.Aside), "--data-dir", absolute(v.Dir)}
	if v.otherStore {
		command = append(command, "--other-store")
	}
	return zfs.CommandLine(command) + " undoes this; "
}

// absolute is a path that means the same in each directory.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
