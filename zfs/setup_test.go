package zfs

import (
	"slices"
	"strings"
	"testing"
)

// freshState is that of a good pool with no dataset yet.
func freshState() SetupState {
	return SetupState{PoolHealth: "ONLINE", Parent: "tank"}
}

// doneState is what a finished setup leaves.
func doneState(s Setup) SetupState {
	state := freshState()
	state.Exists, state.Mounted = true, true
	state.Properties = map[string]Property{
		"type": {"filesystem", "-"}, "mountpoint": {s.Mountpoint, "local"}, PropSetup: {"1.0", "local"},
	}
	for _, set := range Tuned {
		state.Properties[set.Name] = Property{set.Value, "local"}
	}
	state.Properties["recordsize"] = Property{"16384", "local"}
	state.Rights = BackupRights
	return state
}

func testSetup() Setup {
	return Setup{Dataset: "tank/tarn", Mountpoint: "/var/lib/tarn", BackupUser: "backup", Version: "1.0"}
}

func allCommands(p SetupPlan) (lines []string) {
	if p.Create != nil {
		lines = append(lines, CommandLine(p.Create))
	}
	for _, c := range slices.Concat(p.Change, p.Rights) {
		lines = append(lines, CommandLine(c))
	}
	if p.Mark != nil {
		lines = append(lines, CommandLine(p.Mark))
	}
	return lines
}

