package zfs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Space is how a dataset shares the room of its pool. Numbers are bytes; a quota or
// a reservation that is not set is 0.
type Space struct {
	Name            string `json:"name"`
	Used            uint64 `json:"used"`      // with snapshots, children and reservations
	Available       uint64 `json:"available"` // with all quotas taken into account
	Referenced      uint64 `json:"referenced"`
	UsedByDataset   uint64 `json:"usedByDataset"`
	UsedBySnapshots uint64 `json:"usedBySnapshots"`
	UsedByChildren  uint64 `json:"usedByChildren"`
	Quota           uint64 `json:"quota"`
	RefQuota        uint64 `json:"refquota"`
	Reservation     uint64 `json:"reservation"`
	RefReservation  uint64 `json:"refreservation"`
	// Mountpoint is a path, none or legacy; Mounted and CanMount are as zfs prints
	// them: yes or no, and on, off or noauto.
	Mountpoint string `json:"mountpoint"`
	Mounted    string `json:"mounted"`
	CanMount   string `json:"canmount"`
	// AutoSnapshot is com.sun:auto-snapshot, "" if it is not set.
	AutoSnapshot string `json:"autoSnapshot,omitempty"`
}

const spaceColumns = "name,used,available,referenced,usedbydataset,usedbysnapshots,usedbychildren," +
	"quota,refquota,reservation,refreservation,mountpoint,mounted,canmount,com.sun:auto-snapshot"

// ReadSpace reads the space of file systems by their names, in that order.
// ErrNotFound is returned when one of them does not exist.
func ReadSpace(ctx context.Context, names ...string) ([]Space, error) {
	for _, name := range names {
		if err := ValidDataset(name); err != nil {
			return nil, err
		}
	}
	return readSpace(ctx, names...)
}

// ReadAllSpace reads the space of all file systems that exist.
func ReadAllSpace(ctx context.Context) ([]Space, error) {
	return readSpace(ctx)
}

func readSpace(ctx context.Context, names ...string) ([]Space, error) {
	args := append([]string{"zfs", "list", "-Hp", "-t", "filesystem", "-o", spaceColumns}, names...)
	lines, err := output(ctx, args...)
	if err != nil {
		return nil, err
	}
	byName := map[string]Space{}
	var all []Space
	for _, fields := range lines {
		s, err := newSpace(fields)
		if err != nil {
			return nil, err
		}
		byName[s.Name] = s
		all = append(all, s)
	}
	if len(names) == 0 {
		return all, nil
	}
	all = nil // zfs lists in an order of its own, and each only once
	for _, name := range names {
		s, ok := byName[name]
		if !ok {
			return nil, fmt.Errorf("zfs list %s: %w", name, ErrNotFound)
		}
		all = append(all, s)
	}
	return all, nil
}

func newSpace(fields []string) (Space, error) {
	if want := strings.Count(spaceColumns, ",") + 1; len(fields) != want {
		return Space{}, fmt.Errorf("zfs list: %d columns are not the %d that were asked for: %q", len(fields), want, fields)
	}
	s := Space{Name: fields[0], Mountpoint: fields[11], Mounted: fields[12], CanMount: fields[13]}
	if fields[14] != "-" {
		s.AutoSnapshot = fields[14]
	}
	for i, to := range []*uint64{
		&s.Used, &s.Available, &s.Referenced, &s.UsedByDataset, &s.UsedBySnapshots, &s.UsedByChildren,
		&s.Quota, &s.RefQuota, &s.Reservation, &s.RefReservation,
	} {
		text := fields[i+1]
		if text == "-" || text == "none" {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return Space{}, fmt.Errorf("zfs list %s: %w", s.Name, errors.Join(errors.New("a size is not understood"), err))
		}
		*to = n
	}
	return s, nil
}

// AskAsKubelet asks a program zfs, with an absolute path and the PATH that it gets, for what the kubelet
// asks of a dataset. The error is that it fails or does not print three numbers.
func AskAsKubelet(ctx context.Context, program, searchPath, dataset string) error {
	if err := ValidDataset(dataset); err != nil {
		return err
	}
	asked := []string{program, "list", "-Hp", "-o", "used,available,usedbydataset", dataset}
	lines, err := output(ctx, append([]string{"env", "PATH=" + searchPath}, asked...)...)
	if failed := (*CommandError)(nil); errors.As(err, &failed) {
		failed.Args = asked // and not the program env
	}
	if err != nil {
		return err
	}
	if len(lines) == 1 && len(lines[0]) == 3 {
		for _, text := range lines[0] {
			_, numErr := strconv.ParseUint(text, 10, 64)
			err = errors.Join(err, numErr)
		}
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s list %s: three numbers were asked for: %q", program, dataset, lines)
}

// PoolHealth is what zpool list says of a pool: ONLINE, DEGRADED, SUSPENDED and others.
func PoolHealth(ctx context.Context, pool string) (string, error) {
	if err := ValidDataset(pool); err != nil {
		return "", err
	}
	lines, err := output(ctx, "zpool", "list", "-Hp", "-o", "health", pool)
	if err != nil {
		return "", err
	}
	if len(lines) != 1 || len(lines[0]) != 1 {
		return "", fmt.Errorf("zpool list %s: one word was asked for: %q", pool, lines)
	}
	return lines[0][0], nil
}

// SnapshotNames lists all snapshots of a dataset, anybody's, by their full names; with
// below those of the datasets below it too.
func SnapshotNames(ctx context.Context, dataset string, below bool) ([]string, error) {
	if err := ValidDataset(dataset); err != nil {
		return nil, err
	}
	args := []string{"zfs", "list", "-Hp", "-t", "snapshot", "-o", "name"}
	if below {
		args = append(args, "-r")
	}
	lines, err := output(ctx, append(args, dataset)...)
	var names []string
	for _, fields := range lines {
		names = append(names, fields[0])
	}
	return names, err
}
