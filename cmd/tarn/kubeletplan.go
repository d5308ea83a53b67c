package main

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tarn-kv/tarn/zfs/eviction"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

// plan works out what to write or remove, and what comes of it. It changes nothing.
func (o *kubeletConfigOptions) plan(ctx context.Context) (*kubeletConfigReport, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	node, err := o.readNode(ctx, o.machine.Machine)
	if err != nil {
		return nil, withExit(exitUsage, err)
	}
	r := &kubeletConfigReport{Files: []setupFile{}, ByHand: []string{}, Unread: []string{}, Overridden: []string{}, LinesGo: []eviction.Line{},
		LinesStay: []eviction.Line{}, Remaining: []eviction.Finding{}, Next: []string{}}
	if o.undo {
		return r, o.planUndo(r, node)
	}
	// What was written before is left out of the account: else a plan would come of itself, and each run differ.
	bare := o.kubeletOptions
	bare.guess = true
	bare.machine.Machine = o.machine.With(o.without(node))
	l, err := bare.look(ctx)
	if err != nil {
		return nil, withExit(exitUsage, err)
	}
	node = l.node
	r.Layout, r.Version, r.Unread = node.Layout, node.Version, append(r.Unread, l.unread()...)
	switch t := o.target(node); {
	case t.refused != "" && !o.print:
		r.Refused = t.refused
		return r, nil
	case l.report == nil && len(l.unseen) == 0:
		r.Refused = "no kubelet was recognised on this machine: name its directory with --root-dir, that of the images with --image-dir, and its version with --kubelet-version"
		return r, nil
	case l.report == nil:
		r.Refused = "the file systems could not be looked at: " + unseenText(l.unseen)
		return r, nil
	case !l.onZFS() && !o.force:
		return r, o.planSupplement(ctx, r, l, t)
	case l.report.Plan == nil:
		r.Refused = l.report.PlanError
		return r, nil
	default:
		r.Plan = l.report.Plan
		return r, o.planFiles(ctx, r, l, t)
	}
}

// planSupplement fills in what a kubelet without ZFS lacks, which counts right and keeps what it has.
func (o *kubeletConfigOptions) planSupplement(ctx context.Context, r *kubeletConfigReport, l *kubeletLook, t kubeletTarget) error {
	var plan *eviction.Plan
	if o.supplement {
		var err error
		if plan, err = eviction.Supplement(l.evictionNode(l.node), l.report.Findings); err != nil {
			r.Refused = err.Error()
			return nil
		}
	}
	switch {
	case plan == nil:
		r.reason = fmt.Sprintf("nothing to do: neither %s nor %s is on ZFS, so the kubelet counts right; --force writes thresholds in bytes all the same", l.facts.NodeFS.Path, l.facts.ImageFS.Path)
		return nil
	case t.k3sArgs != "":
		// A flag replaces the whole of what files say.
		if plan = l.report.Plan; plan == nil {
			r.Refused = l.report.PlanError
			return nil
		}
	}
	r.Plan = plan
	return o.planFiles(ctx, r, l, t)
}

func unseenText(notes []nodeconf.Note) string {
	var texts []string
	for _, n := range notes {
		texts = append(texts, n.Text)
	}
	return strings.Join(texts, "; ")
}

// planFiles fills in the files and what comes of them.
func (o *kubeletConfigOptions) planFiles(ctx context.Context, r *kubeletConfigReport, l *kubeletLook, t kubeletTarget) error {
	r.ByHand = append(r.ByHand, t.byHand...)
	add := func(file, text string) {
		if file != "" {
			o.addFile(r, file, text)
		}
	}
	add(t.dropIn, r.Plan.KubeletConfiguration())
	add(t.k3sArgs, k3sArgsText(r.Plan))
	if t.unitDropIn != "" {
		add(t.unitDropIn, fmt.Sprintf("[Service]\nEnvironment=%s=--config-dir=%s\n", extraArgs, kubeletDropInDir))
	}
	if len(r.Files) == 0 {
		r.Refused = "nothing can be written for this kubelet: " + strings.Join(r.ByHand, "; ")
		r.ByHand = append(r.ByHand, "the settings are:\n"+r.Plan.KubeletConfiguration())
	}
	o.removeOthers(r, l.node)
	after := o.judge(ctx, r, l)
	o.planFilter(ctx, r, l.node, after)
	r.Next = nextCommands(l.node, r.Files)
	if r.Refused == "" && len(r.Overridden) > 0 && !o.force {
		r.Refused = "something else wins over what would be written: " + strings.Join(r.Overridden, "; ") + "; take that away first, or write it all the same with --force"
	}
	return nil
}

// removeOthers removes what is ours and written for another version of k3s, whose arguments would win over the drop-in.
func (o *kubeletConfigOptions) removeOthers(r *kubeletConfigReport, n *nodeconf.Node) {
	for _, file := range o.ourPaths(n) {
		wanted := slices.ContainsFunc(r.Files, func(f setupFile) bool { return f.Path == file })
		if wanted || len(r.ByHand) > 0 || path.Base(file) == kubeletFilterName {
			continue
		}
		if f, err := compareFile(o.machine.Root, file, ""); err == nil && (f.State == fileRemoved || f.State == fileEdited) {
			o.addFile(r, file, "")
		}
	}
}

