package difftest

import (
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// TestDiffSeesEveryField changes one field at a time and expects one line for it.
func TestDiffSeesEveryField(t *testing.T) {
	s := newSession(&Server{Client: "127.0.0.1:1", Member: 7, Cluster: 8, Boots: 1}, Binaries{})
	base := &pb.RangeResponse{
		Header: &pb.ResponseHeader{ClusterId: 8, MemberId: 7, Revision: 5, RaftTerm: 2},
		Kvs:    []*mvccpb.KeyValue{{Key: []byte("a"), Value: []byte("1"), CreateRevision: 1, ModRevision: 2, Version: 2, Lease: 3}},
		Count:  1,
	}
	changes := map[string]func(*pb.RangeResponse){
		"msg.header.cluster_id: etcd=<own cluster id> tarn=9":    func(r *pb.RangeResponse) { r.Header.ClusterId = 9 },
		"msg.header.member_id: etcd=<own member id> tarn=absent": func(r *pb.RangeResponse) { r.Header.MemberId = 0 },
		"msg.header.revision: etcd=5 tarn=6":                     func(r *pb.RangeResponse) { r.Header.Revision = 6 },
		"msg.header.raft_term: etcd=starts+1 tarn=starts+2":      func(r *pb.RangeResponse) { r.Header.RaftTerm = 3 },
		`msg.kvs[0].key: etcd="a" tarn="b"`:                      func(r *pb.RangeResponse) { r.Kvs[0].Key = []byte("b") },
		"msg.kvs[0].lease: etcd=3 tarn=absent":                   func(r *pb.RangeResponse) { r.Kvs[0].Lease = 0 },
		"msg.more: etcd=absent tarn=true":                        func(r *pb.RangeResponse) { r.More = true },
		"msg.count: etcd=1 tarn=2":                               func(r *pb.RangeResponse) { r.Count = 2 },
	}
	var want Facts
	want.message(s, "msg", base)
	for line, change := range changes {
		changed := proto.Clone(base).(*pb.RangeResponse)
		change(changed)
		var got Facts
		got.message(s, "msg", changed)
		if diff := Diff("etcd", want, "tarn", got); !slices.Equal(diff, []string{line}) {
			t.Errorf("difference is %q, want %q", diff, line)
		}
	}
}

// TestDeviationMatches keeps the list from accepting more than it says.
func TestDeviationMatches(t *testing.T) {
	etcd := Facts{{"code", "OK"}, {"msg.count", "3"}}
	for _, c := range []struct {
		name  string
		lines []string
		tarn  Facts
		want  bool
	}{
		{"exact", []string{"code: Internal"}, Facts{{"code", "Internal"}}, true},
		{"other value", []string{"code: Internal"}, Facts{{"code", "Unknown"}}, false},
		{"one more line", []string{"code: Internal"}, Facts{{"code", "Internal"}, {"text", "x"}}, false},
		{"one more line allowed", []string{"code: Internal", more}, Facts{{"code", "Internal"}, {"text", "x"}}, true},
		{"nothing of its own", nil, Facts{{"code", "OK"}}, true},
		{"something of its own", nil, Facts{{"code", "OK"}, {"text", "x"}}, false},
	} {
		if got := (Deviation{Tarn: c.lines}).matches(etcd, c.tarn); got != c.want {
			t.Errorf("%s: matches is %v, want %v", c.name, got, c.want)
		}
	}
}
