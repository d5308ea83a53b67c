package zfs

import (
	"os"
	"strings"
	"testing"
)

// Lines as the kernel writes them: an ordinary root, a ZFS dataset with one
// below it, a name with a blank, and a mount that a later one hides.
const mountTable = `22 28 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw
28 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
40 28 0:35 / /var/lib/tarn rw,noatime shared:20 - zfs tank/tarn rw,xattr,posixacl
41 40 0:36 / /var/lib/tarn/old rw,noatime shared:21 - zfs tank/tarn/old rw
42 28 0:37 / /srv/my\040data rw,noatime - zfs tank/my\040data rw
50 28 0:40 / /data/deep rw - zfs tank/hidden rw
51 28 0:41 / /data rw - tmpfs tmpfs rw
52 28 0:42 / /twice rw - zfs tank/below rw
53 52 0:43 / /twice rw - zfs tank/above rw
54 28 0:35 /sub /bind rw - zfs tank/tarn rw
`

func TestMountOf(t *testing.T) {
	mounts, err := parseMountinfo(strings.NewReader(mountTable))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/":                        "/dev/sda1",
		"/var/lib/tarnish":         "/dev/sda1",
		"/var/lib/tarn":            "tank/tarn",
		"/var/lib/tarn/store":      "tank/tarn",
		"/var/lib/tarn/old/x":      "tank/tarn/old",
		"/srv/my data/x":           "tank/my data",
		"/data/deep/x":             "tmpfs",
		"/twice/x":                 "tank/above",
		"/bind/x":                  "tank/tarn",
		"/sys/kernel":              "sysfs",
		"/var/lib/..hidden/..tarn": "/dev/sda1",
	} {
		if m, ok := MountOf(mounts, path); !ok || m.Source != want {
			t.Errorf("%s is on %q, want %q", path, m.Source, want)
		}
	}
	if _, ok := MountOf(nil, "/x"); ok {
		t.Error("found a mount in an empty table")
	}
}

func TestMountinfoNotUnderstood(t *testing.T) {
	for _, text := range []string{"28 1 8:1 / / rw ext4 /dev/sda1 rw\n", "28 1 - ext4 x rw\n", "\n"} {
		if _, err := parseMountinfo(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestMountinfoOfThisProcess(t *testing.T) {
	if _, err := os.Stat(MountTable); err != nil {
		t.Skip(err)
	}
	mounts, err := ReadMounts(MountTable)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := MountOf(mounts, t.TempDir()); !ok {
		t.Error("no mount holds a directory that exists")
	}
}
