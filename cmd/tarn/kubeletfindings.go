package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tarn-kv/tarn/zfs/eviction"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

// isUnseen tells whether a note says that something could not be looked at.
func isUnseen(n nodeconf.Note) bool {
	return n.Kind == nodeconf.Unreadable || n.Kind == nodeconf.NotFound
}

// noteSeverity is how grave a note is that is about what was seen.
func noteSeverity(kind nodeconf.NoteKind) string {
	switch kind {
	case nodeconf.Refused:
		return eviction.Critical
	case nodeconf.NoEffect, nodeconf.Dropped, nodeconf.Ignored, nodeconf.Leftover:
		return eviction.Warning
	}
	return eviction.Notice
}

// findings are what was found wrong with the node, the gravest first.
func (l *kubeletLook) findings() []eviction.Finding {
	all := []eviction.Finding{}
	for _, n := range l.node.Notes {
		if !isUnseen(n) {
			all = append(all, noteFinding(n))
		}
	}
	all = append(all, unknownFlags(l.node.Args)...)
	if l.report != nil {
		all = append(all, l.report.Findings...)
	}
	rank := []string{eviction.Critical, eviction.Warning, eviction.Notice}
	slices.SortStableFunc(all, func(a, b eviction.Finding) int {
		return cmp.Compare(slices.Index(rank, a.Severity), slices.Index(rank, b.Severity))
	})
	return all
}

// noteFinding is a note of the configuration in the form of the other findings.
func noteFinding(n nodeconf.Note) eviction.Finding {
	f := eviction.Finding{ID: "config-" + string(n.Kind), Severity: noteSeverity(n.Kind), Subject: n.File, Why: sentence(n.Text), Fix: sentence(n.Fix)}
	about := n.File
	switch {
	case n.Key != "" && n.File != "":
		about = n.Key + " in " + n.File
	case n.Key != "":
		about = n.Key
	}
	switch n.Kind {
	case nodeconf.Refused:
		f.What = "Something does not start: " + about + "."
	case nodeconf.NoEffect:
		f.What = about + " does not do what it says."
	case nodeconf.Dropped:
		f.What = about + " takes away what another file sets."
	case nodeconf.Ignored:
		f.What = about + " is not read."
	case nodeconf.Leftover:
		f.What = about + " is still in force."
	default:
		f.What = "There is more than one kubelet."
	}
	return f
}

// sentence makes half a sentence a whole one.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	first, rest := text[:1], text[1:]
	if first >= "a" && first <= "z" && !strings.HasPrefix(text, "k3s") {
		first = string(first[0] - 'a' + 'A')
	}
	return first + rest + "."
}
