package nodeconf

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// findVersion asks the program that runs the kubelet for its version.
func (r *reader) findVersion(ctx context.Context, n *Node) {
	n.VersionFrom = ""
	if r.Run == nil || n.Layout == "" {
		return
	}
	program := "kubelet"
	if n.K3s != nil {
		program = "k3s"
	}
	if n.Unit != nil && len(n.Unit.Command) > 0 && strings.HasPrefix(n.Unit.Command[0], "/") {
		program = n.Unit.Command[0]
	}
	text, err := r.Run(ctx, program, "--version")
	if err != nil {
		r.note(Note{Kind: Unreadable, Text: program + " --version did not tell the version: " + err.Error(), Fix: "name it with --kubelet-version"})
		return
	}
	if v, err := eviction.ParseVersion(text); err == nil {
		n.Version, n.VersionFrom = v, program+" --version"
	}
}

// SystemdVersion asks systemd for its version; 0 if there is none or it does not tell.
func SystemdVersion(ctx context.Context, m Machine) int {
	if m.Run == nil {
		return 0
	}
	text, err := m.Run(ctx, "systemctl", "--version")
	fields := strings.Fields(text)
	if err != nil || len(fields) < 2 {
		return 0
	}
	v, _ := strconv.Atoi(fields[1])
	return v
}

// describeUnit fills in what is known of the unit that runs the kubelet.
func (r *reader) describeUnit(ctx context.Context, n *Node) {
	if n.Unit == nil {
		return
	}
	u := &eviction.Unit{Name: n.Unit.Name}
	for _, l := range n.Unit.Values("Unit", "RequiresMountsFor") {
		u.MountsFor = append(u.MountsFor, splitWords(l.Value)...)
	}
	for _, l := range n.Unit.Values("Unit", "After") {
		for _, other := range strings.Fields(l.Value) {
			switch other {
			case "zfs-mount.service", "zfs.target":
				u.AfterMounts = true
			case "local-fs.target":
				u.AfterMounts = u.AfterMounts || r.mountGenerator()
			}
		}
	}
	u.Started = r.started(ctx, n.Unit.Name)
	n.Config.Unit = u
}

// mountGenerator tells whether ZFS makes mount units, which local-fs.target waits for.
func (r *reader) mountGenerator() bool {
	entries, ok := r.dir("/etc/zfs/zfs-list.cache")
	return ok && len(entries) > 0
}

// started is when the main process of a unit was started; zero if it does not run or nobody tells.
func (r *reader) started(ctx context.Context, unit string) time.Time {
	if r.Run == nil || unit == k3sRootlessUnit {
		return time.Time{}
	}
	text, err := r.Run(ctx, "systemctl", "show", unit, "--property=ExecMainStartTimestamp", "--timestamp=unix")
	_, stamp, _ := strings.Cut(strings.TrimSpace(text), "=@")
	seconds, parseErr := strconv.ParseInt(stamp, 10, 64)
	if err != nil || parseErr != nil || seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}
