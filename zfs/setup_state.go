package zfs

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// SetupState is what is there before a setup.
type SetupState struct {
	PoolHealth   string // ONLINE, DEGRADED, SUSPENDED, …
	PoolReadOnly bool

	Exists     bool
	Mounted    bool
	Properties map[string]Property
	Below      []string // datasets below it
	Rights     Rights   // of the backup user
	// Parent is the nearest dataset above, and ParentKey its keystatus: "" if it is
	// not encrypted.
	Parent, ParentKey string
}

// Done tells that a setup was finished once: the dataset is a store's.
func (s SetupState) Done() bool { return s.Exists && s.Properties[PropSetup].Own() }

// Inspect reads what a setup of dataset has to know, and changes nothing.
// ErrNotFound is returned when the pool or the parent does not exist.
func (s Setup) Inspect(ctx context.Context) (SetupState, error) {
	var state SetupState
	if err := ValidDataset(s.Dataset); err != nil {
		return state, err
	}
	if !strings.Contains(s.Dataset, "/") {
		return state, fmt.Errorf("%q is a pool; a store gets a dataset of its own: %s/tarn, for example", s.Dataset, s.Dataset)
	}
	pool := PoolOf(s.Dataset)
	lines, err := output(ctx, "zpool", "list", "-Hp", "-o", "health,readonly", pool)
	if err != nil {
		return state, err
	}
	if len(lines) == 1 && len(lines[0]) == 2 {
		state.PoolHealth, state.PoolReadOnly = lines[0][0], lines[0][1] == "on"
	}
	if state.PoolHealth == "SUSPENDED" {
		return state, nil // nothing more can be asked
	}
	state.Parent = path.Dir(s.Dataset)
	parent, err := getProperties(ctx, state.Parent, "keystatus")
	if errors.Is(err, ErrNotFound) {
		return state, fmt.Errorf("%w; make the parent first: zfs create -p -o canmount=off %s", err, state.Parent)
	} else if err != nil {
		return state, err
	}
	state.ParentKey = parent["keystatus"].Value
	return state, s.inspectDataset(ctx, &state)
}

func (s Setup) inspectDataset(ctx context.Context, state *SetupState) error {
	names := []string{"type", "mounted", "mountpoint", "keystatus", "refquota", "reservation", PropSetup}
	for _, set := range Tuned {
		names = append(names, set.Name)
	}
	var err error
	state.Properties, err = getProperties(ctx, s.Dataset, names...)
	if errors.Is(err, ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	state.Exists = true
	state.Mounted = state.Properties["mounted"].Value == "yes"
	lines, err := output(ctx, "zfs", "list", "-Hr", "-t", "filesystem,volume", "-o", "name", s.Dataset)
	if err != nil {
		return err
	}
	for _, f := range lines {
		if f[0] != s.Dataset {
			state.Below = append(state.Below, f[0])
		}
	}
	if s.BackupUser == "" {
		return nil
	}
	state.Rights, err = readRights(ctx, s.Dataset, s.BackupUser)
	return err
}

// refuse tells what forbids to set up the dataset.
func (s Setup) refuse(state SetupState) error {
	pool := PoolOf(s.Dataset)
	p := state.Properties
	switch {
	case state.PoolHealth == "SUSPENDED":
		return fmt.Errorf("set up %s: %w; bring the devices back and run zpool clear %s", s.Dataset, ErrSuspended, pool)
	case state.PoolReadOnly:
		return fmt.Errorf("set up %s: the pool is imported read-only; zpool export %s, and import it for writing", s.Dataset, pool)
	case !slices.Contains([]string{"ONLINE", "DEGRADED"}, state.PoolHealth):
		return fmt.Errorf("set up %s: the pool is %s; see zpool status %s", s.Dataset, state.PoolHealth, pool)
	case !state.Exists && state.ParentKey == "unavailable":
		return noKey(s.Dataset, state.Parent)
	case !state.Exists:
		return nil
	case p["type"].Value != "filesystem":
		return fmt.Errorf("set up %s: it is a %s and holds no files; choose another name", s.Dataset, p["type"].Value)
	case p["keystatus"].Value == "unavailable":
		return noKey(s.Dataset, s.Dataset)
	case len(state.Below) > 0:
		return fmt.Errorf("set up %s: there are datasets below it (%s), over which its backup user would get rights; choose a dataset of its own",
			s.Dataset, strings.Join(state.Below, ", "))
	case !state.Mounted && !state.Done():
		return fmt.Errorf("set up %s: it exists and is not mounted, so nobody sees what is in it; zfs mount %s, and run this again",
			s.Dataset, s.Dataset)
	}
	return nil
}

func noKey(dataset, of string) error {
	return fmt.Errorf("set up %s: the key of %s is not loaded; zfs load-key %s, and run this again", dataset, of, of)
}

// RunCommand runs one command of a plan.
func RunCommand(ctx context.Context, command []string) error {
	_, err := output(ctx, command...)
	return err
}
