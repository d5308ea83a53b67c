package store

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestHasDoubled(t *testing.T) {
	var keys, bytes growthMark
	for i, step := range []struct {
		now  int64
		want bool
	}{
		{50, false}, {100, false}, {101, true}, // from nothing
		{101, false}, {201, false}, {202, true}, {300, false}, {403, false}, {404, true}, // each doubling once
		{101, false}, {404, false}, {807, false}, {808, true}, // a fall to a quarter is no fall
		{10, false}, {90, false}, {101, true}, // a larger one is
	} {
		if got := bytes.hasDoubled(growthMark{1, step.now}, 100); got != step.want {
			t.Errorf("step %d: %d bytes: %v, mark %d", i, step.now, got, bytes)
		}
		if got := keys.hasDoubled(growthMark{step.now * largeKeys / 100, 100}, 100); got != step.want {
			t.Errorf("step %d: %d %% of a large number of keys: %v, mark %d", i, step.now, got, keys)
		}
	}
}

// grow puts keys until there are n in a prefix that ends in a slash.
func grow(t *testing.T, s *Store, prefix string, from, n int) {
	t.Helper()
	for from < n {
		var ops []Op
		for ; len(ops) < 1000 && from < n; from++ {
			ops = append(ops, putOp(fmt.Sprintf("%s%06d", prefix, from), "value"))
		}
		_, err := do(s, ops...)
		must(t, err)
	}
	must(t, s.Checkpoint(bg))
}

// One line is logged for a prefix that takes off, and says what to do; none for what is
// there at the start.
func TestWarnsOfGrowth(t *testing.T) {
	var log bytes.Buffer
	s := openStore(t, Options{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	warnings := func(want ...string) string {
		t.Helper()
		if n := strings.Count(log.String(), "has taken off"); n != min(1, len(want)) {
			t.Errorf("%d warnings: %s", n, &log)
		}
		for _, w := range want {
			if !strings.Contains(log.String(), w) {
				t.Errorf("no %s in %s", w, &log)
			}
		}
		text := log.String()
		log.Reset()
		return text
	}
	grow(t, s, "/registry/pods/", 0, 3000)
	warnings()
	grow(t, s, "/registry/g.io/wild/", 0, largeKeys)
	warnings()
	grow(t, s, "/registry/g.io/wild/", largeKeys, largeKeys+1)
	warnings("prefix=/registry/g.io/wild/", "keys=10001", "keys_were=0", "etcdctl del --range '/registry/g.io/wild/' KEY")
	grow(t, s, "/registry/g.io/wild/", largeKeys+1, 2*largeKeys)
	warnings()
	s = reopen(t, s)
	grow(t, s, "/registry/g.io/wild/", 2*largeKeys, 3*largeKeys)
	warnings()
	grow(t, s, "loose", 0, largeKeys+1)
	if text := warnings("prefix="+OtherKeys, "etcdctl get --keys-only"); strings.Contains(text, "etcdctl del") {
		t.Error("the line says how to delete keys of all prefixes")
	}
}

// A prefix that grows by updates alone is told as well: against the quota.
func TestWarnsOfManyVersions(t *testing.T) {
	var log bytes.Buffer
	s := openStore(t, Options{Dir: t.TempDir(), Quota: 2 << 20, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 25 {
		put(t, s, "/registry/leases/a", strings.Repeat("x", 10_000))
	}
	must(t, s.Checkpoint(bg))
	if !strings.Contains(log.String(), "prefix=/registry/leases/") {
		t.Errorf("no warning: %s", &log)
	}
}

func TestNoSpaceNamesLargestPrefixes(t *testing.T) {
	var log bytes.Buffer
	s := openStore(t, Options{Dir: t.TempDir(), Quota: 300_000, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	put(t, s, "/registry/pods/a", "small")
	for {
		if _, err := do(s, putOp("/registry/events/a", strings.Repeat("x", 10_000))); err != nil {
			wantErr(t, err, ErrNoSpace)
			break
		}
	}
	if text := log.String(); !strings.Contains(text, `largest="/registry/events/: 1 keys, `) || !strings.Contains(text, "/registry/pods/: 1 keys") {
		t.Error(text)
	}
	if all := s.Prefixes(); len(all) != 2 || all[0].Prefix != "/registry/events/" || all[0].Records < 10 {
		t.Errorf("while the store is full: %+v", all)
	}
}
