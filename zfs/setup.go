package zfs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PropSetup is on a dataset that was set up to the end: the version of tarn that did
// it. What differs there later was changed by a person, and is shown instead of set.
const PropSetup = "tarn-kv:setup"

// Setup is how the dataset of a store should be.
type Setup struct {
	Dataset    string // POOL/NAME
	Mountpoint string // absolute
	// RefQuota and Reservation are in bytes. 0 leaves the property as it is.
	RefQuota, Reservation int64
	BackupUser            string // gets the rights of BackupRights; "" for nobody
	Version               string // of tarn
	// Reset sets back what a person has changed, and takes further rights from the backup user.
	Reset bool
}

// Setting is a property and its value as zfs set takes them.
type Setting struct{ Name, Value string }

func (s Setting) String() string { return s.Name + "=" + s.Value }

// Tuned are the properties that suit a store, whatever the parent has. docs/zfs.md has the
// figures and reasons.
var Tuned = []Setting{
	{"recordsize", "16K"},
	{"compression", "lz4"},
	{"primarycache", "all"},
	{"logbias", "latency"},
	{"sync", "standard"}, // a parent with sync=disabled would lose acknowledged writes
	{"checksum", "on"},
	{"dedup", "off"},
	{"copies", "1"},
	{"atime", "off"},
	{"xattr", "sa"},
	{"exec", "off"},
	{"setuid", "off"},
	{"devices", "off"},
	{"readonly", "off"}, // a parent that backups are received into has it on
	{"canmount", "on"},
	{"com.sun:auto-snapshot", "false"}, // ours are the snapshots
}

// Difference is something that is not as a setup makes it, and is left alone.
type Difference struct {
	What      string // property, or rights
	Has, Want string
}

func (d Difference) String() string { return fmt.Sprintf("%s is %s, not %s", d.What, d.Has, d.Want) }

// SetupPlan is what is left to do for a Setup. Files are not its matter.
type SetupPlan struct {
	Create  []string   // makes and mounts the dataset; nil if it is there
	Change  [][]string // commands that set and mount
	Rights  [][]string // commands that give and take rights
	Mark    []string   // comes last of all, nil if it was done before
	Differs []Difference
}

// Plan compares what should be with what is. Its errors say what forbids to go on.
func (s Setup) Plan(state SetupState) (SetupPlan, error) {
	if err := s.refuse(state); err != nil {
		return SetupPlan{}, err
	}
	var p SetupPlan
	wanted := append([]Setting{{"mountpoint", s.Mountpoint}}, s.sizes()...)
	if !state.Exists {
		p.Create = []string{"zfs", "create"}
		for _, set := range append(wanted, Tuned...) {
			p.Create = append(p.Create, "-o", set.String())
		}
		p.Create = append(p.Create, s.Dataset)
	} else {
		s.planChanges(&p, state, wanted)
	}
	s.planRights(&p, state)
	if !state.Done() {
		p.Mark = []string{"zfs", "set", PropSetup + "=" + s.Version, s.Dataset}
	}
	return p, nil
}

// sizes are the properties that the person has asked for.
func (s Setup) sizes() (sizes []Setting) {
	if s.RefQuota > 0 {
		sizes = append(sizes, Setting{"refquota", formatSize(s.RefQuota)})
	}
	if s.Reservation > 0 {
		sizes = append(sizes, Setting{"reservation", formatSize(s.Reservation)})
	}
	return sizes
}

// planChanges is for a dataset that is there: what was asked for is set, the rest only by the first
// setup or a reset.
func (s Setup) planChanges(p *SetupPlan, state SetupState, wanted []Setting) {
	var change []string
	for _, set := range wanted {
		if !sameValue(state.Properties[set.Name].Value, set.Value) {
			change = append(change, set.String())
		}
	}
	for _, set := range Tuned {
		has := state.Properties[set.Name]
		// One that is inherited could change with the parent.
		same := sameValue(has.Value, set.Value) && (has.Own() || state.Done())
		// Since ZFS 2.3 on means sa, and is what is shown for both.
		same = same || set.Name == "xattr" && has.Value == "on" && has.Own()
		switch {
		case same:
		case !state.Done() || s.Reset:
			change = append(change, set.String())
		default:
			p.Differs = append(p.Differs, Difference{set.Name, orNothing(readableValue(has.Value, set.Value)), set.Value})
		}
	}
	if len(change) > 0 {
		p.Change = append(p.Change, append(append([]string{"zfs", "set"}, change...), s.Dataset))
	}
	if !state.Mounted {
		p.Change = append(p.Change, []string{"zfs", "mount", s.Dataset})
	}
}

func orNothing(value string) string {
	if value == "" {
		return "not set"
	}
	return value
}

// sameValue compares a value that zfs get -p printed with one for zfs set.
func sameValue(has, want string) bool {
	if has == want {
		return true
	}
	n, ok := parseSize(want)
	return ok && has == strconv.FormatInt(n, 10)
}

// readableValue puts a size that zfs get -p printed into the form of want.
func readableValue(has, want string) string {
	n, err := strconv.ParseInt(has, 10, 64)
	if _, size := parseSize(want); err != nil || !size {
		return has
	}
	return formatSize(n)
}

const sizeUnits = "KMGTP"

// formatSize writes bytes as zfs takes them, exactly.
func formatSize(n int64) string {
	unit := 0
	for n >= 1024 && n%1024 == 0 && unit < len(sizeUnits) {
		n, unit = n/1024, unit+1
	}
	if unit == 0 {
		return strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(n, 10) + sizeUnits[unit-1:unit]
}

// parseSize reads what formatSize has written.
func parseSize(s string) (n int64, ok bool) {
	if s == "" {
		return 0, false
	}
	shift := 10 * (1 + strings.IndexByte(sizeUnits, s[len(s)-1]))
	if shift > 0 {
		s = s[:len(s)-1]
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n << shift, err == nil
}

// CommandLine writes a command as a shell takes it.
func CommandLine(command []string) string {
	words := slices.Clone(command)
	for i, w := range words {
		if w == "" || strings.IndexFunc(w, needsQuotes) >= 0 {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

func needsQuotes(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.,:/=@%+", r))
}
