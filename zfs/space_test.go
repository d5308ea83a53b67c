package zfs

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/zfs/fakezfs"
)

func TestNewSpace(t *testing.T) {
	row := func(text string) []string { return strings.Split(text, "|") }
	s, err := newSpace(row("tank/k8s|100|900|40|41|42|43|1000|2000|5|6|/var/lib/k8s|yes|on|false"))
	want := Space{"tank/k8s", 100, 900, 40, 41, 42, 43, 1000, 2000, 5, 6, "/var/lib/k8s", "yes", "on", "false"}
	if err != nil || s != want {
		t.Errorf("%+v, %v", s, err)
	}
	s, err = newSpace(row("tank|100|900|40|41|42|43|0|none|-|0|none|no|off|-"))
	if err != nil || s.Quota != 0 || s.RefQuota != 0 || s.Reservation != 0 || s.AutoSnapshot != "" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, text := range []string{"tank|1", "tank|1.5G|900|40|41|42|43|0|0|0|0|none|no|off|-", "tank|-1|900|40|41|42|43|0|0|0|0|none|no|off|-"} {
		if s, err := newSpace(row(text)); err == nil {
			t.Errorf("%q: %+v", text, s)
		}
	}
}

func TestReadSpace(t *testing.T) {
	w := fakezfs.New(t)
	name, point := w.Dataset("k8s")
	w.Snapshot(name + "@daily")
	w.Dataset("k8s/below")
	w.Snapshot("tank/k8s/below@daily")
	testSpace(t, name, point)
	if _, err := ReadSpace(t.Context(), "-r"); err == nil || w.Ran("zfs list -Hp -t filesystem -o "+spaceColumns+" -r") {
		t.Error("an option passes as a name")
	}
}

// testSpace looks at tank/k8s or the like, which has a snapshot and a dataset with a
// snapshot below it, and is mounted at point.
func testSpace(t *testing.T, name, point string) {
	pool := PoolOf(name)
	spaces, err := ReadSpace(t.Context(), name, pool, name)
	if err != nil || len(spaces) != 3 || spaces[0].Name != name || spaces[1].Name != pool || spaces[2] != spaces[0] {
		t.Fatalf("%+v, %v", spaces, err)
	}
	if s := spaces[0]; s.Mountpoint != point || s.Mounted != "yes" || s.Available == 0 {
		t.Errorf("%+v", s)
	}
	if _, err := ReadSpace(t.Context(), name, pool+"/none"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	all, err := ReadAllSpace(t.Context())
	if err != nil || !slices.ContainsFunc(all, func(s Space) bool { return s.Name == name+"/below" }) {
		t.Errorf("%+v, %v", all, err)
	}
	own, err := SnapshotNames(t.Context(), name, false)
	if err != nil || !slices.Equal(own, []string{name + "@daily"}) {
		t.Errorf("%q, %v", own, err)
	}
	both, err := SnapshotNames(t.Context(), name, true)
	if err != nil || len(both) != 2 {
		t.Errorf("%q, %v", both, err)
	}
	if health, err := PoolHealth(t.Context(), pool); err != nil || health != "ONLINE" {
		t.Errorf("%q, %v", health, err)
	}
}
