package etcdapi

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// kube-apiserver gives a watch up when an update or a deletion comes without the value before. It
// is there for a watch that catches up as for one that does not, wherever the records are.
func TestWatchCatchUpHasPreviousValues(t *testing.T) {
	k := newKVTest(t, Config{})
	for i := range 4 {
		k.put("a", fmt.Sprint(i)) // 2 to 5
	}
	k.del("a", "") // 6
	if err := k.s.store.Checkpoint(k.ctx); err != nil {
		t.Fatal(err)
	}
	k.put("a", "new")     // 7
	k.put("a", "newer")   // 8
	k.del("\x00", "\x00") // 9
	want := "0 @9 PUT a=0(1,2,2) PUT a=1(2,2,3) was a=0(1,2,2) PUT a=2(3,2,4) was a=1(2,2,3) PUT a=3(4,2,5) was a=2(3,2,4)" +
		" DELETE a=(0,0,6) was a=3(4,2,5) PUT a=new(1,7,7) PUT a=newer(2,7,8) was a=new(1,7,7) DELETE a=(0,0,9) was a=newer(2,7,8)"
	for _, name := range []string{"TOP-4/log and tree", "TOP-4/tree"} {
		t.Run(name, func(t *testing.T) {
			w := k.newWatch()
			w.create(&pb.WatchCreateRequest{Key: []byte("a"), StartRevision: 2, PrevKv: true})
			w.want("0 @9 created", want)
			if err := k.s.store.Checkpoint(k.ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
}
