package zfs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// listed are the properties that List reads of each snapshot.
var listed = []string{"creation", "createtxg", "guid", "used", "referenced", "userrefs", "clones",
	PropRevision, PropStoreID, PropVersion, PropLabel, PropVerified}

// List returns our snapshots, the oldest first.
func (d *Dataset) List(ctx context.Context) ([]Snapshot, error) {
	// A snapshot can go between the two commands; then the list is made again.
	const tries = 5
	for try := 1; ; try++ {
		snaps, err := d.list(ctx, d.name)
		if err == nil || try == tries || !errors.Is(err, ErrNotFound) || d.exists(ctx) != nil {
			return snaps, err
		}
	}
}

func (d *Dataset) exists(ctx context.Context) error {
	_, err := getProperties(ctx, d.name, "type")
	return err
}

// get returns one snapshot. ErrNotOurs is returned when it is not ours.
func (d *Dataset) get(ctx context.Context, name string) (Snapshot, error) {
	full, err := d.full(name)
	if err != nil {
		return Snapshot{}, err
	}
	snaps, err := d.list(ctx, full)
	if err != nil {
		return Snapshot{}, err
	}
	if len(snaps) == 0 {
		return Snapshot{}, notOurs(full, "it has no number in the property "+PropRevision+" of its own")
	}
	return snaps[0], nil
}

// full is the name of one of our snapshots with the dataset.
func (d *Dataset) full(name string) (string, error) {
	if _, ok := ParseName(name); !ok {
		return "", notOurs(d.name+"@"+name, "its name is not of the form "+exampleName)
	}
	return d.name + "@" + name, nil
}

func notOurs(full, why string) error {
	return fmt.Errorf("snapshot %s: %w: %s; tarn snapshot list shows those that are", full, ErrNotOurs, why)
}

// list returns those of our snapshots that zfs finds at one dataset or snapshot.
func (d *Dataset) list(ctx context.Context, of string) ([]Snapshot, error) {
	args := []string{"zfs", "get", "-Hp", "-d", "1", "-t", "snapshot", "-o", "name,property,value,source", strings.Join(listed, ","), of}
	lines, err := output(ctx, args...)
	if err != nil {
		return nil, err
	}
	props := map[string]map[string]Property{}
	for _, f := range lines {
		// A property of somebody else's snapshot can hold anything, line breaks too.
		if len(f) != 4 {
			continue
		}
		name, ok := strings.CutPrefix(f[0], d.name+"@")
		if _, ours := ParseName(name); !ok || !ours {
			continue
		}
		if props[name] == nil {
			props[name] = map[string]Property{}
		}
		props[name][f[1]] = newProperty(f[2], f[3])
	}
	var snaps []Snapshot
	var held []string
	for name, p := range props {
		s, ok := newSnapshot(name, p)
		if !ok {
			continue
		}
		snaps = append(snaps, s)
		if n := p["userrefs"].Value; n != "" && n != "0" {
			held = append(held, d.name+"@"+name)
		}
	}
	slices.SortFunc(snaps, byOrder)
	if err := d.addHolds(ctx, snaps, held); err != nil {
		return nil, err
	}
	return snaps, nil
}

// byOrder is the order in which snapshots were made.
func byOrder(a, b Snapshot) int {
	if a.Order != b.Order {
		if a.Order < b.Order {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}

// newSnapshot is what the properties tell of a snapshot. ok is false if it is not
// ours: the revision must be its own, not one that its dataset has.
func newSnapshot(name string, p map[string]Property) (_ Snapshot, ok bool) {
	revision, err := strconv.ParseInt(p[PropRevision].own(), 10, 64)
	if err != nil {
		return Snapshot{}, false
	}
	s := Snapshot{Name: name, GUID: p["guid"].Value, Revision: revision}
	number := func(prop string) int64 {
		n, err := strconv.ParseInt(p[prop].Value, 10, 64)
		if err != nil {
			return 0 // zfs itself prints these: there is nothing to hope for
		}
		return n
	}
	s.Created = time.Unix(number("creation"), 0).UTC()
	s.Order = uint64(number("createtxg"))
	s.SizeBytes, s.UniqueBytes = number("referenced"), number("used")
	s.StoreID, s.Version, s.Label = p[PropStoreID].own(), p[PropVersion].own(), p[PropLabel].own()
	if v, ok := ParseVerification(p[PropVerified].own()); ok {
		s.Verified = &v
	}
	if c := p["clones"].Value; c != "" {
		s.Clones = strings.Split(c, ",")
	}
	return s, true
}

func (p Property) own() string {
	if p.Own() {
		return p.Value
	}
	return ""
}

// addHolds reads the tags of the held snapshots, which are full names.
func (d *Dataset) addHolds(ctx context.Context, snaps []Snapshot, held []string) error {
	for some := range slices.Chunk(held, 200) { // a command line has an end
		lines, err := output(ctx, append([]string{"zfs", "holds", "-H"}, some...)...)
		if err != nil {
			return err
		}
		for _, f := range lines {
			if len(f) < 2 {
				continue
			}
			name := strings.TrimPrefix(f[0], d.name+"@")
			if i := slices.IndexFunc(snaps, func(s Snapshot) bool { return s.Name == name }); i >= 0 {
				snaps[i].Holds = append(snaps[i].Holds, f[1])
			}
		}
	}
	for i := range snaps {
		slices.Sort(snaps[i].Holds)
	}
	return nil
}
