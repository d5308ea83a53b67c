package zfs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxNth is how many snapshots can have one second and revision.
const maxNth = 1000

// nameAndProperties checks the options and returns what they make of a snapshot.
func (o CreateOptions) nameAndProperties() (Name, map[string]string, error) {
	if o.Revision < 0 {
		return Name{}, nil, fmt.Errorf("create a snapshot: the revision %d is below 0", o.Revision)
	}
	if err := ValidLabel(o.Label); err != nil {
		return Name{}, nil, fmt.Errorf("create a snapshot: the label %q: %w", o.Label, err)
	}
	if o.Hold != "" {
		if err := ValidTag(o.Hold); err != nil {
			return Name{}, nil, fmt.Errorf("create a snapshot: %w", err)
		}
	}
	props := map[string]string{PropRevision: strconv.FormatInt(o.Revision, 10)}
	for name, value := range map[string]string{PropStoreID: o.StoreID, PropVersion: o.Version, PropLabel: o.Label} {
		if value != "" {
			props[name] = value
		}
	}
	return Name{Time: o.Time, Revision: o.Revision, Nth: 1}, props, nil
}

// Create makes a snapshot. The properties are part of the same atomic step, so
// no crash leaves a snapshot of ours that is not known as ours.
func (d *Dataset) Create(ctx context.Context, opts CreateOptions) (Snapshot, error) {
	name, props, err := opts.nameAndProperties()
	if err != nil {
		return Snapshot{}, err
	}
	args := []string{"zfs", "snapshot"}
	for _, p := range []string{PropRevision, PropStoreID, PropVersion, PropLabel} {
		if v, ok := props[p]; ok {
			args = append(args, "-o", p+"="+v)
		}
	}
	for ; ; name.Nth++ {
		_, err := output(ctx, append(args, d.name+"@"+name.String())...)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrExists) || name.Nth >= maxNth {
			return Snapshot{}, err
		}
	}
	if opts.Hold != "" {
		if err := d.Hold(ctx, name.String(), opts.Hold); err != nil {
			return Snapshot{}, fmt.Errorf("the snapshot %s@%s is made, but not held: %w", d.name, name, err)
		}
	}
	return d.get(ctx, name.String())
}

// Hold keeps a snapshot from being destroyed.
func (d *Dataset) Hold(ctx context.Context, name, tag string) error {
	if err := ValidTag(tag); err != nil {
		return err
	}
	if _, err := d.get(ctx, name); err != nil {
		return err
	}
	_, err := output(ctx, "zfs", "hold", tag, d.name+"@"+name)
	if errors.Is(err, ErrExists) {
		return nil
	}
	return err
}

// Release takes a hold away.
func (d *Dataset) Release(ctx context.Context, name, tag string) error {
	if err := ValidTag(tag); err != nil {
		return err
	}
	if _, err := d.get(ctx, name); err != nil {
		return err
	}
	_, err := output(ctx, "zfs", "release", tag, d.name+"@"+name)
	var said *CommandError
	if errors.As(err, &said) && strings.Contains(said.Stderr, "no such tag") {
		return nil
	}
	return err
}

// Destroy destroys one snapshot, and nothing that depends on it.
func (d *Dataset) Destroy(ctx context.Context, name string) error {
	s, err := d.get(ctx, name)
	if err != nil {
		return err
	}
	full := d.name + "@" + name
	if err := s.KeptByUse(d.name); err != nil {
		return err
	}
	// No -r, -R, -f or -d: whatever uses it by now keeps it.
	_, err = output(ctx, "zfs", "destroy", full)
	return err
}

// KeptByUse tells why a snapshot of source can not be destroyed now: ErrBusy when
// it is held, ErrHasClones when it has clones, nil if nothing is known to keep it.
func (s *Snapshot) KeptByUse(source string) error {
	switch {
	case len(s.Holds) > 0:
		return fmt.Errorf("destroy the snapshot %s of %s: %w: held with %s; tarn snapshot release takes a hold away",
			s.Name, source, ErrBusy, strings.Join(s.Holds, ", "))
	case len(s.Clones) > 0:
		return fmt.Errorf("destroy the snapshot %s of %s: %w: %s; destroy those first, or zfs promote them",
			s.Name, source, ErrHasClones, strings.Join(s.Clones, ", "))
	}
	return nil
}

// SetProperty sets one of the properties of a snapshot.
func (d *Dataset) SetProperty(ctx context.Context, name, property, value string) error {
	if _, err := d.get(ctx, name); err != nil {
		return err
	}
	_, err := output(ctx, "zfs", "set", property+"="+value, d.name+"@"+name)
	return err
}
