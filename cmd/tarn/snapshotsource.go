package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tarn-kv/tarn/zfs"
)

// sourceOptions say whose snapshots a command is about.
type sourceOptions struct {
	configFile string
	dataDir    string
	dirGiven   bool   // by somebody, and not the default
	dataset    string // "" for the one that the data directory is on
	copies     bool   // file copies, even on ZFS
	endpoint   *clientOptions
	installed  string // configuration file to use where none is named, if it is there
}

func defaultSourceOptions() sourceOptions {
	return sourceOptions{dataDir: defaultDataDir, installed: installedConfigFile}
}

func (o *sourceOptions) register(fs *pflag.FlagSet) {
	fs.Var(stringValue(&o.configFile, "file", "the path of a YAML file"), "config-file",
		"the server's configuration file: its data-dir, dataset and listen-client-urls are the defaults here (default "+installedConfigFile+
			" if it exists, no data directory or dataset is named, and there is no ./"+defaultDataDir+")")
	fs.Var(stringValue(&o.dataDir, "dir", "the path of a directory"), "data-dir", "the server's data directory")
	fs.Var(stringValue(&o.dataset, "dataset", "a ZFS dataset such as tank/tarn"), "dataset",
		"the ZFS dataset with the data directory (default: the one that is mounted there)")
	boolFlag(fs, &o.copies, "copies", "use file copies beside the data directory, even if that is on ZFS")
}

// resolve fills in, after the flags were parsed, what the environment and the
// server's configuration file say.
func (o *sourceOptions) resolve(flagSet *pflag.FlagSet, environ []string) error {
	l := newLayers(flagSet, nil, environ)
	if err := l.applyEnv(); err != nil {
		return err
	}
	o.dirGiven = l.from.of("data-dir") != fromDefault
	if o.configFile == "" && !o.dirGiven && o.dataset == "" && o.usesInstalled() {
		o.configFile = o.installed
	}
	if o.configFile == "" {
		return nil
	}
	server := defaultServeOptions()
	server.configFile = o.configFile
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	server.register(flags)
	from := newLayers(flags, server.toleratedSettings, nil)
	from.from["config-file"] = l.from.of("config-file")
	if err := from.applyFile(o.configFile); err != nil {
		return err
	}
	given := func(flag string) bool {
		return l.from.of(flag) == fromDefault && from.from.of(flag) != fromDefault
	}
	if given("data-dir") {
		o.dataDir, o.dirGiven = server.dataDir, true
	}
	if given("dataset") && !o.copies {
		o.dataset = server.dataset
	}
	if o.endpoint != nil && l.from.of("endpoint") == fromDefault && from.from.of("listen-client-urls") != fromDefault {
		o.endpoint.endpoint = server.listenClient[0]
	}
	return nil
}

// usesInstalled tells whether an installed server is meant where nobody says which.
func (o *sourceOptions) usesInstalled() bool {
	if _, err := os.Lstat(o.dataDir); !errors.Is(err, fs.ErrNotExist) {
		return false // that of a trial in the current directory
	}
	_, err := os.Stat(o.installed)
	return err == nil
}

// open finds the snapshots: those of the dataset, or file copies where there is
// no ZFS.
func (o *sourceOptions) open(ctx context.Context) (zfs.Snapshots, error) {
	if o.copies && o.dataset != "" {
		return nil, withExit(exitUsage, fmt.Errorf("--copies and --dataset %s exclude each other", o.dataset))
	}
	if err := o.canBeDir(); err != nil {
		return nil, err
	}
	if !o.copies {
		d, err := o.openDataset(ctx)
		if d != nil || err != nil {
			return d, err
		}
	}
	c, err := zfs.NewCopies(o.dataDir)
	if err != nil {
		return nil, withOwnerAdvice(err, o.dataDir) // and no pointer to nothing
	}
	return c, nil
}

// canBeDir refuses a data directory that is a file, or below one: there can be no snapshots of it.
func (o *sourceOptions) canBeDir() error {
	if o.dataset != "" && !o.dirGiven {
		return nil
	}
	if err := canBeDir(o.dataDir); err != nil {
		return withExit(exitNoSnapshot, fmt.Errorf("--data-dir can not be %q: %w; see whether it is the right one", o.dataDir, err))
	}
	return nil
}

// openDataset finds the dataset. It is nil if there is none because the data
// directory is on another file system.
func (o *sourceOptions) openDataset(ctx context.Context) (*zfs.Dataset, error) {
	dir := o.dataDir
	if o.dataset == "" {
		p, err := zfs.Locate(ctx, dir)
		if err != nil || p.Dataset == "" {
			return nil, withOwnerAdvice(err, dir)
		}
	} else if !o.dirGiven {
		dir = ""
	}
	return zfs.OpenDataset(ctx, o.dataset, dir)
}

// findSnapshot finds the snapshot that a person means: by its name, with the
// dataset or without, the newest, or by its label if only one has it. The newest
// can be one whose description is damaged: the next sound one is older than what a
// person means with it. It is never one that a restore made of the state before it:
// that is the state which a person wanted to leave.
func findSnapshot(from zfs.Snapshots, snaps []zfs.Snapshot, arg string) (zfs.Snapshot, error) {
	fail := func(format string, args ...any) (zfs.Snapshot, error) {
		return zfs.Snapshot{}, withExit(exitNoSnapshot, fmt.Errorf(format, args...))
	}
	name := arg
	if of, short, ok := strings.Cut(arg, "@"); ok && of == from.Source() {
		name = short
	}
	if arg == zfs.Newest && len(snaps) > 0 {
		for _, s := range slices.Backward(snaps) {
			if !s.IsSafety() {
				return s, nil
			}
		}
		return fail("%s has no snapshots but those that tarn restore made of the state before it, and newest means none of these; the last one is %s",
			from.Source(), snaps[len(snaps)-1].Name)
	}
	var labelled []zfs.Snapshot
	var all []string
	for _, s := range snaps {
		if s.Name == name {
			return s, nil
		}
		if s.Label == arg {
			labelled = append(labelled, s)
		}
		all = append(all, s.Name, s.Label)
	}
	switch {
	case len(labelled) == 1:
		return labelled[0], nil
	case len(labelled) > 1:
		var names []string
		for _, s := range labelled {
			names = append(names, s.Name)
		}
		return zfs.Snapshot{}, withExit(exitUsage, fmt.Errorf("NAME is not clear: %d snapshots of %s have the label %q: %s; give the name of one",
			len(labelled), from.Source(), arg, strings.Join(names, ", ")))
	case len(snaps) == 0:
		return fail("%s has no snapshots of tarn; make one with tarn snapshot create", from.Source())
	}
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	return fail("%s has no snapshot of tarn with the name or label %q%s; tarn snapshot list shows them", from.Source(), arg, didYouMean(name, all))
}

// withSnapshotExit gives an error about one snapshot its exit code.
func withSnapshotExit(err error) error {
	switch {
	case errors.Is(err, zfs.ErrBusy), errors.Is(err, zfs.ErrHasClones):
		return withExit(exitSnapshotKept, err)
	case errors.Is(err, zfs.ErrNotOurs), errors.Is(err, zfs.ErrNotFound):
		return withExit(exitNoSnapshot, err)
	}
	return err
}
