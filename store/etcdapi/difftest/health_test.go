package difftest

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func healthCheck(service string) *healthpb.HealthCheckRequest {
	return &healthpb.HealthCheckRequest{Service: service}
}

func TestServices(t *testing.T) {
	suite.Run(t, []Case{
		{Name: "health", Steps: []Step{
			call("GRPC-16 check", healthCheck("")),
			call("GRPC-16 check a service", healthCheck("etcdserverpb.KV")),
			call("GRPC-16 check nonsense", healthCheck("nonsense")),
			call("GRPC-16 list", &healthpb.HealthListRequest{}),
		}},
		{Name: "unknown", Steps: []Step{
			{"GRPC-15 method of KV", Method("/etcdserverpb.KV/Nope")},
			{"GRPC-15 method of Watch", Method("/etcdserverpb.Watch/Nope")},
			{"GRPC-15 service", Method("/etcdserverpb.Nope/Nope")},
			{"GRPC-17 reflection", Method("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")},
			{"GRPC-17 reflection alpha", Method("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")},
		}},
		{Name: "metadata", Steps: []Step{
			call("GRPC-10 hasleader", Get("a"), With("hasleader", "true")),
			call("GRPC-10 client version", Get("a"), With("client-api-version", "3.7")),
			call("GRPC-10 put with hasleader", Put("a", "1"), With("hasleader", "true")),
			call("AUT-1 token is ignored", Get("a"), With("token", "nonsense.1")),
			call("AUT-1 authorization is ignored", Put("a", "2"), With("authorization", "Bearer nonsense")),
			{"AUT-1 watch with a token", Open("w", With("token", "nonsense.1"))},
			{"AUT-1 create", Ask("w", 1, from("a", 0))},
		}},
	})
}

func TestCluster(t *testing.T) {
	add := func(name string, urls ...string) Step { return call(name, &pb.MemberAddRequest{PeerURLs: urls}) }
	suite.Run(t, []Case{
		{Name: "members", Steps: []Step{
			call("CLU-1 CLU-2 HDR-4 list", &pb.MemberListRequest{}),
			call("CLU-1 list linearizable", &pb.MemberListRequest{Linearizable: true}),
			add("CLU-3 add without URLs"), add("CLU-3 add a bad URL", "nonsense"), add("CLU-3 add without port", "http://127.0.0.1"),
			add("CLU-3 add with a path", "http://127.0.0.1:1/x"), add("CLU-3 one good one bad", "http://127.0.0.1:1", "bad"),
			call("CLU-6 remove unknown", &pb.MemberRemoveRequest{ID: 42}),
			call("CLU-6 remove 0", &pb.MemberRemoveRequest{}),
			call("CLU-6 V-17 remove self", &pb.MemberRemoveRequest{ID: Self}),
			call("CLU-7 promote unknown", &pb.MemberPromoteRequest{ID: 42}),
			call("CLU-7 promote self", &pb.MemberPromoteRequest{ID: Self}),
			call("CLU-8 update unknown", &pb.MemberUpdateRequest{ID: 42, PeerURLs: []string{"http://127.0.0.1:1"}}),
			call("CLU-8 update self", &pb.MemberUpdateRequest{ID: Self, PeerURLs: []string{"http://127.0.0.1:1"}}),
			call("CLU-1 HDR-4 list afterwards", &pb.MemberListRequest{}),
			call("CLU-8 REV-4 works", Put("a", "1")),
		}},
		{Name: "update with nonsense", Steps: []Step{
			call("CLU-8 V-9 update self", &pb.MemberUpdateRequest{ID: Self, PeerURLs: []string{"nonsense"}}),
			call("CLU-8 V-9 update self without", &pb.MemberUpdateRequest{ID: Self}),
		}},
		{Name: "add a member", Steps: []Step{
			{"CLU-5 refused", Expect(Facts{{"code", "FailedPrecondition"}, {"text", "etcdserver: re-configuration failed due to not enough started members"}},
				Call(&pb.MemberAddRequest{PeerURLs: []string{"http://127.0.0.1:1"}}))},
			{"CLU-5 learner refused", Expect(Facts{{"code", "FailedPrecondition"}, {"text", "etcdserver: re-configuration failed due to not enough started members"}},
				Call(&pb.MemberAddRequest{PeerURLs: []string{"http://127.0.0.1:1"}, IsLearner: true}))},
			call("CLU-5 still works", Put("a", "1")),
		}},
	})
}
