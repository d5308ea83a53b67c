//go:build zfs

package zfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/tarn-kv/tarn/zfs/zfstest"
)

// TestZFSPushCut interrupts a push at 20 random points, half of them by losing the
// connection and half by ending the program, and goes on each time.
func TestZFSPushCut(t *testing.T) {
	ssh := fakeSSH(t)
	p := newPair(t)
	p.write(2_000_000)
	names := []string{p.snapshot()}
	target := "ssh://backup@nas.example:2222/" + p.target
	resumed, interrupted := 0, 0
	for round := range 20 {
		size := 1_000_000 + p.n(3_000_000)
		if round == 0 {
			size = 2_000_000 // the full stream
		}
		cut := int64(1 + p.n(size))
		opts := TransferOptions{}
		ctx := t.Context()
		if round%2 == 0 {
			put(t, ssh, "cut", strconv.FormatInt(cut, 10))
		} else {
			ctx, opts.Progress = cutAt(t, cut)
		}
		if round > 0 {
			p.write(size)
			names = append(names, p.snapshot())
		}
		_, err := Push(ctx, p.source, p.parse(target), opts)
		if err == nil {
			t.Logf("round %d: cut at %d of about %d came too late", round, cut, size)
		} else {
			interrupted++
			if round < 2 {
				t.Logf("the message: %v", err)
			}
		}
		if round%2 == 0 && err != nil && !errors.Is(err, ErrSSH) {
			t.Errorf("round %d: a lost connection is told as %v", round, err)
		}
		os.Remove(filepath.Join(ssh, "cut"))
		if p.n(3) == 0 { // time goes on meanwhile
			p.write(100_000)
			names = append(names, p.snapshot())
		}
		r := p.push(target)
		if len(r.Sent) > 0 && r.Sent[0].Resumed {
			resumed++
		}
		sameFrom(t, p.source, p.target, names, len(names)) // the files once, at the end
	}
	same(t, p.source, p.target, names)
	t.Logf("%d interrupted, %d resumed", interrupted, resumed)
	if interrupted < 15 || resumed == 0 {
		t.Errorf("%d of 20 pushes were interrupted, %d resumed: that tests too little", interrupted, resumed)
	}
}

func TestZFSPullCut(t *testing.T) {
	fakeSSH(t)
	p := newPair(t)
	for range 3 {
		p.write(1_000_000)
		p.snapshot()
	}
	remote := p.parse("ssh://nas/" + p.source)
	back := p.to.Name + "/back"
	for range 4 {
		ctx, progress := cutAt(t, int64(1+p.n(1_000_000)))
		if _, err := Pull(ctx, remote, "", back, TransferOptions{Progress: progress}); err == nil {
			break
		}
	}
	if _, err := Pull(t.Context(), remote, "", back, TransferOptions{}); err != nil {
		t.Fatal(err)
	}
	p.clean(back)
	if marks := zfstest.Run(t, "zfs", "list", "-H", "-t", "bookmark", p.source); marks != "" {
		t.Errorf("a pull left bookmarks at the source: %s", marks)
	}
	p.write(1000)
	newest := p.snapshot()
	p.snapshot()
	r, err := Pull(t.Context(), remote, newest, back, TransferOptions{})
	if err != nil || r.Newest != newest || len(r.Sent) != 1 {
		t.Errorf("result %+v, %v", r, err)
	}
}

