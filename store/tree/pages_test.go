package tree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// TestPagesOfGoodFiles puts, deletes and nests at random: what bbolt writes is always good.
func TestPagesOfGoodFiles(t *testing.T) {
	rnd := seeded(t)
	for _, noList := range []bool{false, true} {
		db, err := bolt.Open(testPath(t), 0o600, &bolt.Options{PageSize: 1024, NoSync: true, NoFreelistSync: noList})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		change := func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(fmt.Appendf(nil, "bucket-%d", rnd.IntN(3)))
			if err != nil {
				return err
			}
			for rnd.IntN(3) == 0 {
				if b, err = b.CreateBucketIfNotExists(fmt.Appendf(nil, "inner-%d", rnd.IntN(3))); err != nil {
					return err
				}
			}
			deleting := rnd.IntN(2) == 0
			for range 1 + rnd.IntN(100) {
				k := fmt.Appendf(nil, "key-%d", rnd.IntN(2000))
				if deleting {
					err = b.Delete(k)
				} else {
					err = b.Put(k, make([]byte, rnd.IntN(20)*rnd.IntN(200)))
				}
				if err != nil {
					return err
				}
			}
			return nil
		}
		for i := range 400 {
			if err := db.Update(change); err != nil {
				t.Fatal(err)
			}
			if i%5 > 0 {
				continue
			}
			f := openFile(t, db.Path())
			if damage, err := firstDamage(f, false); damage != "" || err != nil {
				t.Fatalf("transaction %d: %s, %v", i, damage, err)
			}
			f.Close()
		}
	}
}

// pagesOf are the pages of a file of bbolt's that has several levels, by their kinds.
type pagesOf struct {
	file                           []byte
	branch, leaf, free, list, meta int // a page of each; meta is the newer one
}

const smallPage = 1024

func makePages(t *testing.T) pagesOf {
	path := testPath(t)
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: smallPage, FreelistType: bolt.FreelistArrayType})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i := range 3 {
		err := db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("key"))
			for k := range 100 {
				err = errors.Join(err, b.Put(fmt.Appendf(nil, "key-%03d", 10*k+i), make([]byte, 50)))
			}
			_, more := tx.CreateBucketIfNotExists([]byte("meta"))
			return errors.Join(err, more)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var p pagesOf
	err = db.View(func(tx *bolt.Tx) error {
		p.meta = tx.ID() % 2
		for id := 2; ; id++ {
			info, err := tx.Page(id)
			if err != nil || info == nil {
				return err
			}
			switch info.Type {
			case "branch":
				p.branch = id
			case "leaf":
				if info.Count > 3 {
					p.leaf = id
				}
			case "free":
				p.free = id
			case "freelist":
				p.list = id
			}
		}
	})
	if err != nil || p.branch*p.leaf*p.free*p.list == 0 {
		t.Fatalf("%v: the test wants one of each kind: %+v", err, p)
	}
	if p.file, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p pagesOf) at(page, offset int) []byte { return p.file[page*smallPage+offset:] }

// resum makes the checksum of the newer meta page right.
func (p pagesOf) resum() {
	body := p.at(p.meta, pageHeaderLen)[:metaLen]
	sum := fnv.New64a()
	sum.Write(body[:metaLen-8])
	binary.NativeEndian.PutUint64(body[metaLen-8:], sum.Sum64())
}

