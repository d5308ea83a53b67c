package concurrencypb

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// TestRegistriesAreOwn keeps the generated code out of the registries of the
// process, where etcd's server has the same names.
func TestRegistriesAreOwn(t *testing.T) {
	for _, path := range []string{"v3lock.proto", "v3election.proto"} {
		if _, err := protoregistry.GlobalFiles.FindFileByPath(path); err == nil {
			t.Errorf("%s is registered for the process", path)
		}
		if _, err := Files.FindFileByPath(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, name := range []protoreflect.FullName{"v3lockpb.LockRequest", "v3electionpb.LeaderKey"} {
		if _, err := protoregistry.GlobalTypes.FindMessageByName(name); err == nil {
			t.Errorf("%s is registered for the process", name)
		}
		if _, err := Types.FindMessageByName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Files.FindFileByPath("rpc.proto"); err != nil {
		t.Errorf("a file of another package: %v", err)
	}
	if _, err := Files.FindDescriptorByName("etcdserverpb.KV"); err != nil {
		t.Errorf("a service of another package: %v", err)
	}
}
