package difftest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// generator makes random requests on a small key space. It avoids what
// deviations.go lists and what etcd answers by chance (the order of equal
// elements in a sort).
type generator struct {
	*rand.Rand
	current, compacted int64 // as of the last answer
	value              int
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 0)), current: 1}
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) key() []byte {
	k := []byte{'a' + byte(g.IntN(8))}
	if g.chance(30) {
		k = append(k, '/', 'x'+byte(g.IntN(3)))
	}
	return k
}

// end returns an end for key: none, a later or earlier key, or the zero byte.
func (g *generator) end(zero bool) []byte {
	switch n := g.IntN(100); {
	case n < 40:
		return nil
	case n < 50 && zero:
		return []byte{0}
	default:
		return g.key()
	}
}

func (g *generator) lease() int64 {
	if g.chance(70) {
		return 0
	}
	return 1 + g.Int64N(6)
}

// revision returns one near the readable span, mostly inside it.
func (g *generator) revision() int64 {
	low := max(g.compacted, 1)
	switch n := g.IntN(100); {
	case n < 50:
		return 0
	case n < 56:
		return g.current + g.Int64N(3)
	case n < 62:
		return max(0, low-g.Int64N(3))
	default:
		return low + g.Int64N(g.current-low+1)
	}
}

// hashRevision stays at or above the compact revision: below it etcd answers or
// not, depending on which hashes of compactions it still keeps.
func (g *generator) hashRevision() int64 {
	rev := g.revision()
	for rev != 0 && rev < g.compacted {
		rev = g.revision()
	}
	return rev
}

func (g *generator) put() *pb.PutRequest {
	g.value++
	r := &pb.PutRequest{Key: g.key(), Value: fmt.Append(nil, g.value), Lease: g.lease(), PrevKv: g.chance(30)}
	switch n := g.IntN(100); {
	case n < 5:
		r.IgnoreValue, r.Value = true, nil
	case n < 10:
		r.IgnoreLease, r.Lease = true, 0
	case n < 12:
		r.IgnoreLease = true
	case n < 14:
		r.Value = nil
	}
	return r
}

func (g *generator) rangeRequest() *pb.RangeRequest {
	r := &pb.RangeRequest{Key: g.key(), RangeEnd: g.end(true), Revision: g.revision(), Serializable: g.chance(20), CountOnly: g.chance(10)}
	if g.chance(40) {
		r.Limit = g.Int64N(6)
	}
	if g.chance(20) {
		r.SortOrder = pb.RangeRequest_SortOrder(g.IntN(3))
	}
	if g.chance(20) {
		r.MinModRevision, r.MaxCreateRevision = g.revision(), g.revision()
	}
	if g.chance(20) {
		r.MaxModRevision, r.MinCreateRevision = g.revision(), g.revision()
	}
	return r
}

func (g *generator) deleteRange(zero bool) *pb.DeleteRangeRequest {
	return &pb.DeleteRangeRequest{Key: g.key(), RangeEnd: g.end(zero), PrevKv: g.chance(50)}
}

func (g *generator) compare() *pb.Compare {
	k, result := string(g.key()), pb.Compare_CompareResult(g.IntN(4))
	kinds := []*pb.Compare{
		Version(k, result, g.Int64N(4)), CreateRev(k, result, g.revision()), ModRev(k, result, g.revision()),
		Value(k, result, fmt.Sprint(g.value-g.IntN(20))), LeaseOf(k, result, g.lease()),
	}
	return Over(kinds[g.IntN(len(kinds))], string(g.end(true)))
}

func (g *generator) txn(depth int) *pb.TxnRequest {
	ops := func() []*pb.RequestOp {
		var reqs []any
		for range g.IntN(4) {
			switch n := g.IntN(100); {
			case n < 45:
				reqs = append(reqs, g.put())
			case n < 70:
				reqs = append(reqs, g.rangeRequest())
			case n < 85 || depth == 0:
				reqs = append(reqs, g.deleteRange(false))
			default:
				reqs = append(reqs, g.txn(depth-1))
			}
		}
		return Ops(reqs...)
	}
	var compares []*pb.Compare
	for range g.IntN(3) {
		compares = append(compares, g.compare())
	}
	return Txn(compares, ops(), ops())
}

// request returns the next unary request.
func (g *generator) request() proto.Message {
	switch n := g.IntN(1000); {
	case n < 300:
		return g.put()
	case n < 500:
		t := g.txn(2)
		for hole(t) {
			t = g.txn(2)
		}
		return t
	case n < 600:
		return g.deleteRange(true)
	case n < 850:
		return g.rangeRequest()
	case n < 880:
		return Grant(1+g.Int64N(6), 10_000+g.Int64N(1000))
	case n < 895:
		return &pb.LeaseRevokeRequest{ID: 1 + g.Int64N(6)}
	case n < 930:
		return &pb.LeaseTimeToLiveRequest{ID: 1 + g.Int64N(6), Keys: g.chance(80)}
	case n < 940:
		return &pb.LeaseLeasesRequest{}
	case n < 975:
		return &pb.HashKVRequest{Revision: g.hashRevision()}
	default:
		return &pb.StatusRequest{}
	}
}

// compaction returns a compaction that mostly keeps some history.
func (g *generator) compaction() *pb.CompactionRequest {
	low := max(g.compacted, 1)
	return &pb.CompactionRequest{Revision: low + g.Int64N(g.current-low+2), Physical: g.chance(50)}
}

func (g *generator) watch() *pb.WatchCreateRequest {
	r := &pb.WatchCreateRequest{Key: g.key(), RangeEnd: g.end(true), StartRevision: g.revision(), PrevKv: g.chance(50)}
	if g.chance(10) {
		r.Filters = []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_FilterType(g.IntN(2))}
	}
	return r
}

// hole reports whether a transaction has a delete in a nested transaction that
// covers a put of an earlier nested transaction of the same branch. etcd's
// duplicate check overlooks that order only, so such requests are not sent.
func hole(t *pb.TxnRequest) bool {
	return branchHole(t.Success) || branchHole(t.Failure)
}

func branchHole(ops []*pb.RequestOp) bool {
	var earlier [][]byte
	for _, op := range ops {
		nested := op.GetRequestTxn()
		if nested == nil {
			continue
		}
		if hole(nested) {
			return true
		}
		puts, deletes := touched(nested)
		for _, d := range deletes {
			for _, k := range earlier {
				if covers(d, k) {
					return true
				}
			}
		}
		earlier = append(earlier, puts...)
	}
	return false
}

// touched returns what both branches of t put and delete.
func touched(t *pb.TxnRequest) (puts [][]byte, deletes []*pb.DeleteRangeRequest) {
	for _, op := range slices.Concat(t.Success, t.Failure) {
		switch r := op.Request.(type) {
		case *pb.RequestOp_RequestPut:
			puts = append(puts, r.RequestPut.Key)
		case *pb.RequestOp_RequestDeleteRange:
			deletes = append(deletes, r.RequestDeleteRange)
		case *pb.RequestOp_RequestTxn:
			p, d := touched(r.RequestTxn)
			puts, deletes = append(puts, p...), append(deletes, d...)
		}
	}
	return puts, deletes
}

func covers(d *pb.DeleteRangeRequest, key []byte) bool {
	if len(d.RangeEnd) == 0 {
		return bytes.Equal(d.Key, key)
	}
	return bytes.Compare(d.Key, key) <= 0 && bytes.Compare(key, d.RangeEnd) < 0
}
