package zfs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	gozfs "github.com/mistifyio/go-zfs/v3"
)

// Dataset is the dataset that holds a data directory. Its snapshots are those of
// ZFS. It is not changed after it was made.
type Dataset struct {
	name  string
	point string // where it is mounted, "" if it is not, or not as a whole
	rel   string // the data directory within it
}

// Facts are properties of a dataset that go-zfs reads.
type Facts = gozfs.Dataset

// OpenDataset is the dataset called name, with the data directory dir in it. If
// name is "" it is the dataset that dir is on; if dir is "" it is where the dataset
// is mounted. With a name, the dataset need not be mounted. ErrNotFound is returned
// when the dataset does not exist or, without a name, when dir is not on ZFS.
func OpenDataset(ctx context.Context, name, dir string) (*Dataset, error) {
	var at Place
	if dir != "" {
		var err error
		if at, err = Locate(ctx, dir); err != nil {
			return nil, err
		}
	}
	if name == "" || name == at.Dataset {
		if at.Dataset == "" {
			return nil, fmt.Errorf("find the dataset of %s: it is on %s, so %w", dir, at.FSType, ErrNotFound)
		}
		return &Dataset{name: at.Dataset, point: at.Point, rel: at.Rel}, nil
	}
	if err := ValidDataset(name); err != nil {
		return nil, err
	}
	d := &Dataset{name: name, rel: "."}
	facts, err := d.Facts(ctx)
	if err != nil {
		return nil, err
	}
	if facts.Type != gozfs.DatasetFilesystem {
		return nil, fmt.Errorf("dataset %s: it is a %s and holds no files; name a file system (zfs list -t filesystem)", name, facts.Type)
	}
	props, err := getProperties(ctx, name, "mounted")
	if err != nil {
		return nil, err
	}
	point := facts.Mountpoint
	if filepath.IsAbs(point) && props["mounted"].Value == "yes" {
		d.point = point
	}
	switch {
	case dir == "":
	case filepath.IsAbs(point) && holds(point, at.Dir):
		d.rel, err = filepath.Rel(point, at.Dir)
	default:
		err = fmt.Errorf("dataset %s does not hold the directory %s: its mountpoint is %s", name, dir, point)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Name is the name of the dataset with its pool.
func (d *Dataset) Name() string { return d.name }

// Source is Name: it makes a Dataset one of Snapshots.
func (d *Dataset) Source() string { return d.name }

// Dir is the data directory, or "" if the dataset is not mounted.
func (d *Dataset) Dir() string {
	if d.point == "" {
		return ""
	}
	return filepath.Join(d.point, d.rel)
}

// Rel is the data directory within the dataset, "." for the dataset itself.
func (d *Dataset) Rel() string { return d.rel }

// Facts reads what go-zfs knows of the dataset.
func (d *Dataset) Facts(ctx context.Context) (*Facts, error) {
	return call(ctx, []string{"zfs", "list", d.name}, func() (*Facts, error) { return gozfs.GetDataset(d.name) })
}

// Property is the value of one property.
type Property struct {
	Value string // "" if it is not set; never zfs's "-"
	// Source is local, default, received, inherited, or none ("-").
	Source string
}

// Own tells whether the value belongs to the thing itself and is not inherited.
func (p Property) Own() bool { return p.Value != "" && (p.Source == "local" || p.Source == "received") }

func getProperties(ctx context.Context, of string, names ...string) (map[string]Property, error) {
	return host{}.properties(ctx, of, names...)
}

func newProperty(value, source string) Property {
	if value == "-" && source == "-" {
		value = ""
	}
	source, _, _ = strings.Cut(source, " ") // "inherited from tank"
	return Property{Value: value, Source: source}
}

// ValidDataset tells what is wrong with the name of a dataset. zfs would take a
// leading dash for an option, and @ and % for something else than a name.
func ValidDataset(name string) error {
	reason := ""
	switch {
	case name == "" || len(name) > 255:
		reason = "it must have 1 to 255 characters"
	case strings.HasPrefix(name, "-"):
		reason = "it must not begin with -"
	case strings.IndexFunc(name, notInDatasetName) >= 0:
		reason = "letters, digits, and - _ . : / are allowed, and blanks within"
	case slices.Contains(strings.Split(name, "/"), ""):
		reason = "there is an empty part beside a /"
	}
	if reason == "" {
		return nil
	}
	return &nameError{what: "dataset", name: name, reason: reason}
}

func notInDatasetName(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("-_.:/ ", r)
}

type nameError struct{ what, name, reason string }

func (e *nameError) Error() string {
	return fmt.Sprintf("the %s %q is not a valid name: %s", e.what, e.name, e.reason)
}

// ValidTag tells what is wrong with the tag of a hold.
func ValidTag(tag string) error {
	if tag == "" || len(tag) > 100 || strings.HasPrefix(tag, "-") || strings.HasPrefix(tag, ".") ||
		strings.ContainsAny(tag, "/ ") || strings.IndexFunc(tag, notInDatasetName) >= 0 {
		return &nameError{what: "hold", name: tag, reason: "1 to 100 letters, digits, and - _ . : are allowed, the first a letter, digit, _ or :"}
	}
	return nil
}

// maxLabel is how long a label can be, in bytes.
const maxLabel = 200

// ValidLabel tells what is wrong with the label of a snapshot. "" is valid.
func ValidLabel(label string) error {
	control := strings.IndexFunc(label, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }) >= 0
	if len(label) > maxLabel || control || label == "-" {
		return errors.New("a label has at most 200 bytes, is no single -, and has no tabs, line breaks or other control characters")
	}
	_, isName := ParseName(label[strings.LastIndexByte(label, '@')+1:])
	if label == Newest || isName {
		return errors.New("a label is not what names another snapshot: " + Newest + ", or the name of one, such as " + exampleName)
	}
	return nil
}
