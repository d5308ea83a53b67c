package tree

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// dump lists a file's records as "bucket hexkey hexvalue".
func dump(t *testing.T, path string) (lines []string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			lines = append(lines, string(name))
			return b.ForEach(func(k, v []byte) error {
				lines = append(lines, fmt.Sprintf("%s %x %x", name, k, v))
				return nil
			})
		})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestSchemaGoldenBytes(t *testing.T) {
	path := testPath(t)
	tr := openTest(t, Options{Path: path})
	apply(t, tr, &Batch{
		Put: []Record{
			{Rev: Revision{7, 0}, Value: AppendKV(nil, []byte("d"), 7, 7, 1, []byte("1"), 0)},
			{Rev: Revision{8, 0}, Tombstone: true, Value: AppendKV(nil, []byte("d"), 0, 0, 0, nil, 0)},
		},
		LeasePut:         []LeaseRecord{{ID: 16, TTL: 60}, {ID: -1, TTL: 3, Remaining: 2}},
		AlarmPut:         []AlarmRecord{{MemberID: 0xab, Type: 1}},
		Seq:              new(uint64(258)),
		Term:             new(int64(3)),
		ScheduledCompact: new(int64(6)),
		FinishedCompact:  new(int64(5)),
		StoreID:          &StoreID{1, 2, 3, 15: 0xff},
		Member: &MemberRecord{ID: 0xab, PeerURLs: []string{"http://127.0.0.1:2380"}, Name: "n1",
			ClientURLs: []string{"http://127.0.0.1:2379"}},
	})
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"alarm", "alarm 08ab011001 ",
		"auth", "authRoles", "authUsers",
		"cluster", fmt.Sprintf("cluster %x %x", "clusterVersion", "3.7.0"),
		"key",
		"key 00000000000000075f0000000000000000 0a01641007180720012a0131",
		"key 00000000000000085f000000000000000074 0a0164",
		"lease", "lease 0000000000000010 0810103c", "lease ffffffffffffffff 08ffffffffffffffffff0110031802",
		"members",
		fmt.Sprintf("members %x %x", "ab", `{"id":171,"peerURLs":["http://127.0.0.1:2380"],"name":"n1","clientURLs":["http://127.0.0.1:2379"]}`),
		"members_removed",
		"meta",
		fmt.Sprintf("meta %x %x", "confState", `{"voters":[171],"auto_leave":false}`),
		fmt.Sprintf("meta %x 0000000000000102", "consistent_index"),
		fmt.Sprintf("meta %x 00000000000000055f0000000000000000", "finishedCompactRev"),
		fmt.Sprintf("meta %x 00000000000000065f0000000000000000", "scheduledCompactRev"),
		fmt.Sprintf("meta %x %x", "storageVersion", "3.7.0"),
		fmt.Sprintf("meta %x 0000000000000003", "term"),
		"tarn", fmt.Sprintf("tarn %x 010203000000000000000000000000ff", "store_id"),
	}
	if got := dump(t, path); !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Errorf("line %d: got %q, want %q", i, got[min(i, len(got)-1)], want[min(i, len(want)-1)])
			}
		}
	}
}

