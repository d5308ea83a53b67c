package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
