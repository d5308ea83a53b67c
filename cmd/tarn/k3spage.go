package main

import (
	"fmt"
	"os"
	"strings"
)

// page is what tarn k3s setup prints. free tells that nothing forbids to write.
func (o *k3sSetupOptions) page(r k3sSetupReport, free bool) string {
	var b strings.Builder
	if err := printFindings(&b, r.Findings); err == nil && len(r.Findings) > 0 {
		b.WriteByte('\n')
	}
	for _, f := range r.Files {
		fmt.Fprintf(&b, "# %s: %s\n", f.name(), o.stateText(f))
		if f.changes() && f.State != fileUnseen {
			b.WriteString(lineDiff(f.before, f.Content))
			b.WriteByte('\n')
		}
	}
	b.WriteString(o.closing(r, free))
	return b.String()
}

func (o *k3sSetupOptions) stateText(f setupFile) string {
	if f.State == fileUnseen {
		return "can not be looked at by this user"
	}
	if text := f.State.text(); text != "" {
		return text
	}
	if f.Link != "" {
		return "not made by tarn k3s setup; only --force touches it, and replaces the link and not what it leads to"
	}
	return "not made by tarn k3s setup; only --force touches it"
}

// closing says what was done and what comes next.
func (o *k3sSetupOptions) closing(r k3sSetupReport, free bool) string {
	change := anyChange(r.Files)
	switch {
	case !free && o.write:
		return "" // the error says it
	case !free:
		return "# nothing is written: see above for what is in the way\n"
	case r.Written && o.undo:
		return "# removed; next: systemctl daemon-reload\n"
	case r.Written && !r.installed:
		return "# written; next: systemctl daemon-reload, and install k3s; then tarn doctor\n"
	case r.Written:
		return "# written; next: systemctl daemon-reload && systemctl restart k3s, and then tarn doctor\n"
	case !change:
		return "# nothing to do\n"
	}
	if os.Geteuid() == 0 || o.rootless {
		return "# nothing is written; --write does it\n"
	}
	return "# nothing is written; --write (as root) does it\n"
}
