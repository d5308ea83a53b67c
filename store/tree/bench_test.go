package tree

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

const benchRecords = 100_000

func benchTree(b *testing.B) *Tree {
	tr := openTest(b, Options{Path: testPath(b)})
	for first := 0; first < benchRecords; first += 10_000 {
		apply(b, tr, &Batch{Put: puts(int64(first+1), 10_000, 1000)})
	}
	b.ReportAllocs()
	b.ResetTimer()
	return tr
}

func benchGet(b *testing.B, next func(i int) int64) {
	v := benchTree(b).View()
	defer v.Close()
	for i := range b.N {
		if _, ok := v.Get(Revision{Main: next(i)}); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkGetRandom(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	benchGet(b, func(int) int64 { return 1 + rnd.Int64N(benchRecords) })
}

func BenchmarkGetInOrder(b *testing.B) {
	benchGet(b, func(i int) int64 { return 1 + int64(i)%benchRecords })
}

func BenchmarkGetEveryFourth(b *testing.B) {
	benchGet(b, func(i int) int64 { return 1 + int64(4*i)%benchRecords })
}

func BenchmarkViewGetClose(b *testing.B) {
	tr := benchTree(b)
	for i := range b.N {
		v := tr.View()
		if _, ok := v.Get(Revision{Main: 1 + int64(i)%benchRecords}); !ok {
			b.Fatal("not found")
		}
		v.Close()
	}
}

func BenchmarkScan100k(b *testing.B) {
	tr := benchTree(b)
	for range b.N {
		n := 0
		v := tr.View()
		err := v.Scan(Revision{}, func(_ Revision, _ bool, value []byte) bool {
			if kv, err := DecodeKV(value); err == nil && kv.Mod > 0 {
				n++
			}
			return true
		})
		v.Close()
		if err != nil || n != benchRecords {
			b.Fatalf("%d records, %v", n, err)
		}
	}
}

// BenchmarkApply1000 reports the bytes written for each byte of record.
func BenchmarkApply1000(b *testing.B) {
	tr := openTest(b, Options{Path: testPath(b)})
	b.ReportAllocs()
	before := writtenBytes()
	var rev, payload int64 = 1, 0
	b.ResetTimer()
	for range b.N {
		records := puts(rev, 1000, 1000)
		apply(b, tr, &Batch{Put: records, Seq: new(uint64(rev))})
		rev += 1000
		for _, r := range records {
			payload += int64(len(r.Value))
		}
	}
	if after := writtenBytes(); after > before {
		b.ReportMetric(float64(after-before)/float64(payload), "written/byte")
	}
}

func BenchmarkDefragment100k(b *testing.B) {
	tr := benchTree(b)
	b.SetBytes(tr.InUse())
	for range b.N {
		if err := tr.Defragment(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// writtenBytes is what the process passed to write calls, where the system tells.
func writtenBytes() int64 {
	text, _ := os.ReadFile("/proc/self/io")
	_, rest, _ := strings.Cut(string(text), "wchar: ")
	line, _, _ := strings.Cut(rest, "\n")
	n, _ := strconv.ParseInt(line, 10, 64)
	return n
}
