package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tarn-kv/tarn/zfs"
)

// What an installed Tarn uses.
const (
	installedDataDir    = "/var/lib/tarn"
	installedConfigFile = "/etc/tarn/tarn.yaml"
	installedUser       = "tarn"
	installedBackupUser = "tarn-backup"
	noUser              = "none"
)

// initOptions are the settings of tarn init.
type initOptions struct {
	dataset               string
	mountpoint            string // "" for the one that the dataset has
	user, backupUser      string
	refQuota, reservation int64
	configFile            string
	reset, dryRun         bool
}

func newInitCommand(p process) *cobra.Command {
	opts := initOptions{user: installedUser, backupUser: installedBackupUser, configFile: installedConfigFile}
	cmd := &cobra.Command{
		Use:   "init POOL/NAME",
		Short: "Set up a ZFS dataset for the server's data",
		Long: `Make a ZFS dataset for the data of tarn serve, or set up one that is there and
empty: its properties, who owns it, what the user of the backups may do with it,
and the lines data-dir and dataset of the server's configuration file. With them
the server refuses to start while the dataset is not mounted. For a directory other
than /var/lib/tarn the installed tarn.service gets a drop-in, so that it may write there.

It can be run again at any time: what is done is left alone, and an interrupted
run is completed. What somebody has changed since is shown, and set back only
with --reset. Data are never touched: a directory or dataset with other files in
it is refused.

The backup user may take, hold, release, send and destroy snapshots of this
dataset and set their user properties. It may not roll back, mount, rename or
destroy the dataset, nor read the files. The server's user gets no rights at all.

It must be run by root. Without root, and with --dry-run, it prints the commands.
No environment variables are read.

Exit codes: 0 set up, or nothing was to do, 1 failed, 2 the command line is not
valid, 4 refused: the dataset, pool, directory or configuration file is in a
state that forbids it.`,
		Args: exactArgs(1),
	}
	opts.register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		opts.dataset = args[0]
		if err := opts.validate(); err != nil {
			return withExit(exitUsage, err)
		}
		return runInit(cmd.Context(), opts, p.stdout)
	}
	return cmd
}

func (o *initOptions) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.Var(stringValue(&o.mountpoint, "dir", "the absolute path of a directory"), "mountpoint",
		"where to mount it (default "+installedDataDir+", or where a dataset that exists is mounted)")
	fs.Var(stringValue(&o.user, "user", "a user of this machine"), "user", "user of the server, who owns the files")
	fs.Var(stringValue(&o.backupUser, "user", "a user of this machine, or "+noUser), "backup-user",
		`user of the backups, who gets rights on snapshots; "none" for root alone`)
	fs.Var(byteSizeValue(&o.refQuota, 64<<20, ""), "refquota",
		"most that the data can take, without snapshots (default: no limit of its own)")
	fs.Var(byteSizeValue(&o.reservation, 1<<20, ""), "reservation",
		"space that the pool keeps for the data and its snapshots (default: none)")
	fs.Var(stringValue(&o.configFile, "file", "the path of a YAML file"), "config-file",
		"the server's configuration file; made if it is missing, and only added to")
	boolFlag(fs, &o.reset, "reset", "set back what was changed since the first run")
	boolFlag(fs, &o.dryRun, "dry-run", "print the commands and change nothing")
}

func (o *initOptions) validate() error {
	if o.mountpoint != "" && (!filepath.IsAbs(o.mountpoint) || filepath.Clean(o.mountpoint) == "/") {
		return fmt.Errorf("--mountpoint can not be %q; valid: the absolute path of a directory other than /", o.mountpoint)
	}
	if o.mountpoint != "" {
		o.mountpoint = filepath.Clean(o.mountpoint)
	}
	if o.backupUser == o.user {
		return errors.New("--backup-user is the server's user: whoever takes over the server could destroy the backups; name another user, or none")
	}
	if o.backupUser == "root" {
		return errRootBackup
	}
	return zfs.ValidDataset(o.dataset)
}

// errRootBackup is returned for a user of the backups who needs no rights.
var errRootBackup = errors.New("--backup-user can not be root, who may do anything in any case: name a user of its own, or none")

// separate makes sure that two names are not one user, and that the one of the backups is one with few rights.
func separate(owner, backup account) error {
	switch {
	case backup.uid == 0:
		return withExit(exitUsage, fmt.Errorf("%s is root by another name: %w", backup.name, errRootBackup))
	case backup.uid == owner.uid:
		return withExit(exitUsage, fmt.Errorf("--user %s and --backup-user %s are one user: whoever takes over the server could destroy the backups; name another user, or none", owner.name, backup.name))
	}
	return nil
}

// initStep is one thing that is to be done: text is it as a command.
type initStep struct {
	text string
	run  func(context.Context) error
}

