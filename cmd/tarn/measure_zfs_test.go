//go:build zfs

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/zfs/zfstest"
)

// What TestZFSMeasureProperties needs from outside: disks that it may overwrite, one for
// each case, and the data directory of a stopped server with the objects of a real cluster.
const (
	measureDisks   = "TARN_ZFS_DISKS"   // /dev/vdb,/dev/vdc,…
	measureData    = "TARN_ZFS_DATA"    // directory
	measureMinutes = "TARN_ZFS_MINUTES" // of the idle cluster, in real time
)

// propertyCase is one way to set up the dataset and the file.
type propertyCase struct {
	recordSize  string
	cache       string // primarycache
	pageSize    int    // of bbolt
	compression string
}

var propertyCases = []propertyCase{
	{"4K", "all", 4096, "lz4"}, {"8K", "all", 4096, "lz4"}, {"16K", "all", 4096, "lz4"}, {"32K", "all", 4096, "lz4"},
	{"128K", "all", 4096, "lz4"}, {"16K", "all", 4096, "zstd"}, {"16K", "metadata", 4096, "lz4"},
	{"16K", "all", 16384, "lz4"}, {"32K", "all", 16384, "lz4"}, {"16K", "all", 4096, "off"},
}

// measured is a case and what came out of it.
type measured struct {
	propertyCase
	disk, pool, dir string
	values          [][]byte

	ratio                    string  // compressratio with the cluster's objects
	idlePerHour              int64   // bytes written to the disk by the idle cluster
	put50, put99             float64 // milliseconds, one at a time
	fill, scattered          int64   // bytes written to the disk
	coldList, warmList, open float64 // milliseconds
	bigRatio                 string
	bigUsed                  string
}

// TestZFSMeasureProperties prints the table of docs/zfs.md. It is no test of anything.
func TestZFSMeasureProperties(t *testing.T) {
	disks := strings.Split(os.Getenv(measureDisks), ",")
	minutes, _ := strconv.ParseFloat(os.Getenv(measureMinutes), 64)
	if disks[0] == "" || minutes <= 0 {
		t.Skipf("set %s, %s and %s to measure", measureDisks, measureData, measureMinutes)
	}
	var all []*measured
	for i, c := range propertyCases[:min(len(propertyCases), len(disks))] {
		m := &measured{propertyCase: c, disk: disks[i], pool: fmt.Sprintf("measure%d", i)}
		m.prepare(t)
		all = append(all, m)
	}
	var wg sync.WaitGroup
	for _, m := range all {
		wg.Go(func() { m.idle(t, time.Duration(minutes*float64(time.Minute))) })
	}
	wg.Wait()
	for _, m := range all {
		fmt.Println("idle", m)
	}
	for _, m := range all {
		m.load(t)
		fmt.Println(m)
	}
}

