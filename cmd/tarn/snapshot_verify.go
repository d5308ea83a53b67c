package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/zfs"
)

// verifyOptions are the settings of tarn snapshot verify.
type verifyOptions struct {
	sourceOptions
	names       []string
	all, newest bool
	output      outputFormat
}

func newSnapshotVerifyCommand(p process) *cobra.Command {
	opts := verifyOptions{sourceOptions: defaultSourceOptions(), output: outputText}
	cmd := &cobra.Command{
		Use:   "verify NAME... | --all | --newest",
		Short: "Prove that snapshots can be restored",
		Long: `Open each snapshot as a server would after a crash, in memory and without writing
to it, and check all of it: every page of the tree, every record, every frame of the
log. The server need not be stopped.

Beside what tarn check finds, a snapshot is damaged if it holds less than what was
acknowledged before it was made, or another store, or if its hash is not the one
of an earlier verification; and a file copy, if its files are not byte for byte those
that were copied, or its snapshot.json can not be read. The hash is that of etcdctl
endpoint hashkv at that revision. A good result is recorded with the snapshot, if the
rights are there; tarn snapshot list shows it.

Each flag can be an environment variable, such as TARN_DATA_DIR for --data-dir.

Exit codes: 0 all are good, 1 at least one is damaged, 2 the command line is not
valid, or a label is not that of one snapshot alone, 3 there is no such snapshot, 4 at
least one could not be checked, and none is damaged.`,
	}
	fs := snapshotFlags(cmd, &opts.sourceOptions)
	boolFlag(fs, &opts.all, "all", "verify all snapshots, the newest first")
	boolFlag(fs, &opts.newest, "newest", "verify the newest snapshot")
	addOutputFlag(fs, &opts.output)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && !opts.all && !opts.newest {
			return atLeastOneArg(cmd, args)
		}
		if (len(args) > 0 || opts.newest) && opts.all {
			return withExit(exitUsage, errors.New("--all takes no NAME and no --newest beside it"))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := opts.resolve(fs, p.environ); err != nil {
			return err
		}
		if opts.names = args; opts.newest {
			opts.names = append(opts.names, zfs.Newest)
		}
		return runSnapshotVerify(cmd.Context(), opts, p)
	}
	return cmd
}

// snapshotVerdict is what is found of one snapshot; the JSON names are stable.
type snapshotVerdict struct {
	Name string `json:"name"`
	*checkVerdict
	// Problem is why it could not be checked.
	Problem  string  `json:"problem,omitempty"`
	Recorded bool    `json:"recorded"`
	Seconds  float64 `json:"seconds"`
}

func runSnapshotVerify(ctx context.Context, opts verifyOptions, p process) error {
	from, snaps, err := opts.listedSnapshots(ctx)
	if err != nil {
		return err
	}
	var todo []zfs.Snapshot
	if opts.all {
		for i := len(snaps) - 1; i >= 0; i-- {
			todo = append(todo, snaps[i])
		}
	} else if todo, err = findSnapshots(from, snaps, opts.names); err != nil {
		return err
	}
	if len(todo) == 0 {
		return withExit(exitNoSnapshot, fmt.Errorf("%s has no snapshots of tarn; make one with tarn snapshot create", from.Source()))
	}
	line := newProgressLine(p.stderr)
	damaged, unproved := 0, 0
	for i, s := range todo {
		line.show(fmt.Sprintf("checking %s (%d of %d)", s.Name, i+1, len(todo)), 0, 0)
		v := verifySnapshot(ctx, from, s)
		line.clear()
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if opts.output == outputJSON {
			err = json.NewEncoder(p.stdout).Encode(v)
		} else {
			_, err = fmt.Fprint(p.stdout, v.page())
		}
		if err != nil {
			return err
		}
		switch {
		case v.checkVerdict == nil:
			unproved++
		case !v.OK:
			damaged++
		}
	}
	switch {
	case damaged > 0:
		return &exitError{code: exitSnapshotDamaged, err: fmt.Errorf("%d of %d snapshots are damaged", damaged, len(todo)), told: true}
	case unproved > 0:
		return &exitError{code: exitSnapshotUnproved, err: fmt.Errorf("%d of %d snapshots were not checked", unproved, len(todo)), told: true}
	}
	return nil
}

