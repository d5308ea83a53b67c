package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// diffPrinter prints changes in the order of their keys.
type diffPrinter interface {
	begin(old, new comparedState) error
	change(change) error
	end() error
}

type diffJSON struct{ *json.Encoder }

func (diffJSON) begin(_, _ comparedState) error { return nil }
func (d *diffJSON) change(c change) error       { return d.Encode(c) }
func (diffJSON) end() error                     { return nil }

// diffText groups the changes by the types of the objects.
type diffText struct {
	out    io.Writer
	group  string
	any    bool
	all    bool // list restless types as well
	counts map[string]int
	quiet  []string // restless types, and how much of each differs
}

// restless are the types whose objects change while nothing happens.
var restless = []string{"events", "leases", "masterleases", "peerserverleases"}

func (d *diffText) begin(old, new comparedState) error {
	d.counts = map[string]int{}
	other := ""
	if old.ID() != new.ID() {
		other = "these are two different stores: their values are compared, not their revisions\n"
	}
	_, err := fmt.Fprintf(d.out, "from %s\nto   %s\n%s", old.text(), new.text(), other)
	return err
}

func (d *diffText) change(c change) error {
	d.counts[c.Change]++
	if !d.all && slices.Contains(restless, c.Type) {
		d.counts[c.Type]++
		if d.counts[c.Type] == 1 {
			d.quiet = append(d.quiet, c.Type)
		}
		return nil
	}
	var b strings.Builder
	if !d.any || c.Type != d.group {
		name := c.Type
		if name == "" {
			name = "other keys"
		}
		fmt.Fprintf(&b, "\n%s\n", printable(name))
		d.any, d.group = true, c.Type
	}
	object := printable(c.object())
	switch c.Change {
	case "added":
		fmt.Fprintf(&b, "  + %s\n", object)
	case "removed":
		fmt.Fprintf(&b, "  - %s\n", object)
	case "recreated":
		fmt.Fprintf(&b, "  ! %s\n", object)
	default:
		fmt.Fprintf(&b, "  ~ %s (version %d → %d)\n", object, c.Old.Version, c.New.Version)
	}
	_, err := io.WriteString(d.out, b.String())
	return err
}

func (d *diffText) end() error {
	if !d.any && len(d.quiet) == 0 {
		_, err := fmt.Fprintln(d.out, "\nno key differs")
		return err
	}
	if len(d.quiet) > 0 {
		var counts []string
		for _, name := range d.quiet {
			counts = append(counts, fmt.Sprintf("%s %d", name, d.counts[name]))
		}
		if _, err := fmt.Fprintf(d.out, "\nnot listed without --all: %s\n", strings.Join(counts, ", ")); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(d.out, "\n%d added, %d removed, %d changed, %d removed and made again\n",
		d.counts["added"], d.counts["removed"], d.counts["changed"], d.counts["recreated"])
	return err
}