func zfsSteps(commands ...[]string) (steps []initStep) {
	for _, c := range commands {
		steps = append(steps, initStep{zfs.CommandLine(c), func(ctx context.Context) error { return zfs.RunCommand(ctx, c) }})
	}
	return steps
}

func runInit(ctx context.Context, opts initOptions, out io.Writer) error {
	plan, err := planInit(ctx, opts)
	if err != nil {
		return err
	}
	for _, d := range plan.differs {
		fmt.Fprintf(out, "# left alone: %s (set back with --reset)\n", d)
	}
	if len(plan.steps) == 0 {
		fmt.Fprintf(out, "# nothing to do: %s is set up, mounted at %s\n", opts.dataset, plan.mountpoint)
		return nil
	}
	root := os.Geteuid() == 0
	if err := runSteps(ctx, plan.steps, root && !opts.dryRun, out); err != nil {
		return err
	}
	switch {
	case opts.dryRun:
		return nil
	case !root:
		return fmt.Errorf("only root can set up a dataset, and nothing was done: run tarn init as root (sudo), or the commands above")
	}
	fmt.Fprintf(out, "# %s is set up and mounted at %s; next: %s\n", opts.dataset, plan.mountpoint, systemUnit.next(opts))
	return nil
}

// runSteps prints the steps, and does them if do is set.
func runSteps(ctx context.Context, steps []initStep, do bool, out io.Writer) error {
	for i, step := range steps {
		fmt.Fprintln(out, step.text)
		if !do {
			continue
		}
		if err := step.run(ctx); err != nil {
			done := "nothing was done"
			if i > 0 {
				done = fmt.Sprintf("what comes before %q is done", step.text)
			}
			return fmt.Errorf("%w; %s: run tarn init again when the cause is gone", err, done)
		}
	}
	return nil
}

// initPlan is what is left to do.
type initPlan struct {
	mountpoint string
	steps      []initStep
	differs    []zfs.Difference
}

// planInit looks at everything and changes nothing.
func planInit(ctx context.Context, opts initOptions) (initPlan, error) {
	setup := zfs.Setup{
		Dataset: opts.dataset, RefQuota: opts.refQuota, Reservation: opts.reservation,
		Version: tarnVersion, Reset: opts.reset,
	}
	owner, missing := lookupAccount("user", opts.user)
	if opts.backupUser != noUser {
		backup, err := lookupAccount("backup-user", opts.backupUser)
		setup.BackupUser = backup.name
		if err == nil && missing == nil {
			err = separate(owner, backup)
		}
		missing = errors.Join(missing, err)
	}
	// What is wrong with the name or ZFS comes before the users, who would be made for nothing.
	state, err := setup.Inspect(ctx)
	if err != nil {
		return initPlan{}, refusedIfFound(err)
	}
	if missing != nil {
		return initPlan{}, missing
	}
	has := state.Properties["mountpoint"].Value
	if setup.Mountpoint, err = opts.chooseMountpoint(state, has); err != nil {
		return initPlan{}, withExit(exitRefused, err)
	}
	todo, err := setup.Plan(state)
	if err == nil {
		err = checkInitDirs(state, has, setup.Mountpoint)
	}
	if err != nil {
		return initPlan{}, withExit(exitRefused, err)
	}
	plan := initPlan{mountpoint: setup.Mountpoint, differs: todo.Differs}
	if todo.Create != nil {
		plan.steps = zfsSteps(todo.Create)
	}
	plan.steps = append(plan.steps, zfsSteps(todo.Change...)...)
	plan.addOwner(owner, state, opts.reset)
	plan.steps = append(plan.steps, zfsSteps(todo.Rights...)...)
	lines, err := configSteps(opts.configFile, setup.Mountpoint, opts.dataset)
	if err != nil {
		return initPlan{}, err
	}
	unit, err := systemUnit.serviceSteps(opts, setup.Mountpoint)
	if err != nil {
		return initPlan{}, err
	}
	plan.steps = append(append(plan.steps, lines...), unit...)
	if todo.Mark != nil {
		plan.steps = append(plan.steps, zfsSteps(todo.Mark)...)
	}
	return plan, nil
}

// refusedIfFound gives the exit code for errors that are about what was found, and not
// about finding it.
func refusedIfFound(err error) error {
	var failed *zfs.CommandError
	if errors.As(err, &failed) && !errors.Is(err, zfs.ErrNotFound) {
		return err
	}
	return withExit(exitRefused, err)
}

// chooseMountpoint is what was asked for, else what the dataset has, else the default.
func (o *initOptions) chooseMountpoint(state zfs.SetupState, has string) (string, error) {
	switch {
	case o.mountpoint != "":
		return o.mountpoint, nil
	case !state.Exists:
		return installedDataDir, nil
	case !filepath.IsAbs(has):
		return "", fmt.Errorf("%s has the mountpoint %q, so something else than ZFS mounts it, or nothing; name a directory with --mountpoint", o.dataset, has)
	}
	return has, nil
}
