package tree

import (
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// states are what a tree held after each change, for readers that see one of them.
type states struct {
	mu  sync.Mutex
	all []content
}

func (s *states) add(c content) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, maps.Clone(c))
}

func (s *states) since(n int) []content {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[n:]
}

// Changes, compactions, defragmentations and giving back at random, under readers that stay for
// some time: each sees all the time what there was when it began.
func TestGiveBackModel(t *testing.T) {
	rnd := seeded(t)
	tr := openTest(t, Options{Path: testPath(t), PageSize: 4096})
	tr.giving = eagerGiving
	h := newHistory(rnd)
	var past states
	past.add(content{})
	turns := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		seed := rnd.Uint64()
		readers.Go(func() { modelReader(t, tr, &past, turns, rand.New(rand.NewPCG(seed, 1))) })
	}
	var given int64
	held := 0
	for range 300 {
		switch n := rnd.IntN(20); {
		case n < 8:
			b := h.batch(1 + rnd.IntN(20))
			past.add(h.records)
			apply(t, tr, b)
		case n < 11:
			b := h.compaction()
			past.add(h.records)
			apply(t, tr, b)
		case n == 11 && rnd.IntN(10) == 0:
			if err := tr.Defragment(t.Context()); err != nil {
				t.Fatal(err)
			}
		case n == 12:
			noFindings(t, tr)
		default:
			sameFreePages(t, tr)
			sum, err := giveAllBack(tr)
			if given += sum; errors.Is(err, ErrPagesHeld) {
				held++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		select { // a reader takes a step, now and then
		case turns <- struct{}{}:
		default:
		}
	}
	close(turns)
	readers.Wait()
	sum, err := giveAllBack(tr)
	if given += sum; err != nil || given == 0 {
		t.Errorf("%d bytes were given back, %v", given, err)
	}
	t.Logf("%d bytes given back, held %d times", given, held)
	readContent(t, tr).equal(t, h.records)
	noFindings(t, tr)
}

// modelReader opens views and reads each several times.
func modelReader(t *testing.T, tr *Tree, past *states, turns <-chan struct{}, rnd *rand.Rand) {
	for range turns {
		from := max(0, len(past.since(0))-2) // the last one may not be there yet
		v := tr.View()
		first := viewContent(t, v)
		if !among(first, past.since(from)) {
			t.Error("a read sees what never was")
		}
		for range rnd.IntN(4) {
			if _, more := <-turns; !more {
				break
			}
			if !maps.Equal(first, viewContent(t, v)) {
				t.Error("a read sees something else than before")
			}
		}
		v.Close()
	}
}

func among(c content, all []content) bool {
	for _, s := range all {
		if maps.Equal(c, s) {
			return true
		}
	}
	return false
}

func viewContent(t *testing.T, v *View) content {
	c := content{}
	err := v.Scan(Revision{}, func(rev Revision, dead bool, value []byte) bool {
		c[string(rev.AppendKey(nil, dead))] = string(value)
		return true
	})
	if err != nil {
		t.Error(err)
	}
	return c
}

// sameFreePages compares the free pages that the file names with those that bbolt knows.
func sameFreePages(t *testing.T, tr *Tree) {
	t.Helper()
	tr.write.Lock()
	defer tr.write.Unlock()
	f, err := tr.handle.freeSpace()
	if err != nil {
		t.Fatal(err)
	}
	err = tr.handle.db.View(func(tx *bolt.Tx) error {
		if uint64(tx.ID()) != f.transaction {
			t.Errorf("transaction %d, want %d", f.transaction, tx.ID())
		}
		for id := range f.pages {
			info, err := tx.Page(int(id))
			if err != nil {
				return err
			}
			if free := info.Type == "free"; free != f.newest.has(id) || f.both.has(id) && !free {
				t.Errorf("page %d: free %v, newest %v, both %v", id, free, f.newest.has(id), f.both.has(id))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
