package tree

import (
	"errors"
	"os"
	"testing"
)

// TestReadStoreIDLooksAtNoRecords: a snapshot of a gigabyte has told its ID after reading all of it.
func TestReadStoreIDLooksAtNoRecords(t *testing.T) {
	p := makePages(t)
	path := testPath(t)
	for i := range pageHeaderLen {
		p.at(p.leaf, i)[0] = 0xff
	}
	writeFile(t, path, p.file)
	if _, err := Open(Options{Path: path, ReadOnly: true}); !errors.Is(err, ErrDamaged) {
		t.Fatalf("open: %v", err)
	}
	if id, err := ReadStoreID(path); err != nil || id != (StoreID{}) {
		t.Errorf("got %x, %v", id, err)
	}
	writeFile(t, path, p.file[:2*smallPage])
	if _, err := ReadStoreID(path); !errors.Is(err, ErrDamaged) {
		t.Errorf("cut off behind the meta pages: %v", err)
	}
	if _, err := ReadStoreID(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}
