package tree

import (
	"bytes"
	"os"
	"testing"
)

func TestDamagedMeta(t *testing.T) {
	path := testPath(t)
	tr := openTest(t, Options{Path: path, PageSize: 4096})
	apply(t, tr, &Batch{Put: puts(2, 10, 10)})
	copyTo(t, tr, path+".copy") // as bbolt writes a copy
	must(t, tr.Close())
	for _, name := range []string{path, path + ".copy"} {
		for _, at := range []int64{-1, 0, 8, 16, 20, 24, 32, 64, 79, 4096, 4096 + 16, 4096 + 40, 4096 + 79} {
			if at >= 0 {
				flip(t, name, at)
			}
			tr, err := Open(Options{Path: name, ReadOnly: true})
			must(t, err)
			page, damaged, err := tr.DamagedMeta()
			must(t, err)
			if damaged != (at >= 0) || damaged && int64(page) != at/4096 {
				t.Errorf("byte %d of %s: page %d, %v", at, name, page, damaged)
			}
			must(t, tr.Close())
			if at >= 0 {
				flip(t, name, at)
			}
		}
	}
}

func TestIsDatabase(t *testing.T) {
	for _, size := range []int{1024, 4096, 65536} {
		path := testPath(t)
		must(t, openTest(t, Options{Path: path, PageSize: size}).Close())
		whole, err := os.ReadFile(path)
		must(t, err)
		one := bytes.Clone(whole)
		clear(one[:size])
		for name, c := range map[string]struct {
			content []byte
			want    bool
		}{"whole": {whole, true}, "first page lost": {one, true}, "short": {whole[:10], false}, "zeros": {make([]byte, 1<<20), false}} {
			if is, err := IsDatabase(bytes.NewReader(c.content)); is != c.want || err != nil {
				t.Errorf("pages of %d, %s: %v, %v", size, name, is, err)
			}
		}
	}
}