// verifySnapshot checks one snapshot and records a good result.
func verifySnapshot(ctx context.Context, from zfs.Snapshots, s zfs.Snapshot) (v snapshotVerdict) {
	v.Name = s.Name
	start := time.Now()
	defer func() { v.Seconds = time.Since(start).Seconds() }()
	if s.Problem != "" {
		damaged := newCheckVerdict(store.CheckReport{Findings: []string{s.Problem}})
		v.checkVerdict = &damaged
		return v
	}
	r, err := checkSnapshot(ctx, from, s.Name)
	if err != nil {
		v.Problem = withOwnerAdvice(err, from.Dir()).Error()
		return v
	}
	r.Findings = append(r.Findings, againstRecord(s, r)...)
	verdict := newCheckVerdict(r)
	v.checkVerdict = &verdict
	if !verdict.OK {
		return v
	}
	result := zfs.Verification{Time: time.Now().UTC(), Revision: r.Revision, Hash: r.Hash}
	err = from.SetProperty(ctx, s.Name, zfs.PropVerified, result.String())
	if err == nil && s.StoreID == "" && r.StoreID != "" {
		err = from.SetProperty(ctx, s.Name, zfs.PropStoreID, r.StoreID)
	}
	if v.Recorded = err == nil; err != nil && !errors.Is(err, zfs.ErrPermission) {
		verdict.Notes = append(verdict.Notes, fmt.Sprintf("the result could not be recorded with the snapshot: %v", err))
	}
	return v
}

func checkSnapshot(ctx context.Context, from zfs.Snapshots, name string) (r store.CheckReport, err error) {
	dir, cleanup, err := from.Open(ctx, name)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, cleanup()) }()
	changed := from.CheckFiles(ctx, name)
	if changed != nil && !errors.Is(changed, zfs.ErrDamaged) {
		return r, changed
	}
	r, err = store.Check(ctx, dir)
	if changed == nil && err != nil && !errors.Is(err, store.ErrRestoring) && ctx.Err() == nil && missingTree(dir) {
		r.Findings, err = append(r.Findings, err.Error()), nil
	}
	if changed == nil {
		return r, err
	}
	// That the store in it can not be opened adds nothing then.
	r.Findings = append([]string{changed.Error()}, r.Findings...)
	return r, nil
}

// missingTree tells whether a snapshot whose directory can be read holds no store. When it was made there was one.
func missingTree(dir string) bool {
	_, err := os.ReadDir(dir)
	_, treeErr := os.Stat(filepath.Join(dir, treeFile))
	return err == nil && errors.Is(treeErr, fs.ErrNotExist)
}

// againstRecord compares what was found with what is recorded of the snapshot.
func againstRecord(s zfs.Snapshot, r store.CheckReport) (findings []string) {
	if !r.ContentRead {
		return nil
	}
	if r.Revision < s.Revision {
		findings = append(findings, fmt.Sprintf("it holds revision %d, and %d was acknowledged before it was made: acknowledged writes are missing", r.Revision, s.Revision))
	}
	if s.StoreID != "" && r.StoreID != s.StoreID {
		findings = append(findings, fmt.Sprintf("it holds store %q, and was made of store %s", r.StoreID, s.StoreID))
	}
	if last := s.Verified; last != nil && len(r.Findings) == 0 && (last.Revision != r.Revision || last.Hash != r.Hash) {
		findings = append(findings, fmt.Sprintf("revision %d, hash %08x: when it was verified on %s it had revision %d, hash %08x",
			r.Revision, r.Hash, last.Time.Format(time.DateOnly), last.Revision, last.Hash))
	}
	return findings
}

func (v *snapshotVerdict) page() string {
	var b strings.Builder
	switch {
	case v.checkVerdict == nil:
		fmt.Fprintf(&b, "NOT CHECKED  %s: %s\n", v.Name, v.Problem)
	case v.OK:
		fmt.Fprintf(&b, "OK           %s: revision %d, %d keys, %s, %.1f s\n", v.Name, v.Revision, v.Keys, hashText(*v.Hash), v.Seconds)
	default:
		for _, f := range v.Findings {
			fmt.Fprintf(&b, "DAMAGED      %s: %s\n", v.Name, f)
		}
	}
	if v.checkVerdict != nil {
		for _, note := range v.Notes {
			fmt.Fprintf(&b, "NOTE         %s: %s\n", v.Name, note)
		}
	}
	return b.String()
}
