package zfs

import (
	"context"
	"slices"
	"strings"
)

// Rights are what a user may do with a dataset itself, and with what is below it,
// which includes its snapshots.
type Rights struct{ Local, Below []string }

// BackupRights are what taking, holding, sending and destroying snapshots needs.
//
// ZFS has one right, destroy, for snapshots, bookmarks and datasets, and wants mount beside it
// for snapshots and datasets. For a snapshot it looks at the rights below, for a bookmark and a
// dataset at the local ones. So with destroy and mount below, and destroy without mount here,
// snapshots and bookmarks can be destroyed, and the dataset can not, mounted or not.
var BackupRights = Rights{
	Local: []string{"bookmark", "destroy", "hold", "release", "snapshot", "userprop"},
	Below: []string{"destroy", "mount", "send", "userprop"},
}

// readRights reads what a user was given on the dataset itself.
func readRights(ctx context.Context, dataset, user string) (Rights, error) {
	lines, err := output(ctx, "zfs", "allow", dataset)
	if err != nil {
		return Rights{}, err
	}
	return parseRights(lines, dataset, user), nil
}

// parseRights reads what zfs allow prints: for the dataset and each one above it a heading, then kinds
// of rights, then a line for each user.
func parseRights(lines [][]string, dataset, user string) (r Rights) {
	here, local, below := false, false, false
	for _, f := range lines {
		line := strings.Join(f, "\t")
		switch {
		case strings.HasPrefix(line, "---- "):
			here = strings.HasPrefix(line, "---- Permissions on "+dataset+" -")
		case !strings.HasPrefix(line, "\t"):
			local = line == "Local permissions:" || line == "Local+Descendent permissions:"
			below = line == "Descendent permissions:" || line == "Local+Descendent permissions:"
		case here:
			rights, ok := strings.CutPrefix(line, "\tuser "+user+" ")
			if ok && local {
				r.Local = append(r.Local, strings.Split(rights, ",")...)
			}
			if ok && below {
				r.Below = append(r.Below, strings.Split(rights, ",")...)
			}
		}
	}
	slices.Sort(r.Local)
	slices.Sort(r.Below)
	return r
}

// planRights gives what is missing. More than that is only taken by a reset: somebody gave it on purpose.
func (s Setup) planRights(p *SetupPlan, state SetupState) {
	if s.BackupUser == "" {
		return
	}
	for _, part := range []struct{ flag, what, has, want string }{
		{"-l", "what " + s.BackupUser + " may do with the dataset", strings.Join(state.Rights.Local, ","), strings.Join(BackupRights.Local, ",")},
		{"-d", "what " + s.BackupUser + " may do with its snapshots", strings.Join(state.Rights.Below, ","), strings.Join(BackupRights.Below, ",")},
	} {
		missing, more := without(part.want, part.has), without(part.has, part.want)
		differs := Difference{part.what, orNothing(part.has), part.want}
		first := !state.Done()
		if !s.Reset && (more != "" || missing != "" && !first) {
			p.Differs = append(p.Differs, differs)
		}
		if missing != "" && (first || s.Reset) {
			p.Rights = append(p.Rights, []string{"zfs", "allow", part.flag, "-u", s.BackupUser, missing, s.Dataset})
		}
		if more != "" && s.Reset {
			p.Rights = append(p.Rights, []string{"zfs", "unallow", part.flag, "-u", s.BackupUser, more, s.Dataset})
		}
	}
}

// without is what list a has and list b has not.
func without(a, b string) string {
	others := strings.Split(b, ",")
	return strings.Join(slices.DeleteFunc(strings.Split(a, ","), func(s string) bool { return slices.Contains(others, s) }), ",")
}
