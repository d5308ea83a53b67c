package tree

import (
	"errors"
	"os"
	"testing"
)

// Each of the two meta pages of a file that was just made is enough: of a new one, and of
// the copy that Defragment makes.
func TestOneMetaPageIsEnough(t *testing.T) {
	for _, meta := range []int64{0, 1} {
		for name, prepare := range map[string]func(t *testing.T, tr *Tree){
			"new":          func(*testing.T, *Tree) {},
			"defragmented": func(t *testing.T, tr *Tree) { must(t, tr.Defragment(t.Context())) },
		} {
			t.Run(name, func(t *testing.T) {
				path := testPath(t)
				tr := openTest(t, Options{Path: path})
				size := int64(tr.handle.db.Info().PageSize)
				if name != "new" {
					apply(t, tr, &Batch{Put: puts(2, 100, 100)})
				}
				prepare(t, tr)
				must(t, tr.Close())
				flip(t, path, meta*size+pageHeaderLen+20)
				tr, err := Open(Options{Path: path})
				must(t, err)
				defer tr.Close()
				v := tr.View()
				defer v.Close()
				if _, ok := v.Get(Revision{Main: 101}); ok != (name != "new") || v.Err() != nil {
					t.Errorf("the last record is there: %v, %v", ok, v.Err())
				}
			})
		}
	}
}

// A file of which the newer meta page is damaged, and the other one is from before the first
// transaction, is not another program's.
func TestDamagedMetaOfAFreshFile(t *testing.T) {
	path := testPath(t)
	h, err := openHandle(path, Options{Path: path}.withDefaults(), modeCreate)
	must(t, err)
	must(t, h.db.Update(createBuckets)) // transaction 2: the first meta page
	h.release()
	flip(t, path, pageHeaderLen+20)
	if _, err := Open(Options{Path: path}); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

// flip changes one bit of a file.
func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	b := make([]byte, 1)
	_, err = f.ReadAt(b, at)
	must(t, err)
	b[0] ^= 1
	_, err = f.WriteAt(b, at)
	must(t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
