package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/zfs"
	"github.com/tarn-kv/tarn/zfs/eviction"
)

func TestDoctorOfDataset(t *testing.T) {
	w := newWorld(t)
	newStore(t, w.dir)
	o := doctorOf(t, "", nil)
	o.dataset, o.dataDir, o.dirGiven = w.dataset, w.dir, true
	look := func() []finding {
		f := &findings{area: "dataset"}
		o.lookAtDataset(t.Context(), f)
		return f.all()
	}
	list := look()
	wantFinding(t, list, "dataset", "pool", weightOK, "tank is ONLINE")
	wantFinding(t, list, "dataset", "properties", weightWarning, "no dataset of their own")
	wantFinding(t, list, "dataset", "snapshots", weightWarning, "none")
	wantFinding(t, list, "dataset", "backup", weightWarning, "nowhere else")
	snapshotCommand(t, exitOK, w.flags, "create")
	wantFinding(t, look(), "dataset", "verification", weightWarning, "ever proved")
	snapshotCommand(t, exitOK, w.flags, "verify", "--newest")
	list = look()
	wantFinding(t, list, "dataset", "snapshots", weightOK, "1; the newest is")
	wantFinding(t, list, "dataset", "verification", weightOK, "")
	o.machine.now = func() time.Time { return time.Now().Add(10 * 24 * time.Hour) }
	list = look()
	wantFinding(t, list, "dataset", "snapshots", weightWarning, "10 d old")
	wantFinding(t, list, "dataset", "verification", weightWarning, "10 d ago")
	w.Unmount(w.dataset)
	wantFinding(t, look(), "dataset", "dataset", weightProblem, "not mounted")
	for _, c := range w.Commands() {
		if f := strings.Fields(c); !slices.Contains([]string{"list", "get", "create", "snapshot", "set", "holds"}, f[1]) {
			t.Errorf("it ran %s", c)
		}
	}
}

func TestDoctorOfPools(t *testing.T) {
	for health, c := range map[string]struct {
		w    weight
		more bool
	}{"ONLINE": {weightOK, true}, "DEGRADED": {weightProblem, true}, "SUSPENDED": {weightProblem, false}} {
		f := &findings{area: "dataset"}
		state := zfs.SetupState{PoolHealth: health, Exists: true, Mounted: true}
		if more := judgePool(f, "tank/tarn", state, nil); more != c.more || f.all()[0].Weight != c.w {
			t.Errorf("%s: %v, %+v", health, more, f.all())
		}
	}
	for text, c := range map[string]struct {
		err  error
		w    weight
		more bool
	}{
		"no answer": {zfs.ErrNoAnswer, weightProblem, false}, "no ZFS": {zfs.ErrNoZFS, weightProblem, false},
		"not found": {zfs.ErrNotFound, weightProblem, false}, "no right": {zfs.ErrPermission, weightUnknown, false},
	} {
		f := &findings{area: "dataset"}
		if more := judgePool(f, "tank/tarn", zfs.SetupState{}, fmt.Errorf("look: %w", c.err)); more != c.more || f.all()[0].Weight != c.w {
			t.Errorf("%s: %v, %+v", text, more, f.all())
		}
	}
	f := &findings{area: "dataset"}
	judgeDifference(f, "tank/tarn", zfs.Difference{What: "sync", Has: "disabled", Want: "standard"})
	judgeDifference(f, "tank/tarn", zfs.Difference{What: "atime", Has: "on", Want: "off"})
	wantFinding(t, f.all(), "dataset", "properties", weightProblem, "sync is disabled")
	wantFinding(t, f.all(), "dataset", "properties", weightWarning, "atime is on")
}

// What tarn init has set up is in order until somebody changes it.
func TestDoctorOfProperties(t *testing.T) {
	w := newWorld(t)
	d, err := zfs.OpenDataset(t.Context(), w.dataset, filepath.Dir(w.dir))
	if err != nil {
		t.Fatal(err)
	}
	setup := zfs.Setup{Dataset: w.dataset, Version: tarnVersion}
	for name, c := range map[string]struct {
		property, value string
		want            weight
		text            string
	}{
		"as it was set up": {"", "", weightOK, "as tarn init sets it up"},
		"sync":             {"sync", "disabled", weightProblem, "loses writes that were acknowledged"},
		"recordsize":       {"recordsize", "131072", weightWarning, "recordsize is 128K, not 16K"},
		"never set up":     {zfs.PropSetup, "", weightWarning, "was not set up by tarn init"},
	} {
		state := zfs.SetupState{PoolHealth: "ONLINE", Exists: true, Mounted: true, Properties: map[string]zfs.Property{
			"type": {Value: "filesystem"}, "mountpoint": {Value: d.Dir(), Source: "local"}, "reservation": {Value: "1073741824", Source: "local"},
			zfs.PropSetup: {Value: tarnVersion, Source: "local"},
		}}
		for _, set := range zfs.Tuned {
			state.Properties[set.Name] = zfs.Property{Value: set.Value, Source: "local"}
		}
		state.Properties["recordsize"] = zfs.Property{Value: "16384", Source: "local"}
		switch {
		case c.property != "" && c.value == "":
			delete(state.Properties, c.property)
		case c.property != "":
			state.Properties[c.property] = zfs.Property{Value: c.value, Source: "local"}
		}
		f := &findings{area: "dataset"}
		judgeProperties(f, setup, state, d)
		wantFinding(t, f.all(), "dataset", "properties", c.want, c.text)
		if len(f.all()) != 1 {
			t.Errorf("%s: %+v", name, f.all())
		}
	}
}

func TestDoctorOfSpace(t *testing.T) {
	o := defaultDoctorOptions()
	reserve := store.ReservedRoom(100 << 30)
	for free, want := range map[uint64]weight{reserve: weightProblem, 2 * reserve: weightWarning, 50 << 30: weightOK} {
		o.usage = func(string) (vfs.Usage, error) { return vfs.Usage{Total: 100 << 30, Free: free}, nil }
		f := &findings{area: "dataset"}
		if o.judgeSpace(f, "/data"); f.all()[0].Weight != want {
			t.Errorf("%d free: %+v", free, f.all())
		}
	}
}

// What is on a suspended pool is not touched.
func TestDoctorOfSuspendedPool(t *testing.T) {
	o := doctorOf(t, "v1.36.2+k3s1", map[string]string{k3sUnitPath: testK3sUnit})
	o.mounts = writeFile(t, "mountinfo", "22 1 0:20 / / rw - ext4 /dev/sda1 rw\n"+
		"40 22 0:40 / /var/lib/rancher rw - zfs tank/k3s rw\n41 22 0:41 / /var/lib/kubelet rw - zfs fast/kubelet rw\n")
	for _, program := range []string{"zpool", "/usr/sbin/zpool"} {
		o.machine.Run = func(_ context.Context, name string, _ ...string) (string, error) {
			if name == program {
				return "fast\tONLINE\ntank\tSUSPENDED\n", nil
			}
			return "", exec.ErrNotFound
		}
		o.kubelet.gather = func(context.Context, eviction.Options) (*eviction.Facts, error) {
			t.Error("the kubelet's file systems are looked at")
			return nil, errors.New("suspended")
		}
		r, code := examine(t, o)
		wantFinding(t, r.Findings, "k3s", "pool", weightProblem, "tank is suspended")
		wantFinding(t, r.Findings, "kubelet", "pool", weightProblem, "/var/lib/rancher/k3s is not looked at")
		if code != exitProblems {
			t.Errorf("exit code %d", code)
		}
	}
}
