package zfs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// made are snapshots with these times, in the order in which they were made.
func made(times ...string) (snaps []Snapshot) {
	for i, text := range times {
		t, err := time.Parse("2006-01-02T15:04", text)
		if err != nil {
			panic(err)
		}
		snaps = append(snaps, Snapshot{Name: fmt.Sprintf("%d", i), Created: t, Order: uint64(10 * (i + 1))})
	}
	return snaps
}

// kept are the places of the snapshots that are kept.
func kept(decisions []Decision) string {
	var names []string
	for _, d := range decisions {
		if d.Keep {
			names = append(names, d.Snapshot.Name)
		}
	}
	return strings.Join(names, " ")
}

func at(text string) time.Time { return made(text)[0].Created }

func TestRules(t *testing.T) {
	const now = "2026-11-30T12:00"
	for _, tt := range []struct {
		name  string
		rules Rules
		now   string
		times []string
		want  string
	}{
		{"nothing there", Rules{Last: 3}, now, nil, ""},
		{"no rules keep the newest", Rules{}, now, []string{"2020-01-01T00:00", "2020-01-02T00:00"}, "1"},
		{"last", Rules{Last: 2}, now, []string{"2026-11-30T10:00", "2026-11-30T10:01", "2026-11-30T10:02"}, "1 2"},
		{"hourly keeps the newest of each hour", Rules{Hourly: 2}, now,
			[]string{"2026-11-30T08:30", "2026-11-30T09:10", "2026-11-30T09:20", "2026-11-30T10:05", "2026-11-30T10:50"}, "2 4"},
		{"rules count hours that have snapshots", Rules{Hourly: 2}, now,
			[]string{"2025-01-01T01:00", "2025-01-05T01:00", "2025-01-09T01:00"}, "1 2"},
		{"daily", Rules{Daily: 2}, now,
			[]string{"2026-11-27T23:00", "2026-11-28T23:00", "2026-11-29T01:00", "2026-11-29T23:00", "2026-11-30T01:00"}, "3 4"},
		{"weeks begin on Monday", Rules{Weekly: 2}, now,
			[]string{"2026-11-15T10:00", "2026-11-16T10:00", "2026-11-22T10:00", "2026-11-23T10:00", "2026-11-29T10:00", "2026-11-29T23:59"}, "2 5"},
		{"a week can span a year", Rules{Weekly: 1}, "2027-01-02T00:00", []string{"2026-12-28T10:00", "2027-01-01T10:00"}, "1"},
		{"months", Rules{Monthly: 3}, now,
			[]string{"2026-08-31T10:00", "2026-09-01T10:00", "2026-09-30T10:00", "2026-10-01T10:00", "2026-11-01T10:00"}, "2 3 4"},
		{"rules add up", Rules{Last: 1, Daily: 2, Monthly: 2}, now,
			[]string{"2026-10-01T10:00", "2026-10-31T10:00", "2026-11-29T10:00", "2026-11-30T09:00", "2026-11-30T10:00"}, "1 2 4"},
		{"the clock went a year ahead: rules count", Rules{Daily: 3, Hourly: 2}, "2027-11-30T12:00",
			[]string{"2026-11-28T10:00", "2026-11-29T10:00", "2026-11-30T11:30", "2027-11-30T11:31"}, "1 2 3"},
		{"it went a year back: nothing is old", Rules{Daily: 1}, "2025-11-30T12:00",
			[]string{"2026-11-28T10:00", "2026-11-29T10:00", "2026-11-30T10:00", "2025-11-30T11:00"}, "0 1 2 3"},
		{"to and fro takes no places", Rules{Daily: 3}, "2027-11-30T12:00",
			[]string{"2026-11-29T10:00", "2026-11-30T10:00", "2027-11-30T10:00", "2026-11-30T11:00", "2027-11-30T11:00", "2026-11-30T12:00", "2027-11-30T12:00"},
			"0 1 2 3 4 5 6"},
		{"the same hour on both sides of a step", Rules{Hourly: 2}, now,
			[]string{"1970-01-01T00:00", "2026-11-30T10:00", "1970-01-01T00:00", "2026-11-30T11:00"}, "1 2 3"},
		{"a day that came twice is two days", Rules{Daily: 1}, "2026-11-30T09:30",
			[]string{"2026-11-30T08:00", "2026-11-30T10:00", "2026-11-30T09:00", "2026-11-30T09:10"}, "1 3"},
		{"what was made with the clock back takes no place", Rules{Hourly: 2}, "2030-01-01T00:00",
			[]string{"2026-11-30T10:00", "1970-01-01T00:00", "1971-01-01T00:00", "2026-11-30T11:00"}, "0 2 3"},
		{"by age, though the clock was ahead since", Rules{Daily: 2}, now,
			[]string{"2026-11-28T13:00", "2026-11-29T13:00", "2028-01-01T00:00", "2029-01-01T00:00", "2030-01-01T00:00", "2026-11-30T11:00"}, "1 2 3 4 5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			snaps := made(tt.times...)
			decisions := tt.rules.Apply(at(tt.now), snaps)
			if got := kept(decisions); got != tt.want {
				t.Errorf("kept %q, want %q", got, tt.want)
			}
			for i, d := range decisions {
				if d.Keep != (len(d.Reasons) > 0) {
					t.Errorf("%+v", d)
				}
				if d.Snapshot.Name != snaps[i].Name {
					t.Errorf("decision %d is about snapshot %s", i, d.Snapshot.Name)
				}
			}
		})
	}
}

