package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func history() []event {
	return []event{{2, prefix + "0/0", "a"}, {3, prefix + "1/0", "b"}, {5, prefix + "0/0", "c"}, {6, fenceKey, "end"}, {7, fenceKey, "end"}}
}

// expect compares an error with a part of its text; "" is for none.
func expect(t *testing.T, err error, part string) {
	t.Helper()
	if part == "" && err != nil || part != "" && (err == nil || !strings.Contains(err.Error(), part)) {
		t.Errorf("got the error %v; it must have %q", err, part)
	}
}

func TestCheckHistory(t *testing.T) {
	acknowledged := func() map[int64]write {
		return map[int64]write{2: {2, prefix + "0/0", "a"}, 5: {5, prefix + "0/0", "c"}}
	}
	expect(t, checkHistory(history(), acknowledged()), "")
	expect(t, checkHistory(history()[1:], acknowledged()), "1 of 2 acknowledged writes are lost")
	other := acknowledged()
	other[2] = write{2, prefix + "0/0", "x"}
	expect(t, checkHistory(history(), other), "at revision 2")
	expect(t, checkHistory(append(history(), event{8, prefix + "0/1", "a"}), acknowledged()), "is there at revisions 2 and 8")
	expect(t, checkHistory(append(history(), event{7, prefix + "0/1", "z"}), acknowledged()), "revision 7 after 7")
}

func TestCheckWatch(t *testing.T) {
	h := history()
	of := func(events ...event) *watch { return &watch{prefix: prefix + "0/", from: 1, events: events} }
	expect(t, of(h[0], h[2]).check(h), "")
	expect(t, of(h[0]).check(h), "the first that is missing is of revision 5")
	expect(t, of(h[2]).check(h), "is of revision 5 instead of 2")
	expect(t, of(h[0], h[0], h[2]).check(h), "is of revision 2 instead of 5")
	expect(t, of(h[0], h[2], h[2]).check(h), "the first too many is of revision 5")
	expect(t, of(h[0], h[1], h[2]).check(h), "is of revision 3 instead of 5")
}

func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	for n := range int64(2) { // a second run adds to it
		j, err := openJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.add(write{n + 2, "key", "value"}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readJournal(path)
	if err != nil || len(got) != 2 || got[3] != (write{3, "key", "value"}) {
		t.Errorf("%v, %v", got, err)
	}
	j, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	j.add(write{2, "other", "value"})
	_, err = readJournal(path)
	expect(t, err, "acknowledged twice")
}
