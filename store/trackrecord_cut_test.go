package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/tarn-kv/tarn/store/vfs/simfs"
)

// The tests of the files trackrecord_*_test.go are named after bugs that etcd and kine
// had: each fails if this store does what theirs did. docs/compatibility.md lists them.

// cutStore is a store on a disk whose power can be cut.
type cutStore struct {
	*Store
	t   *testing.T
	sim *simfs.FS
	o   Options
	rnd *rand.Rand
}

// newCutStore opens a new store that makes a checkpoint after each checkpointBytes.
func newCutStore(t *testing.T, seed uint64, checkpointBytes int64) *cutStore {
	t.Helper()
	root := crashDir(t)
	sim, err := simfs.New(root)
	must(t, err)
	c := &cutStore{t: t, sim: sim, o: crashOptions(filepath.Join(root, "data"), sim, checkpointBytes),
		rnd: rand.New(rand.NewPCG(seed, 3))}
	c.Store, err = Open(c.o)
	must(t, err)
	return c
}

// afterCut opens the store that a power cut leaves: the one that has happened, or one at this moment.
func (c *cutStore) afterCut() *Store {
	c.t.Helper()
	root := crashDir(c.t)
	must(c.t, c.sim.Image(root, c.rnd))
	o := crashOptions(filepath.Join(root, "data"), nil, 1<<20)
	report, err := Check(bg, o.Dir)
	must(c.t, err)
	if len(report.Findings) > 0 {
		c.t.Fatalf("check after the power cut: %q", report.Findings)
	}
	return openStore(c.t, o)
}

// cutWithin lives the same life again and again, and cuts the power at each operation of the
// disk in its last part, until that part gets through.
func cutWithin(t *testing.T, life, last func(*cutStore), check func(t *testing.T, s *Store)) {
	t.Helper()
	for n, through := 1, false; !through && !t.Failed(); n++ {
		t.Run(fmt.Sprint("operation ", n), func(t *testing.T) {
			c := newCutStore(t, uint64(n), 1<<20)
			life(c)
			c.sim.CrashAt(c.sim.Ops() + n)
			last(c)
			if through = !c.sim.WasCut(); through {
				c.sim.Cut()
			}
			check(t, c.afterCut())
			_ = c.Close() // which ends what runs in the background
		})
		if n > 500 {
			t.Fatal("it never gets through")
		}
	}
}

// cutOff checks that a request failed, if it did, because the power was cut.
func (c *cutStore) cutOff(err error) {
	c.t.Helper()
	if err != nil && !errors.Is(err, ErrStopped) && !errors.Is(err, simfs.ErrPowerCut) {
		c.t.Error(err)
	}
}

func wantValue(t *testing.T, s *Store, key, want string) {
	t.Helper()
	_, kvs, err := read(s, &RangeRequest{KeyRange: single(key)})
	must(t, err)
	if len(kvs) != 1 || string(kvs[0].Value) != want {
		t.Errorf("%s is %v, want value %q", key, kvs, want)
	}
}

func wantNoKey(t *testing.T, s *Store, key string) {
	t.Helper()
	res, err := s.Range(bg, &RangeRequest{KeyRange: single(key)})
	must(t, err)
	if res.Close(); res.Count != 0 {
		t.Errorf("%s is there", key)
	}
}
