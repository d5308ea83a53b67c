package etcdapi

import (
	"fmt"
	"testing"

	"github.com/tarn-kv/tarn/store"
)

// A reader that begins in the past, or has fallen behind, gets its events as one that is up to date does.
func TestEventReaderOfTheHistory(t *testing.T) {
	k := newKVTest(t, Config{})
	first := k.put("a", "1")
	k.put("a", "2")
	k.del("a", "")
	r := k.s.newEventReader()
	defer r.close()
	if err := r.watch(store.WatchRequest{KeyRange: store.KeyRange{Key: []byte("a")}, Start: first}); err != nil {
		t.Fatal(err)
	}
	var got []string
	read := func(n int) {
		for len(got) < n {
			m, err := r.next(k.ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range m.Events {
				kv, err := keyValue(e)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprintf("%s=%s@%d deleted %v", kv.Key, kv.Value, e.Revision(), e.IsDelete()))
			}
		}
	}
	read(3)
	k.put("a", "4") // and not from the history
	read(4)
	want := "[a=1@2 deleted false a=2@3 deleted false a=@4 deleted true a=4@5 deleted false]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
