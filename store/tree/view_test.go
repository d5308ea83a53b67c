package tree

import (
	"slices"
	"testing"
)

func TestGetAgainstModel(t *testing.T) {
	rnd := seeded(t)
	h := newHistory(rnd)
	tr := openTest(t, Options{Path: testPath(t)})
	for range 10 {
		apply(t, tr, h.batch(50))
		apply(t, tr, h.compaction())
	}
	v := tr.View()
	defer v.Close()
	at := Revision{}
	for i := range 20000 {
		switch rnd.IntN(4) {
		case 0: // anywhere, also outside
			at = Revision{rnd.Int64N(h.rev + 10), rnd.Int64N(4)}
		case 1:
			at.Main += rnd.Int64N(11)
		case 2:
			at.Sub++
		case 3:
			at = Revision{max(0, at.Main-rnd.Int64N(5)), 0}
		}
		want, exists := h.records[string(at.AppendKey(nil, false))]
		if got, ok := v.Get(at); ok != exists || string(got) != want {
			t.Fatalf("step %d: Get(%v): %v, want %v", i, at, ok, exists)
		}
	}
	if v.Err() != nil {
		t.Fatal(v.Err())
	}
}

func TestScanAndLast(t *testing.T) {
	rnd := seeded(t)
	h := newHistory(rnd)
	tr := openTest(t, Options{Path: testPath(t)})
	empty := tr.View()
	if r, ok := empty.Last(); ok {
		t.Errorf("last of nothing: %v", r)
	}
	apply(t, tr, h.batch(300))
	if _, ok := empty.Last(); ok {
		t.Error("the view sees what came after it")
	}
	if _, ok := empty.Get(Revision{2, 0}); ok {
		t.Error("the view sees what came after it")
	}
	empty.Close()
	empty.Close()

	v := tr.View()
	defer v.Close()
	last, ok := v.Last()
	if want, _, _ := ParseKey([]byte(h.order[len(h.order)-1])); !ok || last != want {
		t.Errorf("last %v, %v; want %v", last, ok, want)
	}
	for range 50 {
		from := Revision{rnd.Int64N(h.rev + 2), rnd.Int64N(4)}
		limit := 1 + rnd.IntN(100)
		var got []string
		err := v.Scan(from, func(r Revision, dead bool, value []byte) bool {
			k := string(r.AppendKey(nil, dead))
			if h.records[k] != string(value) {
				t.Errorf("%v: wrong value", r)
			}
			got = append(got, k)
			return len(got) < limit
		})
		start, _ := slices.BinarySearch(h.order, string(from.AppendKey(nil, false)))
		want := h.order[start:min(start+limit, len(h.order))]
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("scan from %v: %d records, %v; want %d", from, len(got), err, len(want))
		}
	}
	if n := tr.OpenReads(); n != 1 {
		t.Errorf("%d open reads", n)
	}
}

func TestScanPassesForeignPanic(t *testing.T) {
	tr := openTest(t, Options{Path: testPath(t)})
	apply(t, tr, &Batch{Put: puts(2, 2, 1)})
	v := tr.View()
	defer v.Close()
	defer func() {
		if r := recover(); r != "mine" {
			t.Errorf("recovered %v", r)
		}
		if v.Err() != nil {
			t.Errorf("the view has %v", v.Err())
		}
	}()
	_ = v.Scan(Revision{}, func(Revision, bool, []byte) bool { panic("mine") })
}

// Letting go of the pages changes nothing that is read, also under an open view.
func TestLetGo(t *testing.T) {
	tr := openTest(t, Options{Path: testPath(t)})
	apply(t, tr, &Batch{Put: puts(1, 500, 100)})
	v := tr.View()
	defer v.Close()
	before, ok := v.Get(Revision{Main: 250})
	if !ok {
		t.Fatal("record is missing")
	}
	want := string(before)
	tr.LetGo()
	if string(before) != want {
		t.Error("bytes of an open view changed")
	}
	if after, ok := v.Get(Revision{Main: 251}); !ok || len(after) == 0 {
		t.Error("record is not there after LetGo")
	}
}
