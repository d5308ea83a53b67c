package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/zfs"
)

const (
	// A daily snapshot, a weekly verification and a daily push, with time to be late.
	oldSnapshot     = 26 * time.Hour
	oldVerification = 8 * 24 * time.Hour
	oldPush         = 50 * time.Hour
)

// lookAtDataset looks at where the data directory is, and at its snapshots. The pool comes before any file
// on it: a look at one can hang for ever.
func (o *doctorOptions) lookAtDataset(ctx context.Context, f *findings) {
	setup := zfs.Setup{Dataset: o.dataset, Version: tarnVersion}
	if setup.Dataset == "" && !o.copies {
		setup.Dataset = datasetBelow(o.mounts, o.dataDir)
	}
	var state zfs.SetupState
	if setup.Dataset != "" {
		var err error
		if state, err = setup.Inspect(ctx); !judgePool(f, setup.Dataset, state, err) {
			return
		}
	}
	if _, err := os.Stat(o.dataDir); errors.Is(err, fs.ErrNotExist) && o.dataset == "" {
		f.note("data directory", "there is no %s on this machine; --data-dir or --config-file names another one", o.dataDir)
		return
	}
	o.judgeOwner(ctx, f)
	from, err := o.open(ctx)
	if err != nil {
		judgeNoDataset(f, err)
		return
	}
	if d, ok := from.(*zfs.Dataset); ok {
		judgeProperties(f, setup, state, d)
		o.judgePushes(ctx, f, d)
	} else {
		f.note("file system", "%s is not on ZFS, or copies are asked for: snapshots are copies of the files beside it, and there is no tarn backup", o.dataDir)
	}
	o.judgeSpace(f, from.Dir())
	snaps, err := from.List(ctx)
	if err != nil {
		f.unknown("snapshots", whoMayLook(err), "%v", err)
		return
	}
	judgeSnapshots(f, snaps, o.machine.now())
}

// datasetBelow is the dataset that a directory is on by the table of mounts, and by its name alone: nothing on it
// is touched. It is "" if there is none.
func datasetBelow(table, dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	mounts, err := zfs.ReadMounts(table)
	if err != nil {
		return ""
	}
	if m, ok := zfs.MountOf(mounts, abs); ok && m.FSType == "zfs" {
		return m.Source
	}
	return ""
}

// judgePool looks at the pool and whether its dataset is there. It is false if nothing more can be asked.
func judgePool(f *findings, dataset string, state zfs.SetupState, err error) bool {
	pool := zfs.PoolOf(dataset)
	switch state.PoolHealth {
	case "": // the error says why
	case "ONLINE":
		f.ok("pool", "%s is ONLINE", pool)
	case "SUSPENDED":
		f.problem("pool", "bring the devices back and run zpool clear "+pool, "the pool %s is suspended: nothing is written or read", pool)
		return false
	default:
		f.problem("pool", "see zpool status "+pool, "the pool %s is %s", pool, state.PoolHealth)
	}
	switch {
	case errors.Is(err, zfs.ErrNoAnswer):
		f.problem("pool", whoMayLook(err), "%v", err)
		return false
	case err != nil && dataset == pool:
		return true // judged with the properties
	case err != nil:
		judgeNoDataset(f, err)
		return false
	case !state.Exists:
		f.problem("dataset", "make it with tarn init "+dataset+", or correct dataset in the configuration file", "%s does not exist", dataset)
		return false
	case !state.Mounted:
		f.problem("dataset", "zfs mount "+dataset, "%s is not mounted, so the server does not have its data", dataset)
	}
	return true
}

// judgeNoDataset is for a dataset that can not be looked at.
func judgeNoDataset(f *findings, err error) {
	switch {
	case errors.Is(err, zfs.ErrNoZFS):
		f.problem("dataset", "install ZFS (zfsutils-linux), or take dataset out of the configuration file", "%v", err)
	case errors.Is(err, zfs.ErrNotFound):
		f.problem("dataset", "make it with tarn init, or name the right one with --dataset", "%v", err)
	case errors.Is(err, zfs.ErrSuspended):
		f.problem("pool", "bring the devices back and run zpool clear; until then nothing is written", "%v", err)
	default:
		f.unknown("dataset", whoMayLook(err), "%v", err)
	}
}

// whoMayLook is what to do about something that could not be read.
func whoMayLook(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, zfs.ErrPermission):
		return "run tarn doctor as root (sudo)"
	case errors.Is(err, zfs.ErrNoAnswer):
		return "look at zpool status: a suspended pool answers nothing; else give a longer --timeout"
	}
	return "see the message"
}

