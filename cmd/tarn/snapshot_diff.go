package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/zfs"
)

// diffOptions are the settings of tarn snapshot diff.
type diffOptions struct {
	sourceOptions
	old, new string // new is "" for the data directory
	prefix   string
	all      bool
	output   outputFormat
}

func newSnapshotDiffCommand(p process) *cobra.Command {
	opts := diffOptions{sourceOptions: defaultSourceOptions(), output: outputText}
	cmd := &cobra.Command{
		Use:   "diff A [B]",
		Short: "Show what changed between two snapshots",
		Long: `Show which keys were added, removed and changed from snapshot A to snapshot B, by
type and name of the objects of Kubernetes: what happened last night. Without B, to
the present state, for which the server must be stopped; with a server running, make
a snapshot first.

  + added     - removed     ~ changed, with the versions before and after
  ! removed and made again under the same name

Events and leases, which change all the time, are only counted, unless --all or
--prefix is given. Only keys are compared, by their revisions, so it is quick; the values of two
different stores are compared as well. With --output json there is one line of JSON
for each key.

Each flag can be an environment variable, such as TARN_DATA_DIR for --data-dir.

Exit codes: 0 shown, 1 failed, 2 the command line is not valid, or the label is not
that of one snapshot alone, 3 there is no such snapshot, 5 a snapshot is damaged or
holds no store.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 {
				return nil
			}
			return withExit(exitUsage, fmt.Errorf("arguments: %d given, 1 or 2 expected; usage: %s", len(args), cmd.UseLine()))
		},
	}
	fs := snapshotFlags(cmd, &opts.sourceOptions)
	fs.Var(stringValue(&opts.prefix, "prefix", "what keys begin with, such as /registry/secrets/"), "prefix", "compare only keys that begin with this")
	boolFlag(fs, &opts.all, "all", "list events and leases too")
	addOutputFlag(fs, &opts.output)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := opts.resolve(fs, p.environ); err != nil {
			return err
		}
		opts.old = args[0]
		if len(args) > 1 {
			opts.new = args[1]
		}
		return runSnapshotDiff(cmd.Context(), opts, p)
	}
	return cmd
}

// comparedState is one side of a comparison.
type comparedState struct {
	*store.View
	name string
	time time.Time
}

func (s comparedState) text() string {
	text := fmt.Sprintf("%s, revision %d", s.name, s.Revision())
	if !s.time.IsZero() {
		text += ", of " + s.time.Format("2006-01-02 15:04:05 MST")
	}
	return text
}

// openState opens a snapshot, or the data directory for "".
func (o *diffOptions) openState(ctx context.Context, from zfs.Snapshots, snaps []zfs.Snapshot, arg string) (s comparedState, closing func() error, err error) {
	if arg == "" {
		dir, err := presentDir(from)
		if err != nil {
			return s, nil, err
		}
		v, err := store.OpenView(ctx, dir)
		if errors.Is(err, store.ErrInUse) {
			h, _ := vfs.HolderOf(dir)
			err = fmt.Errorf("compare with the present state: the data directory %s is in use: %s", dir, h.NextStep("make a snapshot (tarn snapshot create) and give its name"))
		}
		if err != nil {
			return s, nil, err
		}
		return comparedState{View: v, name: "the data directory"}, v.Close, nil
	}
	snap, err := findSnapshot(from, snaps, arg)
	if err != nil {
		return s, nil, err
	}
	dir, cleanup, err := from.Open(ctx, snap.Name)
	if errors.Is(err, zfs.ErrDamaged) {
		err = withExit(exitRestoreSnapshot, err)
	}
	if err != nil {
		return s, nil, withSnapshotExit(err)
	}
	v, err := openSnapshotView(ctx, dir)
	if err != nil {
		return s, nil, errors.Join(fmt.Errorf("read the snapshot %s: %w", snap.Name, err), cleanup())
	}
	return comparedState{v, snap.Name, snap.Created}, func() error { return errors.Join(v.Close(), cleanup()) }, nil
}

func runSnapshotDiff(ctx context.Context, opts diffOptions, p process) (err error) {
	from, snaps, err := opts.listedSnapshots(ctx)
	if err != nil {
		return err
	}
	var states [2]comparedState
	for i, arg := range []string{opts.old, opts.new} {
		var closing func() error
		if states[i], closing, err = opts.openState(ctx, from, snaps, arg); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closing()) }()
	}
	var show diffPrinter = &diffText{out: p.stdout, all: opts.all || opts.prefix != ""}
	if opts.output == outputJSON {
		show = &diffJSON{json.NewEncoder(p.stdout)}
	}
	if err := show.begin(states[0], states[1]); err != nil {
		return err
	}
	d := differ{old: states[0], new: states[1], show: show.change}
	if err := d.run(ctx, []byte(opts.prefix)); err != nil {
		return err
	}
	return show.end()
}

// change is one key that differs; the JSON names are stable.
type change struct {
	Change string `json:"change"` // added, removed, changed, recreated
	Key    string `json:"key"`
	Bytes  []byte `json:"keyBase64,omitempty"` // of a key that JSON can not hold
	kubeKey
	Old *side `json:"old,omitempty"`
	New *side `json:"new,omitempty"`
}

// side is what a key was or is.
type side struct {
	Version        int64 `json:"version"`
	CreateRevision int64 `json:"createRevision"`
	ModRevision    int64 `json:"modRevision"`
	Bytes          int   `json:"bytes"` // of the record
}

func sideOf(it store.Item) *side {
	return &side{Version: it.Version, CreateRevision: it.Create, ModRevision: it.Rev.Main, Bytes: it.Size}
}

// differ walks two states in the order of their keys.
type differ struct {
	old, new comparedState
	show     func(change) error
}

func (d *differ) run(ctx context.Context, prefix []byte) error {
	wanted := store.KeyRange{Key: prefix, End: prefixEnd(prefix)}
	if len(prefix) == 0 {
		wanted = store.KeyRange{Key: []byte{0}, End: []byte{0}}
	}
	var next [2]func() (store.Item, bool)
	for i, s := range []comparedState{d.old, d.new} {
		items, err := s.Items(wanted, 0)
		if err != nil {
			return err
		}
		var stop func()
		next[i], stop = iter.Pull(items)
		defer stop()
	}
	a, inOld := next[0]()
	b, inNew := next[1]()
	for inOld || inNew {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch {
		case !inNew || inOld && a.Key < b.Key:
			err = d.show(change{Change: "removed", Key: a.Key, Bytes: keyBytes(a.Key), kubeKey: parseKubeKey(a.Key), Old: sideOf(a)})
			a, inOld = next[0]()
		case !inOld || b.Key < a.Key:
			err = d.show(change{Change: "added", Key: b.Key, Bytes: keyBytes(b.Key), kubeKey: parseKubeKey(b.Key), New: sideOf(b)})
			b, inNew = next[1]()
		default:
			err = d.compare(a, b)
			a, inOld = next[0]()
			b, inNew = next[1]()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compare compares two records of one key. In one store a revision is given once; what two stores have
// under it says nothing.
func (d *differ) compare(a, b store.Item) error {
	if d.old.ID() == d.new.ID() && d.old.ID() != "" {
		if a.Rev == b.Rev {
			return nil
		}
	} else {
		before, err := d.old.Value(a)
		if err != nil {
			return err
		}
		after, err := d.new.Value(b)
		if err != nil || bytes.Equal(before, after) {
			return err
		}
	}
	c := change{Change: "changed", Key: a.Key, Bytes: keyBytes(a.Key), kubeKey: parseKubeKey(a.Key), Old: sideOf(a), New: sideOf(b)}
	if a.Create != b.Create {
		c.Change = "recreated"
	}
	return d.show(c)
}
