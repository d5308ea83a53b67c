package main

import (
	"fmt"
	"io"
	"strings"
)

// brief prints what the kubelet's code made of the machine in a few lines, and the differences.
func (r *result) brief(out io.Writer) error {
	var b strings.Builder
	k := r.Kubelet
	for _, fs := range []struct {
		name string
		seen seen
	}{{"nodefs", k.NodeFS}, {"imagefs", k.ImageFS}} {
		fmt.Fprintf(&b, "%-8s %s on %s: ", fs.name, fs.seen.Path, fs.seen.Device)
		if fs.seen.Error != "" {
			fmt.Fprintln(&b, fs.seen.Error)
		} else {
			fmt.Fprintln(&b, "capacity, available, inodes, free inodes:", numbers(fs.seen.Stats))
		}
	}
	if k.StartError != "" {
		fmt.Fprintln(&b, "does not start:", k.StartError)
	}
	if o := k.Outcome; o != nil {
		for _, t := range o.Thresholds {
			if !t.Empty && t.Known {
				fmt.Fprintf(&b, "%-24s soft %-5t below %d\n", t.Signal, t.Soft, t.Quantity)
			}
		}
		for _, s := range r.Foretold.Signals {
			if s.FiresAt != nil && !s.Soft && !s.Derived {
				fmt.Fprintf(&b, "%-24s is to fire at %d available\n", s.Name, *s.FiresAt)
			}
		}
		fmt.Fprintf(&b, "pressure %t, lines in a pass %v, two devices %t\n", o.DiskPressure, o.Lines, k.DedicatedImageFS)
	}
	for _, d := range r.Differences {
		fmt.Fprintln(&b, "DIFFERS:", d)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
