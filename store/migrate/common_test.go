package migrate

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/tarn-kv/tarn/store/tree"
)

const testPage = 1024

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// testBatch is a small database that has some of everything.
func testBatch() *tree.Batch {
	const last = 150
	rnd := rand.New(rand.NewPCG(1, 2))
	b := &tree.Batch{
		ScheduledCompact: new(int64(20)), FinishedCompact: new(int64(20)), Seq: new(uint64(77)), Term: new(int64(5)),
		Member:   &tree.MemberRecord{ID: 0xabc, Name: "old", PeerURLs: []string{"http://10.0.0.1:2380"}},
		AlarmPut: []tree.AlarmRecord{{MemberID: 0xabc, Type: 1}},
	}
	on := true
	b.AuthEnabled, b.AuthRevision = &on, new(uint64(3))
	b.AuthUsers = []tree.AuthRecord{{Name: "root", Value: []byte("\x0a\x04root\x12\x03pwd\x1a\x04root")}}
	b.AuthRoles = []tree.AuthRecord{{Name: "reader", Value: []byte("\x0a\x06reader\x12\x03\x12\x01a")}}
	keys := map[string]tree.KV{}
	for rev := int64(21); rev <= last; rev++ {
		key := fmt.Sprintf("key-%d", rnd.IntN(20))
		kv, live := keys[key]
		r := tree.Record{Rev: tree.Revision{Main: rev}}
		if live && rev%9 == 0 {
			delete(keys, key)
			r.Tombstone, r.Value = true, tree.AppendKV(nil, []byte(key), 0, 0, 0, nil, 0)
		} else {
			if !live {
				kv.Create = rev
			}
			kv.Mod, kv.Version = rev, kv.Version+1
			keys[key] = kv
			r.Value = tree.AppendKV(nil, []byte(key), kv.Create, rev, kv.Version, make([]byte, rnd.IntN(200)), rev%5)
		}
		b.Put = append(b.Put, r)
	}
	for id := range int64(4) {
		b.LeasePut = append(b.LeasePut, tree.LeaseRecord{ID: id + 1, TTL: 100 + id, Remaining: id})
	}
	return b
}

// database makes a database file of a batch, then of what change does to it. It is
// the same each time. As etcd leaves it, it is without its list of free pages.
func database(t testing.TB, b *tree.Batch, change func(tx *bolt.Tx) error) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	tr, err := tree.Open(tree.Options{Path: path})
	must(t, err)
	must(t, tr.Apply(b))
	must(t, tr.Close())
	src, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true})
	must(t, err)
	if change != nil {
		must(t, src.Update(change))
	}
	dst, err := bolt.Open(path+".copy", 0o600, &bolt.Options{PageSize: testPage, NoFreelistSync: true, NoSync: true, FreelistType: bolt.FreelistArrayType})
	must(t, err)
	must(t, bolt.Compact(dst, src, 1))
	var out bytes.Buffer
	must(t, dst.View(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(&out)
		return err
	}))
	must(t, errors.Join(dst.Close(), src.Close()))
	return out.Bytes()
}

// withHash adds the hash that `snapshot save` adds.
func withHash(db []byte) []byte {
	sum := sha256.Sum256(db)
	return append(bytes.Clone(db), sum[:]...)
}

func writeSnapshot(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot.db")
	must(t, os.WriteFile(path, content, 0o600))
	return path
}

// wantNothing checks that there is no directory.
func wantNothing(t testing.TB, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		entries, _ := os.ReadDir(dir)
		t.Errorf("%s was left behind with %v", dir, entries)
	}
}