// TestZFSTokenGone interrupts a push and destroys the snapshot at the source.
func TestZFSTokenGone(t *testing.T) {
	p := newPair(t)
	p.write(1_000_000)
	first := p.snapshot()
	p.push(p.target)
	p.write(3_000_000)
	gone := p.snapshot()
	ctx, progress := cutAt(t, 1_000_000)
	if _, err := Push(ctx, p.source, p.parse(p.target), TransferOptions{Progress: progress}); err == nil {
		t.Fatal("the push was not interrupted")
	}
	if err := p.of.Destroy(t.Context(), gone); err == nil {
		t.Fatal("the snapshot of an interrupted transfer is not held")
	}
	zfstest.Run(t, "zfs", "release", p.parse(p.target).HoldTag(), p.source+"@"+gone)
	zfstest.Run(t, "zfs", "destroy", p.source+"@"+gone)
	p.write(1000)
	newest := p.snapshot()
	p.refused(p.target, ErrInterrupted, "--abort-resume")
	if _, err := Push(t.Context(), p.source, p.parse(p.target), TransferOptions{AbortResume: true}); err != nil {
		t.Fatal(err)
	}
	same(t, p.source, p.target, []string{first, newest})

	// The same with a target that was to be made.
	other := p.to.Name + "/other"
	p.write(3_000_000)
	p.snapshot()
	ctx, progress = cutAt(t, 500_000)
	if _, err := Push(ctx, p.source, p.parse(other), TransferOptions{Progress: progress}); err == nil {
		t.Fatal("the push was not interrupted")
	}
	plan, err := Push(t.Context(), p.source, p.parse(other), TransferOptions{DryRun: true})
	if err != nil || len(plan.Sent) != 3 || !plan.Sent[0].Resumed {
		t.Errorf("the dry run says %+v, %v", plan, err)
	}
	if _, err := Push(t.Context(), p.source, p.parse(other), TransferOptions{AbortResume: true}); err != nil {
		t.Fatal(err)
	}
	p.clean(other)
}

// TestZFSPushRights pushes to a user that has been given rights one by one.
func TestZFSPushRights(t *testing.T) {
	ssh := fakeSSH(t)
	put(t, ssh, "user", "65534")
	p := newPair(t)
	p.write(100_000)
	p.snapshot()
	target := "ssh://nas/" + p.target
	parent := filepath.Dir(p.target)
	p.refused(target, ErrPermission, "zfs allow", "receive:append,create,mount")
	zfstest.Run(t, "zfs", "allow", "-u", "65534", "receive:append,create,mount", parent)
	_, err := Push(t.Context(), p.source, p.parse(target), TransferOptions{})
	if !errors.Is(err, ErrPermission) {
		t.Fatalf("without userprop: %v", err)
	}
	t.Logf("the message: %v", err)
	zfstest.Run(t, "zfs", "allow", "-u", "65534", "userprop", parent)
	p.push(target)
	other := fmt.Sprintf("ssh://nas/%s2", p.target)
	notes := 0
	if _, err := Push(t.Context(), p.source, p.parse(other), TransferOptions{Note: func(s string) { notes++; t.Logf("note: %s", s) }}); err != nil || notes != 1 {
		t.Errorf("%d notes, %v", notes, err)
	}
	zfstest.Run(t, "zfs", "allow", "-u", "65534", "canmount,readonly", parent)
	p.push(fmt.Sprintf("ssh://nas/%s3", p.target))
	p.clean(p.target + "3")
	p.write(1000)
	p.snapshot()
	p.push(fmt.Sprintf("ssh://nas/%s3", p.target))

	// What the manual says of these rights: nothing that is there can be destroyed with them.
	ours := mustOurs(t, p.source)
	put(t, p.dir, "other", "x")
	zfstest.Run(t, "zfs", "snapshot", p.source+"@other")
	before := mustOurs(t, p.target+"3")
	for _, command := range []string{
		"zfs send -i @" + ours[0] + " " + p.source + "@other | setpriv --reuid=65534 --clear-groups zfs receive -F -u " + p.target + "3",
		"setpriv --reuid=65534 --clear-groups zfs destroy " + p.target + "3@" + ours[0],
		"setpriv --reuid=65534 --clear-groups zfs rollback -r " + p.target + "3@" + ours[0],
	} {
		if out, err := zfstest.Try("sh", "-c", command); err == nil {
			t.Errorf("the user can run %s: %s", command, out)
		}
	}
	if after := mustOurs(t, p.target+"3"); !slices.Equal(before, after) {
		t.Errorf("there are %q, and there were %q", after, before)
	}
}
