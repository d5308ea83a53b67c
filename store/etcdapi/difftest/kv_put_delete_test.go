package difftest

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestKVPutDelete(t *testing.T) {
	key := func(k string, r *pb.PutRequest) *pb.PutRequest {
		r.Key = []byte(k)
		return r
	}
	suite.Run(t, []Case{
		{Name: "put", Steps: []Step{
			call("PUT-9 HDR-9 first", Put("a", "1")),
			call("PUT-9 second", Put("a", "2")),
			call("REV-2 versions", Get("a")),
			call("REV-3 same value", Put("a", "2")),
			call("REV-3 counts", Get("a")),
			call("PUT-2 empty value", Put("a", "")),
			call("PUT-2 reads back", Get("a")),
			call("PUT-8 prev", key("a", &pb.PutRequest{Value: []byte("3"), PrevKv: true})),
			call("PUT-8 prev of a new key", key("b", &pb.PutRequest{Value: []byte("3"), PrevKv: true})),
			call("PUT-1 no key", &pb.PutRequest{Value: []byte("1")}),
			call("PUT-1 no key before ignore_value", &pb.PutRequest{Value: []byte("1"), IgnoreValue: true}),
			call("PUT-2 binary key", Put("\x00\xff\x00", "\x00\xfe")),
			call("PUT-2 binary reads back", Get("\x00\xff\x00")),
		}},
		{Name: "ignore", Steps: []Step{
			call("grant 1", Grant(101, 1000)),
			call("grant 2", Grant(102, 1000)),
			call("PUT-6 missing key", key("a", &pb.PutRequest{IgnoreValue: true})),
			call("PUT-7 missing key", key("a", &pb.PutRequest{IgnoreLease: true, Value: []byte("1")})),
			call("put", PutLease("a", "1", 101)),
			call("PUT-6 with value", key("a", &pb.PutRequest{IgnoreValue: true, Value: []byte("1")})),
			call("PUT-7 with lease", key("a", &pb.PutRequest{IgnoreLease: true, Lease: 101})),
			call("PUT-1 both wrong", key("a", &pb.PutRequest{IgnoreLease: true, Lease: 101, IgnoreValue: true, Value: []byte("1")})),
			call("PUT-7 keeps lease", key("a", &pb.PutRequest{IgnoreLease: true, Value: []byte("2"), PrevKv: true})),
			call("PUT-7 kept", Get("a")),
			call("PUT-6 moves lease", key("a", &pb.PutRequest{IgnoreValue: true, Lease: 102, PrevKv: true})),
			call("PUT-6 moved", Get("a")),
			call("PUT-6 PUT-7 both", key("a", &pb.PutRequest{IgnoreValue: true, IgnoreLease: true})),
			call("PUT-6 PUT-7 both kept", Get("a")),
			call("PUT-6 detaches", key("a", &pb.PutRequest{IgnoreValue: true})),
			call("PUT-6 detached", Get("a")),
			call("PUT-3 unknown lease", PutLease("a", "1", 999)),
			call("PUT-3 lease before key", key("nope", &pb.PutRequest{IgnoreValue: true, Lease: 999})),
			call("PUT-3 negative unknown lease", PutLease("a", "1", -4)),
			call("PUT-5 move", PutLease("a", "3", 101)),
			call("PUT-5 ttl 1", &pb.LeaseTimeToLiveRequest{ID: 101, Keys: true}),
			call("PUT-5 ttl 2", &pb.LeaseTimeToLiveRequest{ID: 102, Keys: true}),
			call("PUT-4 detach", Put("a", "4")),
			call("PUT-4 ttl", &pb.LeaseTimeToLiveRequest{ID: 101, Keys: true}),
		}},
		{Name: "delete", Steps: []Step{
			call("grant", Grant(55, 1000)),
			call("a", Put("a", "1")), call("b", PutLease("b", "2", 55)), call("c", Put("c", "3")), call("d", Put("d", "4")),
			{"open", Open("w")},
			{"WCH-1 watch", Ask("w", 1, Create(&pb.WatchCreateRequest{Key: []byte("\x00"), RangeEnd: []byte("\x00"), PrevKv: true}))},
			call("DEL-1 no key", &pb.DeleteRangeRequest{}),
			call("DEL-1 no key with end", &pb.DeleteRangeRequest{RangeEnd: []byte("x")}),
			call("DEL-2 nothing", Delete("nope")),
			call("DEL-2 nothing with prev", &pb.DeleteRangeRequest{Key: []byte("nope"), PrevKv: true}),
			call("DEL-2 end below key", DeleteAll("d", "a")),
			call("DEL-3 DEL-4 range", &pb.DeleteRangeRequest{Key: []byte("a"), RangeEnd: []byte("c"), PrevKv: true}),
			{"DEL-4 WCH-22 WCH-23 events", Recv("w", 1)},
			call("DEL-4 lease detached", &pb.LeaseTimeToLiveRequest{ID: 55, Keys: true}),
			call("DEL-2 again", DeleteAll("a", "c")),
			call("DEL-1 single", Delete("c")),
			call("REV-2 created again", Put("c", "5")),
			call("REV-2 new generation", Get("c")),
			call("DEL-1 from b on", DeleteAll("b", "\x00")),
			call("DEL-1 all of nothing", DeleteAll("\x00", "\x00")),
			call("REV-4 revision", All(0)),
			{"WCH-21 rest of events", Recv("w", 3)},
		}},
	})
}
