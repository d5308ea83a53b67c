package etcdapi

import (
	"log/slog"
	"testing"
	"time"
)

func TestProcessors(t *testing.T) {
	clock := time.Unix(0, 0)
	used := 4
	p := &processors{
		all: 4,
		set: func(n int) int { used, n = n, used; return n },
		now: func() time.Time { return clock },
		log: slog.New(slog.DiscardHandler),
	}
	p.since = clock
	requests := func(n int, each time.Duration) {
		for range n {
			clock = clock.Add(each)
			p.begin(1)
		}
	}
	for _, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"not before a stretch is over", func() { requests(stretch-1, time.Second) }, 4},
		{"few requests", func() { requests(1, time.Second) }, 1},
		{"neither few nor many", func() { requests(stretch, time.Second/50) }, 1},
		{"many requests", func() { requests(stretch, time.Second/200) }, 4},
		{"neither many nor few", func() { requests(stretch, time.Second/50) }, 4},
		{"few again", func() { requests(stretch, time.Second) }, 1},
		{"two at once", func() { p.begin(2) }, 1},
		{"three at once", func() { p.begin(3) }, 4},
		{"few after that", func() { requests(2*stretch, time.Second) }, 1},
		{"a large request", func() { p.widen() }, 4},
	} {
		if step.do(); used != step.want {
			t.Fatalf("%s: %d processors are used, want %d", step.name, used, step.want)
		}
	}
	p.widen()
	if requests(3*6, time.Second/3); used != 1 {
		t.Errorf("6 s of an idle cluster after a burst: %d processors are used", used)
	}
	var none *processors
	none.begin(5)
	none.widen()
}
