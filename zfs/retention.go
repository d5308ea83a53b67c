package zfs

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rules say how many snapshots to keep. Each of them keeps by count and by age:
//
//   - Last keeps the newest ones. The newest of all is kept even if Last is 0.
//     What a restore has set aside (IsSafety) does not count.
//   - Hourly, Daily, Weekly and Monthly keep the newest snapshot of each hour, day,
//     week (from Monday) or month, in UTC: for so many of these that have snapshots,
//     and for so many up to now, whether they have any or not.
//
// What several rules keep counts for each of them.
type Rules struct {
	Last, Hourly, Daily, Weekly, Monthly int
}

// DefaultRules are those to use when nobody has given others: close together for
// the last two days, and a year of months.
func DefaultRules() Rules { return Rules{Last: 10, Hourly: 48, Daily: 14, Weekly: 8, Monthly: 12} }

// Decision is what the rules say about one snapshot.
type Decision struct {
	Snapshot Snapshot
	Keep     bool
	// Reasons are why it is kept, in words. There are none if it is not.
	Reasons []string
}

// period is one of the rules that divide time.
type period struct {
	name string
	keep int
	of   func(time.Time) int64 // the number of the hour, day …, which rises by 1 with each
	text func(time.Time) string
}

func (r Rules) periods() []period {
	format := func(layout string) func(time.Time) string {
		return func(t time.Time) string { return t.Format(layout) }
	}
	const hour, day = 3600, 24 * 3600
	return []period{
		{"hourly", r.Hourly, func(t time.Time) int64 { return floorDiv(t.Unix(), hour) }, format("2006-01-02 15h")},
		{"daily", r.Daily, func(t time.Time) int64 { return floorDiv(t.Unix(), day) }, format("2006-01-02")},
		// 1970 began on a Thursday.
		{"weekly", r.Weekly, func(t time.Time) int64 { return floorDiv(floorDiv(t.Unix(), day)+3, 7) }, func(t time.Time) string {
			year, week := t.ISOWeek()
			return fmt.Sprintf("%d week %d", year, week)
		}},
		{"monthly", r.Monthly, func(t time.Time) int64 { return int64(t.Year())*12 + int64(t.Month()) }, format("2006-01")},
	}
}

func floorDiv(n, by int64) int64 {
	q := n / by
	if n%by < 0 {
		q--
	}
	return q
}

// Apply decides about the snapshots of one dataset. It returns a decision for
// each, in the order in which they were made. now is what the clock says. One whose
// description is damaged is kept, and counts for no rule.
//
// Clocks jump, so the rules trust them no further than they must. Which snapshot is
// newer is told by the order in which they were made. A clock that went ahead makes
// everything look old: that is why rules count, and not only look at the age. One
// that went back makes a snapshot's time one of the future, which counts as now; what
// was made while it was back does not take the place of what was made before; and
// what was made before and after such a step never shares an hour or a day, even if
// the times do, so neither stands in for the other. Where a clock was wrong, more is
// kept, not less.
func (r Rules) Apply(now time.Time, snaps []Snapshot) []Decision {
	// One whose description is damaged can hold anything, and stands in for none.
	newest := slices.DeleteFunc(slices.Clone(snaps), func(s Snapshot) bool { return s.Problem != "" })
	slices.SortFunc(newest, func(a, b Snapshot) int { return byOrder(b, a) }) // the newest first
	decisions := make([]Decision, len(newest))
	ordinary := 0 // what a restore sets aside takes no place away
	for i, s := range newest {
		d := &decisions[i]
		d.Snapshot = s
		if last := max(r.Last, 1); i < last || !s.IsSafety() && ordinary < last {
			d.keep("last %d", last)
		}
		if !s.IsSafety() {
			ordinary++
		}
		if len(s.Holds) > 0 {
			d.keep("held with %s", strings.Join(s.Holds, ", "))
		}
		if len(s.Clones) > 0 {
			d.keep("origin of %s", strings.Join(s.Clones, ", "))
		}
	}
	// Whatever happens to the others, one that is known to be good stays.
	if i := slices.IndexFunc(newest, func(s Snapshot) bool { return s.Verified != nil }); i >= 0 {
		decisions[i].keep("newest verified")
	}
	for _, p := range r.periods() {
		if p.keep > 0 {
			p.apply(now.UTC(), decisions)
		}
	}
	for _, s := range snaps {
		if s.Problem != "" {
			d := Decision{Snapshot: s}
			d.keep("damaged description: only destroy with its name removes it")
			decisions = append(decisions, d)
		}
	}
	slices.SortFunc(decisions, func(a, b Decision) int { return byOrder(a.Snapshot, b.Snapshot) })
	return decisions
}

// apply keeps what one rule keeps, of decisions with the newest first.
func (p period) apply(now time.Time, decisions []Decision) {
	var newer []int64 // the periods of the snapshots so far, each once, in their order
	var before *Snapshot
	for i := range decisions {
		d := &decisions[i]
		t := d.Snapshot.Created.UTC()
		of := p.of(t)
		// The first of its period, counted from the newest. If it was made before
		// the next one and has a later time, the clock was set back in between, and
		// a new stretch of time begins.
		first := before == nil || t.After(before.Created) || of != p.of(before.Created.UTC())
		before = &d.Snapshot
		at, seen := slices.BinarySearch(newer, of)
		later := len(newer) - at // periods that are later by the order and by the clock
		if seen {
			later--
		} else {
			newer = slices.Insert(newer, at, of)
		}
		switch {
		case !first:
		case later < p.keep:
			d.keep("%s %s", p.name, p.text(t))
		case p.of(now)-of < int64(p.keep): // also if it is in the future
			d.keep("%s %s by age", p.name, p.text(t))
		}
	}
}

func (d *Decision) keep(format string, args ...any) {
	d.Keep = true
	d.Reasons = append(d.Reasons, fmt.Sprintf(format, args...))
}

// ClockNote tells a person that the clock, or that of the time when a snapshot was
// made, was wrong. "" if nothing shows it.
func ClockNote(now time.Time, snaps []Snapshot) string {
	const slack = time.Hour // of two machines, or of a step at the start of one
	ahead := 0
	for _, s := range snaps {
		if s.Created.After(now.Add(slack)) {
			ahead++
		}
	}
	if ahead == 0 {
		return ""
	}
	return fmt.Sprintf("the clock says %s, and %d snapshot(s) were made later than that by their times: the clock is wrong, or was; "+
		"they count as made now", now.UTC().Format(time.RFC3339), ahead)
}
