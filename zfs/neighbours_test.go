package zfs

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// neighbours are other tools that make snapshots: what their snapshots are called
// when they are set up as their manuals show, and how they find out which ones are
// theirs.
var neighbours = []struct {
	tool  string
	names []string
	takes func(name string) bool // for its own, so that it may prune it
}{
	{"sanoid", []string{
		"autosnap_2026-11-30_21:05:07_hourly", "autosnap_2026-11-30_00:00:01_daily", "autosnap_2026-11-01_00:00:02_monthly",
		"autosnap_2026-01-01_00:00:00_yearly", "autosnap_2026-11-30_21:15:00_frequently", "autosnap_2026-11-29_23:30:00_weekly",
	}, regexp.MustCompile(`^autosnap_.*_(frequently|hourly|daily|weekly|monthly|yearly)$`).MatchString},
	{"syncoid", []string{
		"syncoid_node1_2026-11-30:21:05:07-GMT00:00", "syncoid_backup_node1_2026-11-30:21:05:07-GMT01:00",
	}, regexp.MustCompile(`^syncoid_`).MatchString},
	{"zrepl", []string{
		"zrepl_20261130_210507_000", "zrepl_20261130_210507_123",
	}, prefixed("zrepl_")},
	{"zrepl bookmarks", []string{
		"zrepl_CURSOR_G_8c5f14b5a4b5c0ff_J_push_to_backup", "zrepl_STEP_G_8c5f14b5a4b5c0ff_J_push_to_backup",
	}, prefixed("zrepl_")},
	// Its default format is that of a time; each name that can be read so is its own.
	{"znapzend", []string{"2026-11-30-210507", "2026-11-30-210507Z"}, timeOf("2006-01-02-150405", "2006-01-02-150405Z")},
	{"znapzend, with a format of ours without the revision", []string{"tarn-20261130T210507Z"}, timeOf("tarn-20060102T150405Z")},
	{"zfs-auto-snapshot", []string{
		"zfs-auto-snap_hourly-2026-11-30-2117", "zfs-auto-snap_daily-2026-11-30-0625", "zfs-auto-snap_frequent-2026-11-30-2115",
		"zfs-auto-snap_weekly-2026-11-29-0647", "zfs-auto-snap_monthly-2026-11-01-0652",
	}, regexp.MustCompile(`^zfs-auto-snap_[^@]*-\d{4}-\d{2}-\d{2}-\d{4}$`).MatchString},
	{"pyznap", []string{
		"pyznap_2026-11-30_21:05:07_hourly", "pyznap_2026-11-30_21:05:07_daily",
	}, regexp.MustCompile(`^(pyznap|autosnap)_\d{4}-\d{2}-\d{2}_\d{2}:\d{2}:\d{2}_(frequent|frequently|hourly|daily|weekly|monthly|yearly)$`).MatchString},
	{"zfsnap", []string{
		"2026-11-30_21.05.07--1m", "hourly-2026-11-30_21.05.07--2w",
	}, regexp.MustCompile(`\d{4}-\d{2}-\d{2}_\d{2}\.\d{2}\.\d{2}--\d+[yMmwdhs]`).MatchString},
	{"TrueNAS", []string{
		"auto-2026-11-30_21-05", "auto-20261130.2105-2w",
	}, func(name string) bool {
		return timeOf("auto-2006-01-02_15-04")(name) || regexp.MustCompile(`^auto-\d{8}\.\d{4}-\d+[hdwmy]$`).MatchString(name)
	}},
	{"Proxmox", []string{"vzdump", "__replicate_100-0_1764536707__", "__migration__"}, regexp.MustCompile(`^(vzdump$|__replicate_|__migration__)`).MatchString},
	{"containerd, Docker and incus", []string{"snapshot", "snapshot-before", "copy-9d3f0b8e"}, regexp.MustCompile(`^(snapshot$|snapshot-|copy-)`).MatchString},
	{"apt hooks", []string{"autozsys_8q2ld0", "apt_2026-11-30-210507"}, regexp.MustCompile(`^(autozsys_|apt_)`).MatchString},
}

func prefixed(prefix string) func(string) bool {
	return func(name string) bool { return strings.HasPrefix(name, prefix) }
}

func timeOf(layouts ...string) func(string) bool {
	return func(name string) bool {
		for _, layout := range layouts {
			if _, err := time.Parse(layout, name); err == nil {
				return true
			}
		}
		return false
	}
}

func TestNeighboursLeaveUsAlone(t *testing.T) {
	ours := []string{
		Name{Time: someTime, Revision: 0}.String(), Name{Time: someTime, Revision: 17}.String(), Name{Time: someTime, Revision: 1<<63 - 1, Nth: 999}.String(),
	}
	for _, n := range neighbours {
		for _, name := range ours {
			if n.takes(name) {
				t.Errorf("%s takes %s for its own", n.tool, name)
			}
		}
	}
}

func TestWeLeaveNeighboursAlone(t *testing.T) {
	for _, n := range neighbours {
		for _, name := range n.names {
			if !n.takes(name) {
				t.Errorf("%s would not know %s: this test is wrong", n.tool, name)
			}
			if got, ok := ParseName(name); ok {
				t.Errorf("%s of %s is taken for ours: %+v", name, n.tool, got)
			}
		}
	}
}

// TestZreplKeepRule holds the rule that the manual gives to what it is for.
func TestZreplKeepRule(t *testing.T) {
	keep := regexp.MustCompile(zreplKeepRule)
	for _, name := range []string{Name{Time: someTime, Revision: 17}.String(), Name{Time: someTime, Nth: 2}.String()} {
		if !keep.MatchString(name) {
			t.Errorf("the rule does not keep %s", name)
		}
	}
	for _, n := range neighbours {
		for _, name := range n.names {
			if keep.MatchString(name) && !strings.HasPrefix(name, NamePrefix) {
				t.Errorf("the rule keeps %s of %s for ever", name, n.tool)
			}
		}
	}
}

// zreplKeepRule is in docs/backup.md.
const zreplKeepRule = "^tarn-.*"
