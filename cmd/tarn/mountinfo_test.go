package main

import (
	"os"
	"path/filepath"
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
		if m, ok := mountOf(mounts, path); !ok || m.source != want {
			t.Errorf("%s is on %q, want %q", path, m.source, want)
		}
	}
	if _, ok := mountOf(nil, "/x"); ok {
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
	f, err := os.Open(mountinfoPath)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	mounts, err := parseMountinfo(f)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := mountOf(mounts, t.TempDir()); !ok {
		t.Error("no mount holds a directory that exists")
	}
}

func TestCheckDataset(t *testing.T) {
	root := t.TempDir()
	mounted, plain := filepath.Join(root, "mounted"), filepath.Join(root, "plain")
	for _, d := range []string{mounted, plain} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(mounted, link); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(root, "dangling")
	if err := os.Symlink(filepath.Join(root, "nowhere"), dangling); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(mounted)
	if err != nil {
		t.Fatal(err)
	}
	table := writeFile(t, "mountinfo", "28 1 8:1 / / rw - ext4 /dev/sda1 rw\n"+
		"40 28 0:35 / "+strings.ReplaceAll(real, " ", `\040`)+" rw - zfs tank/tarn rw\n")

	for _, dir := range []string{mounted, link, filepath.Join(mounted, "not/yet/made")} {
		if err := checkDataset(dir, "tank/tarn", table); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	err = checkDataset(plain, "tank/tarn", table)
	if err == nil {
		t.Fatal("a directory outside the dataset is accepted")
	}
	for _, want := range []string{"tank/tarn", plain, "ext4 /dev/sda1, mounted at /", "zfs mount tank/tarn"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
	if err := checkDataset(mounted, "tank/other", table); err == nil {
		t.Error("another dataset is accepted")
	}
	if err := checkDataset(mounted, "tank", table); err == nil {
		t.Error("the dataset above is accepted")
	}
	if err := checkDataset(dangling, "tank/tarn", table); err == nil {
		t.Error("a link to nowhere is accepted")
	}
	if err := checkDataset(mounted, "tank/tarn", filepath.Join(root, "no-table")); err == nil {
		t.Error("accepted without a mount table")
	}
}
