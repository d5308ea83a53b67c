package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// outcome is all that was measured of one workload.
type outcome struct {
	Workload string      `json:"workload"`
	About    string      `json:"about"`
	Servers  []string    `json:"servers"` // the first is the base of the ratios
	Turns    []turnState `json:"turns"`
}

// turnState is one server's turn in one round.
type turnState struct {
	Server    string    `json:"server"`
	Round     int       `json:"round"` // from 1
	Yardstick yardstick `json:"yardstick"`
	Seconds   float64   `json:"seconds"`
	Figures   []figure  `json:"figures"`
	Failures  []failure `json:"failures,omitempty"`
}

// failed tells whether something went wrong in any turn.
func (o *outcome) failed() bool {
	return slices.ContainsFunc(o.Turns, func(t turnState) bool {
		return slices.ContainsFunc(t.Failures, func(f failure) bool { return !f.NotOffered })
	})
}

// line names a line of the table.
type line struct{ Case, Figure string }

// lines returns the lines of the table, in the order in which they were measured.
func (o *outcome) lines() []line {
	var lines []line
	for _, t := range o.Turns {
		for _, f := range t.Figures {
			if l := (line{f.Case, f.Name}); !slices.Contains(lines, l) {
				lines = append(lines, l)
			}
		}
	}
	return lines
}

// value returns what a server had in a round, NaN if nothing.
func (o *outcome) value(l line, server string, round int) float64 {
	for _, t := range o.Turns {
		if t.Server != server || t.Round != round {
			continue
		}
		for _, f := range t.Figures {
			if f.Case == l.Case && f.Name == l.Figure {
				return f.Value
			}
		}
	}
	return math.NaN()
}

// failure returns what a server's cell of a case has instead of a value: "" if nothing
// went wrong. One failure in one round is enough.
func (o *outcome) failure(caseName, server string) string {
	word := ""
	for _, t := range o.Turns {
		for _, f := range t.Failures {
			if t.Server != server || f.Case != caseName && f.Case != "" {
				continue
			}
			if !f.NotOffered {
				return "failed"
			}
			word = "not offered"
		}
	}
	return word
}

// print writes the table.
func (o *outcome) print(out io.Writer) error {
	rounds := 0
	for _, t := range o.Turns {
		rounds = max(rounds, t.Round)
	}
	fmt.Fprintf(out, "\n%s: %s\n\n", o.Workload, o.About)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := []string{"", "", o.Servers[0]}
	for _, s := range o.Servers[1:] {
		head = append(head, s, s+" : "+o.Servers[0])
	}
	fmt.Fprintln(w, strings.Join(head, "\t"))
	last := ""
	for _, l := range o.lines() {
		cells := []string{l.Case, l.Figure}
		if l.Case == last {
			cells[0] = ""
		}
		last = l.Case
		for i, s := range o.Servers {
			cells = append(cells, o.cells(l, s, rounds, i > 0)...)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	o.printFailures(out)
	_, err := fmt.Fprintf(out, "machine: %s\n", o.machine())
	return err
}

// cells returns a server's value and, of all but the first, its ratio.
func (o *outcome) cells(l line, server string, rounds int, ratio bool) []string {
	var values, ratios []float64
	for r := 1; r <= rounds; r++ {
		v := o.value(l, server, r)
		if math.IsNaN(v) {
			continue
		}
		values = append(values, v)
		if q := v / o.value(l, o.Servers[0], r); !math.IsNaN(q) && !math.IsInf(q, 0) {
			ratios = append(ratios, q)
		}
	}
	cells := []string{"–", "–"}
	if word := o.failure(l.Case, server); word != "" {
		cells[0] = word
	} else if len(values) > 0 {
		cells[0] = short(median(values))
		if o.failure(l.Case, o.Servers[0]) == "" && len(ratios) > 0 {
			cells[1] = spread(ratios)
		}
	}
	if !ratio {
		return cells[:1]
	}
	return cells
}

func (o *outcome) printFailures(out io.Writer) {
	for _, t := range o.Turns {
		for _, f := range t.Failures {
			word := "FAILED"
			if f.NotOffered {
				word = "not offered"
			}
			fmt.Fprintf(out, "%s: %s, round %d, %s: %s\n", word, t.Server, t.Round, orElse(f.Case, "the whole turn"), f.Reason)
		}
	}
}

// machine returns the yardsticks.
func (o *outcome) machine() string {
	var spins, syncs []float64
	for _, t := range o.Turns {
		spins = append(spins, t.Yardstick.Spin)
		syncs = append(syncs, t.Yardstick.Sync)
	}
	return fmt.Sprintf("spin %s ms, fdatasync %s ms", spread(spins), spread(syncs))
}

// spread returns the median of values and, if there are more, their range.
func spread(values []float64) string {
	s := short(median(values))
	if len(values) > 1 {
		s += fmt.Sprintf(" (%s–%s)", short(slices.Min(values)), short(slices.Max(values)))
	}
	return s
}

// short writes a number with three digits that count.
func short(v float64) string {
	switch abs := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case abs >= 99.95 || v == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case abs >= 0.0995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
