package zfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLocate(t *testing.T) {
	real, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"pool/data", "bind", "plain"} {
		if err := os.MkdirAll(filepath.Join(real, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(real, "pool"), filepath.Join(real, "link")); err != nil {
		t.Fatal(err)
	}
	table := strings.ReplaceAll(`28 1 8:1 / / rw - ext4 /dev/sda1 rw
40 28 0:35 / DIR/pool rw - zfs tank/tarn rw
54 28 0:35 /data DIR/bind rw - zfs tank/tarn rw
55 28 0:36 /data DIR/plain/alone rw - zfs tank/alone rw
`, "DIR", real)
	mounts, err := parseMountinfo(strings.NewReader(table))
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]Place{
		"pool":             {"pool", "zfs", "tank/tarn", "pool", "."},
		"pool/data":        {"pool/data", "zfs", "tank/tarn", "pool", "data"},
		"link/data":        {"pool/data", "zfs", "tank/tarn", "pool", "data"},
		"link/not/yet":     {"pool/not/yet", "zfs", "tank/tarn", "pool", "not/yet"},
		"bind":             {"bind", "zfs", "tank/tarn", "pool", "data"},
		"bind/below":       {"bind/below", "zfs", "tank/tarn", "pool", "data/below"},
		"plain":            {"plain", "ext4", "", "", ""},
		"plain/alone/more": {"plain/alone/more", "zfs", "tank/alone", "", "data/more"},
	} {
		got, err := locate(mounts, filepath.Join(real, dir))
		want.Dir = filepath.Join(real, want.Dir)
		if want.Point != "" {
			want.Point = filepath.Join(real, want.Point)
		}
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", dir, got, err, want)
		}
	}
}