func TestMetaReopen(t *testing.T) {
	path := testPath(t)
	tr := openTest(t, Options{Path: path})
	m, err := tr.Meta()
	if want := (Meta{ScheduledCompact: -1, FinishedCompact: -1, StorageVersion: "3.7.0"}); err != nil || m != want {
		t.Fatalf("new: %+v, %v", m, err)
	}
	leases := []LeaseRecord{{ID: 5, TTL: 60, Remaining: 30}, {ID: 9, TTL: 2}}
	alarms := []AlarmRecord{{MemberID: 1, Type: 1}, {MemberID: 1 << 63, Type: 2}}
	member := MemberRecord{ID: 77, PeerURLs: []string{"http://a:1"}, Name: "x"}
	id := StoreID{9: 9}
	apply(t, tr, &Batch{Put: puts(2, 3, 10), LeasePut: append(leases, LeaseRecord{ID: 7, TTL: 1}), AlarmPut: alarms,
		Seq: new(uint64(4)), Term: new(int64(2)), ScheduledCompact: new(int64(3)), StoreID: &id, Member: &member})
	apply(t, tr, &Batch{LeaseDelete: []int64{7, 8}, AlarmDelete: alarms[:1], FinishedCompact: new(int64(3))})
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	tr = openTest(t, Options{Path: path})
	m, err = tr.Meta()
	want := Meta{StoreID: id, Seq: 4, Term: 2, ScheduledCompact: 3, FinishedCompact: 3, Revision: 4, StorageVersion: "3.7.0"}
	if err != nil || m != want {
		t.Errorf("reopened: %+v, %v; want %+v", m, err, want)
	}
	if got, err := tr.Leases(); err != nil || !slices.Equal(got, leases) {
		t.Errorf("leases %v, %v", got, err)
	}
	if got, err := tr.Alarms(); err != nil || !slices.Equal(got, alarms[1:]) {
		t.Errorf("alarms %v, %v", got, err)
	}
	if got, ok, err := tr.Member(); err != nil || !ok || fmt.Sprint(got) != fmt.Sprint(member) {
		t.Errorf("member %v, %v, %v", got, ok, err)
	}
	t.Run("REV-6", func(t *testing.T) {
		apply(t, tr, &Batch{ScheduledCompact: new(int64(900))})
		if m, err := tr.Meta(); err != nil || m.Revision != 900 {
			t.Errorf("revision %d, %v; want the scheduled compaction's", m.Revision, err)
		}
	})
}

// A file of etcd's: no private bucket, three members, an older version, a bucket
// nobody knows, and the record of a moved revision.
func TestImportedFile(t *testing.T) {
	path := testPath(t)
	inBolt(t, path, func(tx *bolt.Tx) error {
		key, _ := tx.CreateBucket(bucketKey)
		tx.CreateBucket(bucketMeta)
		members, _ := tx.CreateBucket(bucketMembers)
		for id := range uint64(3) {
			m := MemberRecord{ID: id + 10}
			members.Put(m.key(), fmt.Appendf(nil, `{"id":%d,"peerURLs":["http://p"],"isLearner":true}`, m.ID))
		}
		other, _ := tx.CreateBucket([]byte("zzz"))
		nested, _ := other.CreateBucket([]byte("nested"))
		nested.Put([]byte("k"), []byte("v"))
		key.Put(Revision{2, 0}.AppendKey(nil, false), AppendKV(nil, []byte("a"), 2, 2, 1, nil, 0))
		return key.Put(Revision{1002, 0}.AppendKey(nil, false), nil)
	})
	ro := openTest(t, Options{Path: path, ReadOnly: true})
	noFindings(t, ro)
	ro.Close()
	tr := openTest(t, Options{Path: path})
	if _, ok, err := tr.Member(); ok || err != nil {
		t.Errorf("three members: %v, %v", ok, err)
	}
	if m, err := tr.Meta(); err != nil || m.Revision != 1002 || m.StoreID != (StoreID{}) || m.Seq != 0 {
		t.Errorf("DSK-17: %+v, %v", m, err)
	}
	apply(t, tr, &Batch{Member: &MemberRecord{ID: 5}, StoreID: &StoreID{1}})
	if m, ok, err := tr.Member(); !ok || err != nil || m.ID != 5 {
		t.Errorf("the only member: %v, %v, %v", m, ok, err)
	}
	if m, err := tr.Meta(); err != nil || m.StorageVersion != "3.7.0" || m.StoreID != (StoreID{1}) {
		t.Errorf("after the first write: %+v, %v", m, err)
	}
	if len(readContent(t, tr)) != 2 {
		t.Error("records are missing")
	}
	noFindings(t, tr)
	if err := tr.Defragment(t.Context()); err != nil {
		t.Fatal(err)
	}
	tr.Close()
	inBolt(t, path, func(tx *bolt.Tx) error {
		if got := tx.Bucket([]byte("zzz")).Bucket([]byte("nested")).Get([]byte("k")); string(got) != "v" {
			t.Errorf("the unknown bucket lost its record: %q", got)
		}
		return nil
	})
	if _, err := os.Stat(path + newSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("leftover: %v", err)
	}
}
