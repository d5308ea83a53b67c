package main

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/tarn-kv/tarn/zfs/eviction"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

const (
	kubeletDropInName = "90-tarn-zfs.conf"
	kubeletArgsName   = "60-tarn-kubelet.yaml"
	kubeletFilterName = "90-tarn-log-filter.conf"
	// kubeletDropInDir is for a kubelet that reads no directory yet.
	kubeletDropInDir = "/etc/kubernetes/kubelet.conf.d"
	systemUnits      = "/etc/systemd/system"
	extraArgs        = "KUBELET_EXTRA_ARGS"

	// filterSince is the first systemd with LogFilterPatterns.
	filterSince = 253
)

// kubeletTarget is where a kubelet takes a configuration from.
type kubeletTarget struct {
	// dropIn is a file in the kubelet's directory of drop-ins; "" if it reads none.
	dropIn string
	// k3sArgs is a file of k3s for kubelet-arg; "" if it is not needed.
	k3sArgs string
	// unitDropIn tells the kubelet to read the directory of dropIn; "" if it does.
	unitDropIn string
	byHand     []string
	refused    string
}

// target finds out where the kubelet of a node takes a configuration from.
func (o *kubeletConfigOptions) target(n *nodeconf.Node) kubeletTarget {
	switch {
	case n.ConfigDir != "" && (o.configDir != "" || n.K3s == nil || o.k3sReadsDropIns(n)):
		return kubeletTarget{dropIn: path.Join(n.ConfigDir, kubeletDropInName)}
	case n.K3s != nil && !n.Version.Known():
		return kubeletTarget{refused: "the version of k3s is not known, and with it whether the kubelet in it reads drop-ins (from 1.32 on): give it with --kubelet-version"}
	case n.K3s != nil:
		return kubeletTarget{k3sArgs: path.Join(n.K3s.ConfigFile+".d", kubeletArgsName)}
	case n.Layout == "" && n.ConfigFile == "":
		return kubeletTarget{refused: "no kubelet was recognised on this machine: name the directory of its drop-ins with --config-dir, and see tarn kubelet check"}
	case n.Version.Known() && !eviction.ReadsDropIns(n.Version, false):
		return kubeletTarget{byHand: []string{fmt.Sprintf("a kubelet of %s reads no directory of drop-ins: write the settings into its file %s", n.Version, firstText(n.ConfigFile, "of --config"))}}
	}
	t := kubeletTarget{dropIn: path.Join(kubeletDropInDir, kubeletDropInName)}
	if canAddArgs(n.Unit) {
		t.unitDropIn = path.Join(systemUnits, n.Unit.Name+".d", kubeletDropInName)
	} else {
		t.byHand = []string{fmt.Sprintf("this kubelet is not told to read a directory of drop-ins: add --config-dir=%s to its arguments%s", kubeletDropInDir, whereArgs(n.Unit))}
	}
	return t
}

// k3sReadsDropIns tells whether this k3s gives the kubelet a directory. Without a version, the directory says it.
func (o *kubeletConfigOptions) k3sReadsDropIns(n *nodeconf.Node) bool {
	if n.Version.Known() {
		return eviction.ReadsDropIns(n.Version, true)
	}
	_, err := fs.Stat(o.machine.Root, rootPath(n.ConfigDir))
	return err == nil
}

// canAddArgs tells whether a unit takes arguments from a variable that nobody uses, as kubeadm's does.
func canAddArgs(u *nodeconf.Unit) bool {
	if u == nil {
		return false
	}
	exec := u.Values("Service", "ExecStart")
	if len(exec) == 0 || !strings.Contains(exec[len(exec)-1].Value, "$"+extraArgs) {
		return false
	}
	g, set := u.Environment[extraArgs]
	return !set || strings.HasSuffix(g.File, "/"+kubeletDropInName)
}

// whereArgs tells where the arguments of a unit are that somebody has set.
func whereArgs(u *nodeconf.Unit) string {
	if u == nil {
		return ""
	}
	if g, set := u.Environment[extraArgs]; set {
		return fmt.Sprintf(" (%s in %s is %q)", extraArgs, g.File, g.Value)
	}
	return fmt.Sprintf(" (ExecStart in %s)", u.CommandFile)
}

// filterFile is the drop-in with which systemd leaves lines out of the journal.
func filterFile(unit string) string { return path.Join(systemUnits, unit+".d", kubeletFilterName) }

const filterText = `[Service]
# The kubelet of Kubernetes 1.36.1 to 1.37.2 logs this twice every 10 seconds where images are on ZFS.
# No configuration of the kubelet removes it, and it means nothing.
LogFilterPatterns=~no observation found for eviction signal.*containerfs.inodesFree
`

// filterAnswer says what there is to say about the filter of the journal. refused says why it can not be written.
func (o *kubeletConfigOptions) filterAnswer(ctx context.Context, n *nodeconf.Node) (answer, refused string) {
	systemd := nodeconf.SystemdVersion(ctx, o.machine.Machine)
	switch {
	case n.Unit == nil:
		answer = "there is no unit of systemd that runs the kubelet, so nothing filters its log"
	case n.Layout == eviction.LayoutK3sRootless:
		answer = "systemd filters the log of system services only, and this k3s runs as a user's"
	case systemd == 0:
		answer = fmt.Sprintf("--log-filter keeps them out of the journal with systemd %d or later; the version here is not known, and an older one ignores the file with a warning", filterSince)
		return answer, ""
	case systemd < filterSince:
		answer = fmt.Sprintf("systemd here is %d and can not filter a journal, which %d and later can", systemd, filterSince)
	default:
		return fmt.Sprintf("--log-filter keeps them out of the journal (systemd here is %d, %d is needed)", systemd, filterSince), ""
	}
	return answer, answer + ": leave out --log-filter"
}
