package tree

import (
	"errors"
	"os"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedFileIsRefused(t *testing.T) {
	path := testPath(t)
	tr := openTest(t, Options{Path: path, PageSize: 4096})
	for i := range int64(5) {
		apply(t, tr, &Batch{Put: puts(2+100*i, 100, 1000), Seq: new(uint64(i))})
	}
	copyTo(t, tr, path+".copy")
	tr.Close()
	whole, err := os.ReadFile(path + ".copy")
	if err != nil {
		t.Fatal(err)
	}
	edit := func(fn func(b []byte) []byte) []byte { return fn(append([]byte(nil), whole...)) }
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"empty":       {nil, ErrDamaged},
		"text":        {[]byte(strings.Repeat("not a database\n", 1000)), ErrDamaged},
		"zeros":       {make([]byte, len(whole)), ErrDamaged},
		"both metas":  {edit(func(b []byte) []byte { clear(b[:8192]); return b }), ErrDamaged},
		"cut in half": {edit(func(b []byte) []byte { return b[:len(b)/2/4096*4096] }), ErrDamaged},
		"only metas":  {whole[:8192], ErrDamaged},
		"one page":    {whole[:4096], ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			path := testPath(t)
			writeFile(t, path, c.data)
			for _, readOnly := range []bool{true, false} {
				tr, err := Open(Options{Path: path, ReadOnly: readOnly})
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), path) {
					t.Fatalf("Open: %v, %v", tr, err)
				}
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != string(c.data) {
				t.Errorf("Open changed the file: %v", err)
			}
			// Nothing holds the lock.
			writeFile(t, path, whole)
			tr := openTest(t, Options{Path: path})
			noFindings(t, tr)
		})
	}
	t.Run("one meta", func(t *testing.T) {
		path := testPath(t)
		writeFile(t, path, edit(func(b []byte) []byte { clear(b[:4096]); return b }))
		tr := openTest(t, Options{Path: path})
		if len(readContent(t, tr)) != 500 {
			t.Error("records are missing")
		}
	})
}

func TestForeignFileIsRefused(t *testing.T) {
	path := testPath(t)
	inBolt(t, path, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("other")); return err })
	if _, err := Open(Options{Path: path}); !errors.Is(err, ErrForeign) {
		t.Errorf("another program's file: %v", err)
	}
}

// Each page in turn is overwritten: nothing may crash, and what is read wrongly is
// said to be damaged.
func TestDamagedPages(t *testing.T) {
	rnd := seeded(t)
	path := testPath(t)
	tr := openTest(t, Options{Path: path, PageSize: 4096})
	h := newHistory(rnd)
	for range 5 {
		apply(t, tr, h.batch(30))
	}
	copyTo(t, tr, path+".copy")
	tr.Close()
	whole, err := os.ReadFile(path + ".copy")
	if err != nil {
		t.Fatal(err)
	}
	noticed := 0
	for page := 2; page < len(whole)/4096; page++ {
		b := append([]byte(nil), whole...)
		target := b[page*4096 : (page+1)*4096]
		switch rnd.IntN(3) {
		case 0:
			clear(target)
		case 1:
			for i := range target {
				target[i] = byte(rnd.Uint32())
			}
		case 2: // the header of the page and its first elements
			for range 4 {
				target[8+rnd.IntN(100)] ^= 1 << rnd.IntN(8)
			}
		}
		writeFile(t, path, b)
		if readDamaged(t, path, h) {
			noticed++
		}
	}
	if noticed == 0 {
		t.Error("no damage was noticed")
	}
	t.Logf("noticed %d of %d damaged pages", noticed, len(whole)/4096-2)
}

// readDamaged opens, checks and reads a file. What Check finds good must be readable.
func readDamaged(t *testing.T, path string, h *history) (noticed bool) {
	tr, err := Open(Options{Path: path})
	if err != nil {
		return true
	}
	defer tr.Close()
	found := findings(t, tr)
	v := tr.View()
	for _, k := range h.order {
		if rev, dead, _ := ParseKey([]byte(k)); !dead {
			if _, ok := v.Get(rev); !ok && len(found) == 0 && v.Err() != nil {
				t.Errorf("Get(%v): %v", rev, v.Err())
			}
		}
	}
	v.Close()
	v = tr.View()
	defer v.Close()
	err = v.Scan(Revision{}, func(Revision, bool, []byte) bool { return true })
	_, hashErr := tr.Hash(t.Context())
	for _, err := range []error{err, hashErr} {
		if err != nil && (len(found) == 0 || !errors.Is(err, ErrDamaged)) {
			t.Errorf("%d findings, but %v", len(found), err)
		}
	}
	return len(found) > 0
}