// planFilter adds the filter of the journal if it is asked for, and says what there is to say about it.
func (o *kubeletConfigOptions) planFilter(ctx context.Context, r *kubeletConfigReport, n *nodeconf.Node, after *eviction.Report) {
	stays := slices.ContainsFunc(after.Lines, func(l eviction.Line) bool { return l.Signal == eviction.ContainerFSInodes })
	if !stays {
		if o.logFilter {
			r.Filter = "--log-filter has nothing to filter: this kubelet does not log those lines"
		}
		return
	}
	answer, refused := o.filterAnswer(ctx, n)
	r.Filter = answer
	if !o.logFilter {
		return
	}
	if refused != "" && !o.force {
		r.Refused = refused
		return
	}
	if n.Unit != nil {
		o.addFile(r, filterFile(n.Unit.Name), filterText)
		r.Filter = "the filter keeps them out of the journal, with systemd " + fmt.Sprint(filterSince) + " or later"
	}
}

// k3sArgsText is a file of k3s with the plan as arguments of the kubelet.
func k3sArgsText(p *eviction.Plan) string {
	var b strings.Builder
	b.WriteString("# This k3s has no directory of drop-ins for the kubelet. A flag replaces a whole map.\nkubelet-arg+:\n")
	for _, flag := range p.Flags() {
		fmt.Fprintf(&b, "  - %q\n", flag)
	}
	return b.String()
}

// addFile compares a file with what is there. One that says the same with other comments is left as it is.
func (o *kubeletConfigOptions) addFile(r *kubeletConfigReport, file, text string) {
	f, err := compareFile(o.machine.Root, file, text)
	switch {
	case err != nil:
		f.State = fileUnseen
		if r.Refused == "" && o.write && !o.dryRun {
			r.Refused = err.Error()
		}
	case f.State == fileChanged && text != "" && sameSettings(f.before, f.Content):
		f.State, f.Content = fileSame, f.before
	case (f.State == fileEdited || f.State == fileForeign) && !o.force && r.Refused == "":
		r.Refused = fmt.Sprintf("%s was changed by hand, or made by somebody else: take over what you need and remove it, or replace it with --force", file)
	}
	r.Files = append(r.Files, f)
}

// fileUnseen is a file that this user can not read.
const fileUnseen fileState = "unseen"

// sameSettings compares two files without their comments.
func sameSettings(a, b string) bool {
	settings := func(text string) (lines []string) {
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, " \n"); line != "" && !strings.HasPrefix(strings.TrimSpace(line), "#") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	return slices.Equal(settings(a), settings(b))
}

// ourPaths are all files that can have been written for a kubelet, in an order in which they can be removed: the
// kubelet does not start without the directory that its unit names.
func (o *kubeletConfigOptions) ourPaths(n *nodeconf.Node) (files []string) {
	add := func(file string) {
		if !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	if n.Unit != nil {
		add(filterFile(n.Unit.Name))
		if n.K3s == nil {
			add(path.Join(systemUnits, n.Unit.Name+".d", kubeletDropInName))
		}
	}
	if n.ConfigDir != "" {
		add(path.Join(n.ConfigDir, kubeletDropInName))
	}
	switch {
	case n.K3s != nil:
		add(path.Join(n.K3s.ConfigFile+".d", kubeletArgsName))
		add(path.Join(n.K3s.KubeletConfDir(), kubeletDropInName))
	case n.Layout != "":
		add(path.Join(kubeletDropInDir, kubeletDropInName))
	}
	return files
}

// without are our files as not there, for Machine.With. Those of others stay.
func (o *kubeletConfigOptions) without(n *nodeconf.Node) map[string][]byte {
	gone := map[string][]byte{}
	for _, file := range o.ourPaths(n) {
		text, err := fs.ReadFile(o.machine.Root, rootPath(file))
		if err == nil && markedState(string(text)) != fileForeign {
			gone[file] = nil
		}
	}
	return gone
}

// planUndo removes what is ours.
func (o *kubeletConfigOptions) planUndo(r *kubeletConfigReport, n *nodeconf.Node) error {
	r.Layout, r.Version = n.Layout, n.Version
	for _, file := range o.ourPaths(n) {
		f, err := compareFile(o.machine.Root, file, "")
		switch {
		case err != nil:
			return err
		case f.State == fileForeign:
			continue // of somebody else, who may keep it
		}
		if f.State == fileEdited && !o.force && r.Refused == "" {
			r.Refused = fmt.Sprintf("%s was changed by hand: take over what you need and remove it, or let --force remove it", file)
		}
		r.Files = append(r.Files, f)
	}
	r.Next = nextCommands(n, r.Files)
	return nil
}

// nextCommands put files into force.
func nextCommands(n *nodeconf.Node, files []setupFile) []string {
	unit, systemctl := "kubelet", "systemctl"
	switch {
	case n.Unit != nil:
		unit = strings.TrimSuffix(n.Unit.Name, ".service")
	case n.K3s != nil:
		unit = "k3s"
	}
	if n.Layout == eviction.LayoutK3sRootless {
		systemctl = "systemctl --user"
	}
	commands := []string{}
	if slices.ContainsFunc(files, func(f setupFile) bool { return strings.HasPrefix(f.Path, systemUnits+"/") && f.changes() }) {
		commands = append(commands, systemctl+" daemon-reload")
	}
	return append(commands, systemctl+" restart "+unit, "tarn kubelet check")
}