// TestBadPages has what makes bbolt panic, read outside the file, run for ever, or write over
// what is in use: it must be found before bbolt sees the file.
func TestBadPages(t *testing.T) {
	put := binary.NativeEndian.PutUint64
	firstKey := func(p pagesOf, page, element int) []byte { // of a branch
		e := p.at(page, pageHeaderLen+element*elementLen)
		return e[binary.NativeEndian.Uint32(e):][:binary.NativeEndian.Uint32(e[4:])]
	}
	for name, c := range map[string]struct {
		harm func(p pagesOf)
		want string
	}{
		"nothing":                 {func(pagesOf) {}, ""},
		"a circle":                {func(p pagesOf) { put(p.at(p.branch, pageHeaderLen+8), uint64(p.branch)) }, "by another one as well"},
		"a page outside":          {func(p pagesOf) { put(p.at(p.branch, pageHeaderLen+8), 1<<40) }, "no such page"},
		"a meta page":             {func(p pagesOf) { put(p.at(p.branch, pageHeaderLen+8), 1) }, "no such page"},
		"a branch of one page":    {func(p pagesOf) { copy(p.at(p.branch, 10)[:2], []byte{1, 0}) }, "points at 1 pages"},
		"a branch of nothing":     {func(p pagesOf) { clear(p.at(p.branch, 10)[:2]) }, "points at 0 pages"},
		"a branch's key":          {func(p pagesOf) { k := firstKey(p, p.branch, 1); k[len(k)-1]-- }, "out of order"},
		"an empty leaf":           {func(p pagesOf) { clear(p.at(p.leaf, 10)[:2]) }, "is empty"},
		"another page":            {func(p pagesOf) { put(p.at(p.leaf, 0), 99) }, "it is page 99"},
		"a type":                  {func(p pagesOf) { p.at(p.leaf, 8)[0] = flagFreelist }, "no page of records"},
		"too long":                {func(p pagesOf) { p.at(p.leaf, 12)[2] = 1 }, "pages long"},
		"too many elements":       {func(p pagesOf) { p.at(p.leaf, 11)[0] = 1 }, "no room for"},
		"an element outside":      {func(p pagesOf) { p.at(p.leaf, pageHeaderLen+12)[2] = 1 }, "outside the page"},
		"an element in the table": {func(p pagesOf) { p.at(p.leaf, pageHeaderLen+4)[0] = 0 }, "overlaps"},
		"an element without key":  {func(p pagesOf) { clear(p.at(p.leaf, pageHeaderLen+elementLen+8)[:4]) }, "has no key"},
		"a key out of order": {func(p pagesOf) {
			e := p.at(p.leaf, pageHeaderLen+elementLen)
			e[binary.NativeEndian.Uint32(e[4:])] = 'z'
		}, "out of order"},
		"a record that is a type":    {func(p pagesOf) { p.at(p.leaf, pageHeaderLen)[0] = 2 }, "can not be of type"},
		"a record that is no bucket": {func(p pagesOf) { p.at(p.leaf, pageHeaderLen)[0] = flagBucket }, "bucket"},
		"a free page in use":         {func(p pagesOf) { put(p.at(p.list, pageHeaderLen), uint64(p.leaf)) }, "is in use"},
		"a free page outside":        {func(p pagesOf) { put(p.at(p.list, pageHeaderLen), 1<<40) }, "there is no page"},
		"a free page twice":          {func(p pagesOf) { copy(p.at(p.list, pageHeaderLen)[:8], p.at(p.list, pageHeaderLen+8)) }, "twice"},
		"a long free list":           {func(p pagesOf) { p.at(p.list, 11)[0] = 9 }, "no room for"},
		"a very long free list": {func(p pagesOf) {
			binary.NativeEndian.PutUint16(p.at(p.list, 10), 0xFFFF)
			put(p.at(p.list, pageHeaderLen), 1<<60)
		}, "no room for"},
		"a free list of records": {func(p pagesOf) { put(p.at(p.meta, pageHeaderLen+32), uint64(p.leaf)); p.resum() }, "by another one as well"},
		"no root":                {func(p pagesOf) { put(p.at(p.meta, pageHeaderLen+16), 0); p.resum() }, "no such page"},
		"too many pages":         {func(p pagesOf) { put(p.at(p.meta, pageHeaderLen+40), 1<<50); p.resum() }, "cut off"},
		"a last transaction":     {func(p pagesOf) { put(p.at(p.meta, pageHeaderLen+48), math.MaxUint64-1); p.resum() }, "numbered up to"},
		"a page size":            {func(p pagesOf) { p.at(p.meta, pageHeaderLen+8)[1] = 8; p.resum() }, "of 2048"},
	} {
		t.Run(name, func(t *testing.T) {
			p := makePages(t)
			c.harm(p)
			path := testPath(t)
			writeFile(t, path, p.file)
			damage, err := firstDamage(openFile(t, path), false)
			if err != nil {
				t.Fatal(err)
			}
			if (c.want == "") != (damage == "") || !strings.Contains(damage, c.want) {
				t.Errorf("found %q, want %q", damage, c.want)
			}
			if _, err := Open(Options{Path: path}); c.want != "" && !errors.Is(err, ErrDamaged) {
				t.Errorf("Open: %v", err)
			}
			if now, err := os.ReadFile(path); err != nil || string(now) != string(p.file) {
				t.Errorf("Open changed the file (%v)", err)
			}
		})
	}
}

// TestDeepPages has pages that each point at the next one: no memory is enough to
// follow a long chain.
func TestDeepPages(t *testing.T) {
	p := makePages(t)
	size := uint64(len(p.file)) / smallPage
	const depth = 3000
	for i := range uint64(depth) {
		// The second one bounds the first one's page, and is not looked at before that.
		keys := []string{"key-000", fmt.Sprintf("key-000-%04d", depth-i)}
		page := make([]byte, smallPage)
		binary.NativeEndian.PutUint64(page, size+i)
		page[8], page[10] = flagBranch, byte(len(keys))
		at := pageHeaderLen + len(keys)*elementLen
		for k, key := range keys {
			e := page[pageHeaderLen+k*elementLen:]
			binary.NativeEndian.PutUint32(e, uint32(at-pageHeaderLen-k*elementLen))
			binary.NativeEndian.PutUint32(e[4:], uint32(len(key)))
			binary.NativeEndian.PutUint64(e[8:], size+i+1)
			at += copy(page[at:], key)
		}
		p.file = append(p.file, page...)
	}
	binary.NativeEndian.PutUint64(p.at(p.branch, pageHeaderLen+8), size)
	binary.NativeEndian.PutUint64(p.at(p.meta, pageHeaderLen+40), size+depth)
	p.resum()
	path := testPath(t)
	writeFile(t, path, p.file)
	if _, err := Open(Options{Path: path}); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "away from the first one") {
		t.Errorf("got %v", err)
	}
}
