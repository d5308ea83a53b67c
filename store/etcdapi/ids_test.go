package etcdapi

import "testing"

func TestIDs(t *testing.T) {
	// What etcd prints for a member with its default settings.
	const defaultMember, defaultCluster = 0x8e9e05c52164694d, 0xcdf818194e3a8c32
	t.Run("HDR-10", func(t *testing.T) {
		if id := memberID("http://localhost:2380", "etcd-cluster"); id != defaultMember {
			t.Errorf("member ID %x, want %x", id, uint64(defaultMember))
		}
		if memberID("http://b:1,http://a:1", "x") != memberID("http://a:1,http://b:1", "x") {
			t.Error("the order of peer URLs changes the member ID")
		}
	})
	t.Run("HDR-11", func(t *testing.T) {
		if id := clusterID(defaultMember); id != defaultCluster {
			t.Errorf("cluster ID %x, want %x", id, uint64(defaultCluster))
		}
	})
	t.Run("HDR-12", func(t *testing.T) {
		dir := t.TempDir()
		var ids [2][2]uint64
		for i := range ids {
			st := openStore(t, dir)
			s, err := New(Config{Store: st})
			if err != nil {
				t.Fatal(err)
			}
			ids[i] = [2]uint64{s.memberID, s.clusterID}
			if err := s.Stop(testContext(t)); err != nil {
				t.Fatal(err)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if ids[0] != ids[1] || ids[0][0] == 0 || ids[0][1] == 0 {
			t.Errorf("IDs before and after a restart: %x", ids)
		}
	})
}
