package zfs

import (
	"path/filepath"
	"testing"
)

func TestParseTarget(t *testing.T) {
	here, err := filepath.Abs("b")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]Target{
		"tank/backups/tarn":                    {Dataset: "tank/backups/tarn"},
		"ssh://nas/tank/tarn":                  {Host: "nas", Dataset: "tank/tarn"},
		"ssh://backup@nas.example:2222/b/tarn": {User: "backup", Host: "nas.example", Port: "2222", Dataset: "b/tarn"},
		"ssh://[fd00::1]:22/b/tarn":            {Host: "fd00::1", Port: "22", Dataset: "b/tarn"},
		"dir:/mnt/usb":                         {Dir: "/mnt/usb"},
		"/mnt/usb/":                            {Dir: "/mnt/usb"},
		"dir:b":                                {Dir: here},
	} {
		got, err := ParseTarget(text)
		if err != nil || got != want {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
		if again, err := ParseTarget(got.String()); err != nil || again != got {
			t.Errorf("%q is written as %q, which is read as %+v, %v", text, got, again, err)
		}
		if err := ValidTag(got.HoldTag()); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{
		"", "tank", "dir:", "./b", "..", "tank/", "tank//x", "tank/a@b", "-tank/x", "ssh://", "ssh://nas", "ssh://nas/tank", "ssh:///tank/x",
		"ssh://-oProxyCommand=x/tank/x", "ssh://a b/tank/x", "ssh://-l@nas/tank/x", "ssh://u:secret@nas/tank/x", "ssh://nas:0/tank/x", "ssh://nas:99999/tank/x",
		"ssh://nas/tank/x?y", "ssh://nas/tank/x#y", "ssh://nas;reboot/tank/x",
	} {
		if got, err := ParseTarget(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
	a, _ := ParseTarget("tank/a")
	b, _ := ParseTarget("tank/b")
	if a.HoldTag() == b.HoldTag() {
		t.Error("two targets have one tag")
	}
}