func plan(t *testing.T, s Setup, state SetupState) SetupPlan {
	t.Helper()
	p, err := s.Plan(state)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSetupPlanCreates(t *testing.T) {
	s := testSetup()
	s.RefQuota, s.Reservation = 8<<30, 1500<<20
	p := plan(t, s, freshState())
	create := CommandLine(p.Create)
	for _, want := range []string{"-o mountpoint=/var/lib/tarn ", "-o refquota=8G ", "-o reservation=1500M ", "-o recordsize=16K ",
		"-o sync=standard ", "-o com.sun:auto-snapshot=false ", " tank/tarn"} {
		if !strings.Contains(create, want) {
			t.Errorf("%q is not in %s", want, create)
		}
	}
	rights := []string{
		"zfs allow -l -u backup bookmark,destroy,hold,release,snapshot,userprop tank/tarn",
		"zfs allow -d -u backup destroy,mount,send,userprop tank/tarn",
		"zfs set tarn-kv:setup=1.0 tank/tarn",
	}
	if got := allCommands(p)[1:]; !slices.Equal(got, rights) {
		t.Errorf("then: %q", got)
	}
	s.BackupUser = ""
	if p := plan(t, s, freshState()); len(p.Rights) > 0 {
		t.Errorf("rights for nobody: %q", p.Rights)
	}
}

func TestSetupPlanSecondTime(t *testing.T) {
	s := testSetup()
	if p := plan(t, s, doneState(s)); len(allCommands(p)) > 0 || len(p.Differs) > 0 {
		t.Errorf("a second run would do %q and tell of %v", allCommands(p), p.Differs)
	}
	state := doneState(s)
	state.Mounted = false
	if got := allCommands(plan(t, s, state)); !slices.Equal(got, []string{"zfs mount tank/tarn"}) {
		t.Errorf("not mounted: %q", got)
	}
	// ZFS 2.3 shows on for sa.
	state = doneState(s)
	state.Properties["xattr"] = Property{"on", "local"}
	if p := plan(t, s, state); len(p.Differs) > 0 {
		t.Errorf("xattr: %v", p.Differs)
	}
}

func TestSetupPlanInterrupted(t *testing.T) {
	s := testSetup()
	state := doneState(s)
	delete(state.Properties, PropSetup)
	state.Rights = Rights{Local: BackupRights.Local}
	want := []string{"zfs allow -d -u backup destroy,mount,send,userprop tank/tarn", "zfs set tarn-kv:setup=1.0 tank/tarn"}
	if got := allCommands(plan(t, s, state)); !slices.Equal(got, want) {
		t.Errorf("after an interrupted run: %q", got)
	}
	// A value that happens to be right now, from the parent or by default, is set all the same.
	state.Properties["sync"] = Property{"standard", "default"}
	state.Properties["atime"] = Property{"off", "inherited"}
	if got := allCommands(plan(t, s, state))[0]; got != "zfs set sync=standard atime=off tank/tarn" {
		t.Errorf("values that are not the dataset's own: %q", got)
	}
}

func TestSetupPlanChanged(t *testing.T) {
	s := testSetup()
	state := doneState(s)
	state.Properties["recordsize"] = Property{"131072", "local"}
	state.Properties["com.sun:auto-snapshot"] = Property{}
	state.Rights = Rights{
		Local: append([]string{"rollback"}, BackupRights.Local...),
		Below: BackupRights.Below[1:],
	}
	p := plan(t, s, state)
	if got := allCommands(p); len(got) > 0 {
		t.Errorf("what a person has changed is changed back: %q", got)
	}
	var told []string
	for _, d := range p.Differs {
		told = append(told, d.String())
	}
	want := []string{
		"recordsize is 128K, not 16K",
		"com.sun:auto-snapshot is not set, not false",
		"what backup may do with the dataset is rollback,bookmark,destroy,hold,release,snapshot,userprop, not bookmark,destroy,hold,release,snapshot,userprop",
		"what backup may do with its snapshots is mount,send,userprop, not destroy,mount,send,userprop",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told: %q", told)
	}
	s.Reset = true
	want = []string{
		"zfs set recordsize=16K com.sun:auto-snapshot=false tank/tarn",
		"zfs unallow -l -u backup rollback tank/tarn",
		"zfs allow -d -u backup destroy tank/tarn",
	}
	if p = plan(t, s, state); !slices.Equal(allCommands(p), want) || len(p.Differs) > 0 {
		t.Errorf("reset: %q, %v", allCommands(p), p.Differs)
	}
	// What is asked for is no drift.
	s.Reset, s.RefQuota = false, 1<<30
	if got := allCommands(plan(t, s, state)); !slices.Equal(got, []string{"zfs set refquota=1G tank/tarn"}) {
		t.Errorf("with a new refquota: %q", got)
	}
}

func TestSetupRefuses(t *testing.T) {
	s := testSetup()
	for name, c := range map[string]struct {
		change func(*SetupState)
		want   string
	}{
		"suspended":       {func(x *SetupState) { x.PoolHealth = "SUSPENDED" }, "zpool clear tank"},
		"read-only":       {func(x *SetupState) { x.PoolReadOnly = true }, "read-only"},
		"faulted":         {func(x *SetupState) { x.PoolHealth = "FAULTED" }, "zpool status tank"},
		"volume":          {func(x *SetupState) { x.Properties["type"] = Property{"volume", "-"} }, "is a volume"},
		"no key":          {func(x *SetupState) { x.Properties["keystatus"] = Property{"unavailable", "-"} }, "zfs load-key tank/tarn"},
		"parent's key":    {func(x *SetupState) { x.Exists, x.ParentKey = false, "unavailable" }, "zfs load-key tank,"},
		"others below it": {func(x *SetupState) { x.Below = []string{"tank/tarn/home"} }, "tank/tarn/home"},
		"not to be seen":  {func(x *SetupState) { x.Mounted = false; delete(x.Properties, PropSetup) }, "zfs mount tank/tarn"},
	} {
		state := doneState(s)
		c.change(&state)
		if _, err := s.Plan(state); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseRights(t *testing.T) {
	const printed = `---- Permissions on tank/tarn ----------------------------------------
Permission sets:
	@all destroy,rename
Local permissions:
	user backup hold,snapshot
	user backup2 rollback
	group backup clone
Descendent permissions:
	user backup send
Local+Descendent permissions:
	user backup destroy
	everyone mount
---- Permissions on tank ---------------------------------------------
Local+Descendent permissions:
	user backup rollback`
	var lines [][]string
	for line := range strings.SplitSeq(printed, "\n") {
		lines = append(lines, strings.Split(line, "\t"))
	}
	got := parseRights(lines, "tank/tarn", "backup")
	if !slices.Equal(got.Local, []string{"destroy", "hold", "snapshot"}) || !slices.Equal(got.Below, []string{"destroy", "send"}) {
		t.Errorf("%+v", got)
	}
}

func TestSizesAndCommandLines(t *testing.T) {
	for n, want := range map[int64]string{1: "1", 1023: "1023", 1024: "1K", 1536: "1536", 3 << 20: "3M", 8 << 30: "8G", 5 << 50: "5P"} {
		got := formatSize(n)
		if back, ok := parseSize(got); got != want || !ok || back != n {
			t.Errorf("%d: %q, and back %d", n, got, back)
		}
	}
	for _, s := range []string{"", "lz4", "K", "off"} {
		if n, ok := parseSize(s); ok {
			t.Errorf("%q is the size %d", s, n)
		}
	}
	if got := CommandLine([]string{"zfs", "set", "a:b=it's so", "tank/my data", ""}); got != `zfs set 'a:b=it'\''s so' 'tank/my data' ''` {
		t.Error(got)
	}
}
