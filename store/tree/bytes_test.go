package tree

import (
	"fmt"
	"testing"
)

// written returns how many bytes of pages fn has the tree write.
func written(tr *Tree, fn func()) int64 {
	before := tr.handle.db.Stats().TxStats
	fn()
	after := tr.handle.db.Stats().TxStats
	return after.GetPageAlloc() - before.GetPageAlloc()
}

// A checkpoint writes each record once, and little beside it: what is in the tree before is not
// written again. The rest is what is left empty at the ends of pages.
func TestApplyWritesRecordsOnce(t *testing.T) {
	for size, most := range map[int]float64{360: 1.2, 1000: 1.4, 10_300: 1.25} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			tr := openTest(t, Options{Path: testPath(t), PageSize: 4096})
			count := 4 << 20 / size
			rev := int64(2)
			for round := range 3 {
				batch := puts(rev, count, size)
				rev += int64(count)
				records := 0
				for _, r := range batch {
					records += len(r.Value)
				}
				n := written(tr, func() { apply(t, tr, &Batch{Put: batch}) })
				if ratio := float64(n) / float64(records); ratio > most || ratio < 1 {
					t.Errorf("round %d: %d bytes written for records of %d, that is %.2f for each", round, n, records, ratio)
				}
			}
		})
	}
}

// A step of a compaction does not write the list of all pages that are free by then; what comes
// after the last step does, so that they can be given back.
func TestMoreLeavesOutTheFreeList(t *testing.T) {
	path := testPath(t)
	tr := openTest(t, Options{Path: path, PageSize: 4096})
	tr.giving = eagerGiving
	records := puts(2, 20_000, 1000)
	apply(t, tr, &Batch{Put: records})
	dead := func(from, to int) (out []DeadRecord) {
		for _, r := range records[from:to] {
			out = append(out, DeadRecord{Rev: r.Rev})
		}
		return out
	}
	apply(t, tr, &Batch{Delete: dead(0, 15_000)})
	n := written(tr, func() { apply(t, tr, &Batch{Delete: dead(15_000, 15_100), More: true}) })
	if n > 40<<10 {
		t.Errorf("%d bytes were written to remove 100 records that lie together", n)
	}
	want := readContent(t, tr)
	must(t, tr.Close())
	tr = openTest(t, Options{Path: path}) // as after a crash between two steps
	tr.giving = eagerGiving
	readContent(t, tr).equal(t, want)
	noFindings(t, tr)
	apply(t, tr, &Batch{Delete: dead(15_100, 15_200)})
	if given, err := giveAllBack(tr); err != nil || given < 10<<20 && !tr.noHoles {
		t.Errorf("%d bytes were given back, %v", given, err)
	}
	noFindings(t, tr)
}