func TestWhatKeepsInAnyCase(t *testing.T) {
	snaps := made("2020-01-01T00:00", "2020-01-02T00:00", "2020-01-03T00:00", "2020-01-04T00:00", "2020-01-05T00:00")
	snaps[0].Holds = []string{"keep", "tarn-push-1"}
	snaps[1].Clones = []string{"tank/x"}
	snaps[2].Verified = &Verification{}
	snaps[1].Verified = &Verification{} // but not the newest
	decisions := Rules{Last: 1}.Apply(at("2026-01-01T00:00"), snaps)
	want := []string{"held with keep, tarn-push-1", "origin of tank/x", "newest verified", "", "last 1"}
	for i, d := range decisions {
		if got := strings.Join(d.Reasons, "; "); got != want[i] {
			t.Errorf("%d: %q, want %q", i, got, want[i])
		}
	}
}

// The order of the list does not matter: the order in which they were made does.
// What a restore set aside is kept like others, and pushes out none that a person made.
func TestWhatARestoreSetAsideDoesNotCount(t *testing.T) {
	snaps := made("2026-11-30T10:00", "2026-11-30T10:01", "2026-11-30T10:02", "2026-11-30T10:03")
	snaps[3].Label = SafetyLabel + "x"
	if got := kept(Rules{Last: 2}.Apply(at("2026-11-30T12:00"), snaps)); got != "1 2 3" {
		t.Errorf("kept %s", got)
	}
}

func TestRulesSortThemselves(t *testing.T) {
	snaps := made("2026-11-30T10:00", "2026-11-30T11:00", "2026-11-30T12:00")
	slices.Reverse(snaps)
	if got := kept(Rules{Last: 2}.Apply(at("2026-11-30T12:00"), snaps)); got != "1 2" {
		t.Errorf("kept %q", got)
	}
}

func TestHugeRules(t *testing.T) {
	const many = 1<<31 - 1
	snaps := made("1970-01-01T00:00", "2000-01-01T00:00", "2000-01-01T00:01")
	if got := kept(Rules{Last: many, Hourly: many, Daily: many, Weekly: many, Monthly: many}.Apply(at("2026-11-30T12:00"), snaps)); got != "0 1 2" {
		t.Errorf("kept %q", got)
	}
}

func TestClockNote(t *testing.T) {
	snaps := made("2026-11-30T10:00", "2027-11-30T10:00")
	if got := ClockNote(at("2027-11-30T09:30"), snaps); got != "" {
		t.Error(got)
	}
	if got := ClockNote(at("2026-11-30T11:00"), snaps); !strings.Contains(got, "1 snapshot(s)") || !strings.Contains(got, "2026-11-30T11:00:00Z") {
		t.Error(got)
	}
}

