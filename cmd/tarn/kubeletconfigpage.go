package main

import (
	"fmt"
	"strings"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// page is the report for a person.
func (o *kubeletConfigOptions) page(r *kubeletConfigReport) string {
	var b strings.Builder
	if r.reason != "" {
		return "# " + r.reason + "\n"
	}
	for _, f := range r.Files {
		fmt.Fprintf(&b, "# %s: %s\n", f.Path, kubeletStateText(f.State))
		if f.changes() && f.State != fileUnseen {
			b.WriteString(lineDiff(f.before, f.Content))
		} else if f.State == fileUnseen {
			b.WriteString(lineDiff("", f.Content))
		}
		b.WriteByte('\n')
	}
	for _, text := range r.ByHand {
		fmt.Fprintf(&b, "# by hand: %s\n", text)
	}
	if !o.undo && r.Plan != nil {
		r.effects(&b)
	}
	b.WriteString(o.closing(r))
	return b.String()
}

func kubeletStateText(s fileState) string {
	if text := s.text(); text != "" {
		return text
	}
	if s == fileUnseen {
		return "can not be read by this user, so this is not the difference but all of it"
	}
	return "not made by tarn; only --force touches it"
}

// effects say what the configuration does and what it does not.
func (r *kubeletConfigReport) effects(b *strings.Builder) {
	on := "on " + r.Version.String()
	if !r.Version.Known() {
		fmt.Fprintf(b, "# the version of the kubelet is not known (--kubelet-version tells it); what follows holds for 1.36.1 to 1.37.2\n")
		on = "on those"
	}
	for _, file := range r.Unread {
		fmt.Fprintf(b, "# can not be read by this user: %s; run it as root (sudo), what follows may be wrong\n", file)
	}
	for _, l := range r.LinesGo {
		fmt.Fprintf(b, "# goes from the log:  %s\n", lineText(l))
	}
	for _, l := range r.LinesStay {
		fmt.Fprintf(b, "# stays in the log:   %s\n", lineText(l))
	}
	switch {
	case len(r.LinesStay) > 0:
		fmt.Fprintf(b, "# %s no configuration removes what stays; it does no harm\n", on)
	case len(r.LinesGo) > 0:
		fmt.Fprintf(b, "# %s nothing of this kind stays in the log\n", on)
	default:
		fmt.Fprintf(b, "# %s the kubelet logs no lines about missing observations, before and after\n", on)
	}
	if r.Filter != "" {
		fmt.Fprintf(b, "# %s\n", r.Filter)
	}
	for _, text := range r.Overridden {
		fmt.Fprintf(b, "# OVERRIDDEN: %s\n", text)
	}
	if len(r.Overridden) > 0 {
		return // most of what remains comes of that
	}
	for _, f := range r.Remaining {
		fmt.Fprintf(b, "# what it does not mend: %s\n", f.What)
		if f.Fix != "" {
			fmt.Fprintf(b, "#   -> %s\n", f.Fix)
		}
	}
}

func lineText(l eviction.Line) string {
	return fmt.Sprintf("%d every 10 s: %s", l.Times, l.Text)
}

// closing says what was done and what comes next.
func (o *kubeletConfigOptions) closing(r *kubeletConfigReport) string {
	next := strings.Join(r.Next, " && ")
	switch {
	case r.Refused != "" && o.write:
		return "" // the error says it
	case r.Refused != "" && r.Plan == nil && !o.undo:
		return ""
	case r.Refused != "":
		return "# nothing is written, and --write would be refused: " + r.Refused + "\n"
	case r.Written && o.undo:
		return "# removed; next: " + next + "\n"
	case r.Written && len(r.ByHand) > 0:
		return "# written; next: what is to be done by hand, and then " + next + "\n"
	case r.Written:
		return "# written; next: " + next + "\n"
	case !anyChange(r.Files) && len(r.ByHand) > 0:
		return "# nothing is written: it must be done by hand\n"
	case !anyChange(r.Files):
		return "# nothing to do\n"
	case o.dryRun && o.write:
		return "# nothing is written (--dry-run)\n"
	}
	return "# nothing is written; --write (as root) does it\n"
}