func (m *measured) String() string {
	return fmt.Sprintf("| %s | %s | %s | %dK | %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.0f | %.0f | %.0f | %s | %s |", m.recordSize, m.compression, m.cache, m.pageSize>>10, m.ratio,
		mib(m.idlePerHour), m.put50, m.put99, mib(m.fill), mib(m.scattered), m.open, m.coldList, m.warmList, m.bigRatio, m.bigUsed)
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// prepare makes pool and dataset, and copies the data with the page size of the case.
func (m *measured) prepare(t *testing.T) {
	m.dir = filepath.Join(t.TempDir(), "mnt") // before the pool, so that it is removed after it
	zfstest.Run(t, "zpool", "create", "-f", "-o", "cachefile=none", "-o", "ashift=12", "-O", "mountpoint=none", m.pool, m.disk)
	t.Cleanup(func() { zfstest.Run(t, "zpool", "destroy", "-f", m.pool) })
	zfstest.Run(t, "zfs", "create", "-o", "mountpoint="+m.dir, "-o", "recordsize="+m.recordSize, "-o", "primarycache="+m.cache,
		"-o", "compression="+m.compression, "-o", "atime=off", "-o", "xattr=sa", m.pool+"/tarn")
	from := os.Getenv(measureData)
	if err := os.CopyFS(m.dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(m.dir, treeFile)
	os.Remove(tree)
	src, err := bolt.Open(filepath.Join(from, treeFile), 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	dst, err := bolt.Open(tree, 0o600, &bolt.Options{PageSize: m.pageSize})
	if err != nil {
		t.Fatal(err)
	}
	if err := bolt.Compact(dst, src, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := dst.Close(); err != nil {
		t.Fatal(err)
	}
	zfstest.Run(t, "zpool", "sync", m.pool)
	m.ratio = m.property(t, "compressratio")
}

func (m *measured) property(t *testing.T, name string) string {
	return zfstest.Run(t, "zfs", "get", "-H", "-o", "value", name, m.pool+"/tarn")
}

// written is what the disk has been told to write so far, in bytes.
func (m *measured) written(t *testing.T) int64 {
	zfstest.Run(t, "zpool", "sync", m.pool)
	text, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(m.disk), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	sectors, err := strconv.ParseInt(strings.Fields(string(text))[6], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return sectors * 512
}

func (m *measured) openStore(t *testing.T) *store.Store {
	s, err := store.Open(store.Options{Dir: m.dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keyRange(prefix string) store.KeyRange {
	return store.KeyRange{Key: []byte(prefix), End: []byte(prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1))}
}

func measuredPut(t *testing.T, s *store.Store, key string, value []byte, lease int64) {
	_, err := s.Txn(context.Background(), &store.TxnRequest{Success: []store.Op{{Put: &store.PutRequest{Key: []byte(key), Value: value, Lease: lease}}}})
	if err != nil {
		t.Error(err)
	}
}

// idle replays the writes of an idle cluster with one node, with leader election, as they
// were recorded between kube-apiserver 1.37 and etcd.
func (m *measured) idle(t *testing.T, d time.Duration) {
	s := m.openStore(t)
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	before := m.written(t)
	var wg sync.WaitGroup
	every := func(perMinute float64, do func(n int)) {
		wg.Go(func() {
			period := time.Duration(float64(time.Minute) / perMinute)
			start := time.NewTimer(time.Duration(rand.Float64() * float64(period)))
			defer start.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-start.C:
					start.Reset(period)
					do(n)
				}
			}
		})
	}
	update := func(key string, size int, ttl int64) func(int) {
		return func(n int) {
			var lease int64
			if ttl > 0 {
				l, err := s.LeaseGrant(context.Background(), 0, ttl)
				if err != nil {
					t.Error(err)
					return
				}
				lease = l.ID
			}
			v := []byte(strings.Repeat("managedFields renewTime leaseDurationSeconds coordination.k8s.io/v1 ", 50)[:size])
			copy(v[size/2:], time.Now().Format(time.RFC3339Nano))
			measuredPut(t, s, key, v, lease)
		}
	}
	every(29.7, update("/registry/leases/kube-system/kube-controller-manager", 424, 0))
	every(29.7, update("/registry/leases/kube-system/kube-scheduler", 407, 0))
	every(5.8, update("/registry/leases/kube-node-lease/node-0", 494, 0))
	every(5.8, update("/registry/leases/kube-system/apiserver-0", 719, 0))
	every(6, update("/registry/masterleases/10.0.0.1", 62, 15))
	every(6, update("/registry/peerserverleases/apiserver-0", 139, 15))
	every(0.2, update("/registry/minions/node-0", 2651, 0))
	last := s.Revision()
	every(0.2, func(n int) {
		measuredPut(t, s, "compact_rev_key", []byte(strconv.FormatInt(last, 10)), 0)
		if _, err := s.Compact(context.Background(), last, false); err != nil {
			t.Log(err)
		}
		last = s.Revision()
	})
	wg.Wait()
	m.idlePerHour = int64(float64(m.written(t)-before) * float64(time.Hour) / float64(d))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

const (
	measuredPuts    = 200
	measuredObjects = 6000
	measuredUpdates = 1500
)

// load measures what a busy cluster does: puts one at a time, many objects, changes all over
// them, and lists.
func (m *measured) load(t *testing.T) {
	s := m.openStore(t)
	m.values = m.realValues(t, s)
	var took []float64
	for i := range measuredPuts {
		start := time.Now()
		measuredPut(t, s, fmt.Sprintf("/registry/configmaps/put/%04d", i%50), m.value(i, 1024), 0)
		took = append(took, float64(time.Since(start))/float64(time.Millisecond))
	}
	slices.Sort(took)
	m.put50, m.put99 = took[len(took)/2], took[len(took)*99/100]
	before := m.written(t)
	ops := func(n, batch int, key func(int) int) {
		for i := 0; i < n; i += batch {
			req := &store.TxnRequest{}
			seen := map[int]bool{}
			for j := i; j < i+batch; j++ {
				k := key(j)
				if !seen[k] {
					seen[k] = true
					req.Success = append(req.Success, store.Op{Put: &store.PutRequest{Key: fmt.Appendf(nil, "/registry/pods/many/pod-%06d", k), Value: m.value(j, 0)}})
				}
			}
			if _, err := s.Txn(context.Background(), req); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Checkpoint(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	ops(measuredObjects, 50, func(i int) int { return i })
	m.fill = m.written(t) - before
	before = m.written(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	ops(measuredUpdates, 10, func(int) int { return rnd.IntN(measuredObjects) })
	m.scattered = m.written(t) - before
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	zfstest.Run(t, "zpool", "sync", m.pool)
	m.bigRatio, m.bigUsed = m.property(t, "compressratio"), m.property(t, "used")
	zfstest.Run(t, "zpool", "export", m.pool)
	zfstest.Run(t, "zpool", "import", "-d", "/dev", "-o", "cachefile=none", m.pool)
	os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
	start := time.Now()
	s = m.openStore(t)
	m.open = ms(start)
	os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
	m.coldList = m.list(t, s)
	m.warmList = m.list(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func ms(start time.Time) float64 { return float64(time.Since(start)) / float64(time.Millisecond) }

func (m *measured) list(t *testing.T, s *store.Store) float64 {
	start := time.Now()
	res, err := s.Range(context.Background(), &store.RangeRequest{KeyRange: keyRange("/registry/pods/many/")})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	n := measuredValues(t, s, res, nil)
	if n != measuredObjects {
		t.Errorf("%d objects are listed", n)
	}
	return ms(start)
}

// realValues are the cluster's objects.
func (m *measured) realValues(t *testing.T, s *store.Store) (values [][]byte) {
	res, err := s.Range(context.Background(), &store.RangeRequest{KeyRange: keyRange("/registry/pods/")})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	measuredValues(t, s, res, func(v []byte) { values = append(values, v) })
	return values
}

// measuredValues reads the values of a result as an answer to a list does, in chunks.
func measuredValues(t *testing.T, s *store.Store, res *store.RangeResult, each func([]byte)) (n int) {
	for items := range slices.Chunk(res.Items, 500) {
		text, err := s.AppendValues(nil, items, 2)
		if err != nil {
			t.Fatal(err)
		}
		n += len(items)
		if each == nil {
			continue
		}
		answer := new(etcdserverpb.RangeResponse)
		if err := proto.Unmarshal(text, answer); err != nil {
			t.Fatal(err)
		}
		for _, kv := range answer.Kvs {
			each(kv.Value)
		}
	}
	return n
}

// value is a pod as the cluster has them, and different from all others by some numbers.
func (m *measured) value(i, size int) []byte {
	v := slices.Clone(m.values[i%len(m.values)])
	if size > 0 {
		v = v[:min(len(v), size)]
	}
	for n := 0; n+16 < len(v); n += 400 { // as UIDs, times and addresses are
		copy(v[n+rand.IntN(8):], fmt.Sprintf("%x", rand.Uint32()))
	}
	return v
}
