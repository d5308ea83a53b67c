package store

import (
	"fmt"
	"testing"
)

// benchmarkKeys are keys as Kubernetes has them, of 20 resources.
func benchmarkKeys(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "/registry/group%d.example.io/resource%d/namespace-%d/name-%07d", i%10, i%2, i%7, i)
	}
	return keys
}

// BenchmarkPut overwrites 5,000 keys with 500 bytes each. With TMPDIR on a tmpfs it shows the work
// of the processor, without it that of the disk.
func BenchmarkPut(b *testing.B) {
	for _, perTxn := range []int{1, 100} {
		b.Run(fmt.Sprint(perTxn), func(b *testing.B) {
			s := openStore(b, Options{Dir: b.TempDir(), Quota: -1})
			keys, value := benchmarkKeys(5000), make([]byte, 500)
			req := &TxnRequest{Success: make([]Op, perTxn)}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				for j := range req.Success {
					req.Success[j].Put = &PutRequest{Key: keys[(i*perTxn+j)%len(keys)], Value: value}
				}
				res, err := s.Txn(bg, req)
				must(b, err)
				res.Close()
				if rev := s.Revision(); rev%5000 == 0 {
					_, err = s.Compact(bg, rev-1000, false)
					must(b, err)
				}
			}
		})
	}
}

// BenchmarkPrefixes asks for the totals of 20 prefixes, and of as many as can be told apart, among 200,000 keys.
func BenchmarkPrefixes(b *testing.B) {
	for _, prefixes := range []int{20, maxPrefixes} {
		b.Run(fmt.Sprint(prefixes), func(b *testing.B) {
			s := openStore(b, Options{Dir: b.TempDir(), Quota: -1})
			for i := 0; i < 200_000; i += 1000 {
				ops := make([]Op, 1000)
				for j := range ops {
					ops[j] = putOp(fmt.Sprintf("/registry/resource%d/name-%07d", (i+j)%prefixes, i+j), "value")
				}
				_, err := do(s, ops...)
				must(b, err)
			}
			for b.Loop() {
				s.Prefixes()
			}
		})
	}
}

// BenchmarkPrefixCount counts a change: for a key of the same prefix as the one before, of another one,
// and of one that is not told apart.
func BenchmarkPrefixCount(b *testing.B) {
	full := make([]string, 2*maxPrefixes)
	for i := range full {
		full[i] = fmt.Sprintf("/full/%d/x", i)
	}
	for name, keys := range map[string][]string{
		"same":  {"/registry/pods/kube-system/a"},
		"other": {"/registry/pods/kube-system/a", "/registry/k3s.cattle.io/addons/kube-system/b"},
		"none":  {full[len(full)-1]},
	} {
		b.Run(name, func(b *testing.B) {
			var p prefixCounts
			for _, k := range full {
				p.wrote(k, 1)
			}
			for i := 0; b.Loop(); i++ {
				p.wrote(keys[i%len(keys)], 100)
			}
		})
	}
}