// TestRulesWithARandomClock takes a snapshot and prunes, again and again, with a
// clock that is set to somewhere else now and then, and holds what is left
// against what really happened.
func TestRulesWithARandomClock(t *testing.T) {
	for range 8 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { pruneWithJumps(t, seed) })
	}
}

func pruneWithJumps(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	rules := Rules{Last: 1 + r.IntN(4), Hourly: r.IntN(30), Daily: 1 + r.IntN(10), Weekly: r.IntN(5), Monthly: r.IntN(13)}
	truth := at("2026-01-01T00:00")
	var offset time.Duration // of the clock
	offsets := []time.Duration{0, 365 * 24 * time.Hour, -365 * 24 * time.Hour, 3 * time.Hour, -50 * 365 * 24 * time.Hour}
	really := map[string]time.Time{}
	var snaps []Snapshot
	var everKept []string
	step := time.Duration(10+r.IntN(300)) * time.Minute
	jumps := 0
	for i := range 400 {
		truth = truth.Add(step/2 + time.Duration(r.Int64N(int64(step))))
		if r.IntN(60) == 0 {
			offset = offsets[r.IntN(len(offsets))]
			jumps++
		}
		s := Snapshot{Name: fmt.Sprint(i), Order: uint64(i + 1), Created: truth.Add(offset)}
		if r.IntN(200) == 0 {
			s.Holds = []string{"x"}
			everKept = append(everKept, s.Name)
		}
		really[s.Name] = truth
		snaps = append(snaps, s)
		var left []Snapshot
		for _, d := range rules.Apply(truth.Add(offset), snaps) {
			if d.Keep {
				left = append(left, d.Snapshot)
			}
		}
		// Each new snapshot can take the place of at most one for each rule, unless
		// the clock is right again and lets those go that it had kept by their age.
		if gone := len(snaps) - len(left); jumps == 0 && gone > 5 {
			t.Fatalf("step %d: %d snapshots go at once", i, gone)
		}
		if n := min(rules.Last, len(snaps)); !slices.Equal(names(left[len(left)-n:]), names(snaps[len(snaps)-n:])) {
			t.Fatalf("step %d: the newest %d are not all kept", i, n)
		}
		for _, name := range everKept {
			if !slices.Contains(names(left), name) {
				t.Fatalf("step %d: the held snapshot %s goes", i, name)
			}
		}
		snaps = left
		if jumps <= 2 {
			checkDays(t, i, rules.Daily, jumps, truth, snaps, really)
		}
	}
	// Not everything is kept for ever, though.
	if limit := 60 * (rules.Last + rules.Hourly + rules.Daily + rules.Weekly + rules.Monthly + jumps + len(everKept)); len(snaps) > limit {
		t.Errorf("%d snapshots are left of 400, with the rules %+v and %d jumps", len(snaps), rules, jumps)
	}
}

// checkDays wants a snapshot of each of the last real days. A step of the clock
// makes two days of one, each of which takes a place.
func checkDays(t *testing.T, step, daily, jumps int, truth time.Time, snaps []Snapshot, really map[string]time.Time) {
	t.Helper()
	days, all := map[string]bool{}, map[string]bool{}
	for _, s := range snaps {
		days[really[s.Name].Format(time.DateOnly)] = true
	}
	for _, when := range really {
		all[when.Format(time.DateOnly)] = true
	}
	// A clock that is ahead by some hours divides the days elsewhere, so the ends
	// of the stretch are left out.
	for back := 1; back < daily-2*jumps; back++ {
		if day := truth.AddDate(0, 0, -back).Format(time.DateOnly); all[day] && !days[day] {
			t.Fatalf("step %d: with %d jumps of the clock there is nothing left of %s, %d days before %v",
				step, jumps, day, back, truth)
		}
	}
}