// judgeProperties compares the dataset with what tarn init makes.
func judgeProperties(f *findings, setup zfs.Setup, state zfs.SetupState, d *zfs.Dataset) {
	setup.Mountpoint = state.Properties["mountpoint"].Value
	plan, err := setup.Plan(state)
	switch {
	case !state.Exists || !state.Done() && d.Rel() != ".":
		f.warning("properties", "make one with tarn init POOL/tarn, and move the data there", "the data have no dataset of their own: they are a part of %s", setup.Dataset)
		return
	case err != nil:
		f.warning("properties", "see the message", "%v", err)
	case !state.Done():
		f.warning("properties", "run tarn init "+setup.Dataset, "%s was not set up by tarn init: recordsize, sync and the others are what is inherited", setup.Dataset)
	case len(plan.Differs) > 0:
		for _, d := range plan.Differs {
			judgeDifference(f, setup.Dataset, d)
		}
	default:
		f.ok("properties", "%s is as tarn init sets it up", setup.Dataset)
	}
	if reserved := state.Properties["reservation"].Value; reserved == "0" || reserved == "" {
		f.note("reservation", "nothing keeps other data from filling the pool; tarn init %s --reservation SIZE does", setup.Dataset)
	}
}

func judgeDifference(f *findings, dataset string, d zfs.Difference) {
	set := zfs.CommandLine([]string{"zfs", "set", d.What + "=" + d.Want, dataset})
	if d.What == "sync" && d.Has == "disabled" {
		f.problem("properties", set, "%s: a power cut loses writes that were acknowledged", d)
		return
	}
	f.warning("properties", set+" (or leave it, if it is meant so)", "%s", d)
}

// judgeSpace looks at the free space of the file system.
func (o *doctorOptions) judgeSpace(f *findings, dir string) {
	if dir == "" {
		return
	}
	u, err := o.usage(dir)
	if err != nil {
		f.unknown("space", whoMayLook(err), "the free space of %s: %v", dir, err)
		return
	}
	stops, free := store.ReservedRoom(u.Total), roughBytes(int64(u.Free))
	const do = "make room: tarn snapshot prune, or delete other data; df shows what is free"
	switch {
	case u.Free <= stops:
		f.problem("space", do, "%s free, and the server refuses puts below %s", free, roughBytes(int64(stops)))
	case u.Free <= 4*stops:
		f.warning("space", do, "%s free; the server refuses puts below %s", free, roughBytes(int64(stops)))
	default:
		f.ok("space", "%s free; the server refuses puts below %s", free, roughBytes(int64(stops)))
	}
}

// judgeSnapshots looks at the age of the newest snapshot, and of the last proof that one can be restored.
func judgeSnapshots(f *findings, snaps []zfs.Snapshot, now time.Time) {
	const enable = "systemctl enable --now tarn-snapshot.timer, or tarn snapshot create from a timer of your own"
	if len(snaps) == 0 {
		f.warning("snapshots", enable, "there are none: what is deleted by mistake can not be brought back")
		return
	}
	newest, verified := snaps[len(snaps)-1], (*zfs.Verification)(nil)
	for i := range snaps {
		if snaps[i].Problem != "" {
			f.problem("snapshots", "tarn snapshot show "+snaps[i].Name+" says more; tarn snapshot destroy removes it", "%s is damaged: %s", snaps[i].Name, snaps[i].Problem)
		}
		if v := snaps[i].Verified; v != nil && (verified == nil || v.Time.After(verified.Time)) {
			verified = v
		}
	}
	text := fmt.Sprintf("%d; the newest is %s old", len(snaps), roughAge(now.Sub(newest.Created)))
	if now.Sub(newest.Created) > oldSnapshot {
		f.warning("snapshots", enable, "%s", text)
	} else {
		f.ok("snapshots", "%s", text)
	}
	const verify = "tarn snapshot verify --newest; systemctl enable --now tarn-verify.timer does it each week"
	switch {
	case verified == nil:
		f.warning("verification", verify, "no snapshot was ever proved to be restorable")
	case now.Sub(verified.Time) > oldVerification:
		f.warning("verification", verify, "the last one was %s ago", roughAge(now.Sub(verified.Time)))
	default:
		f.ok("verification", "%s ago a snapshot was proved to be restorable", roughAge(now.Sub(verified.Time)))
	}
}

// judgePushes looks whether there is a copy elsewhere.
func (o *doctorOptions) judgePushes(ctx context.Context, f *findings, d *zfs.Dataset) {
	records, err := zfs.PushRecords(ctx, d.Name())
	switch {
	case err != nil:
		f.unknown("backup", whoMayLook(err), "%v", err)
	case len(records) == 0:
		f.warning("backup", "tarn backup push TARGET sends them to another pool, machine or disk, see docs/backup.md",
			"the snapshots are in the same pool as the data and nowhere else")
	}
	now := o.machine.now()
	for _, r := range records {
		age := roughAge(now.Sub(r.Time))
		if now.Sub(r.Time) > oldPush {
			f.warning("backup", "tarn backup push "+r.Target+"; if that is no longer used: tarn backup forget "+r.Target, "the last push to %s was %s ago", r.Target, age)
		} else {
			f.ok("backup", "pushed to %s %s ago", r.Target, age)
		}
	}
}
