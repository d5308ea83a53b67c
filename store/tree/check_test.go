package tree

import (
	"context"
	"errors"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

func TestCheckFindsPlantedDamage(t *testing.T) {
	put := func(bucket string, k, v []byte) func(tx *bolt.Tx) error {
		return func(tx *bolt.Tx) error { return tx.Bucket([]byte(bucket)).Put(k, v) }
	}
	record := func(rev Revision, dead bool, v []byte) func(tx *bolt.Tx) error {
		return put("key", rev.AppendKey(nil, dead), v)
	}
	kv := func(create, mod, version int64) []byte {
		return AppendKV(nil, []byte("b"), create, mod, version, nil, 0)
	}
	at := Revision{Main: 9}
	for name, c := range map[string]struct {
		plant func(tx *bolt.Tx) error
		want  string
	}{
		"record key":          {put("key", []byte("x"), nil), "not a revision"},
		"record key mark":     {put("key", append(at.AppendKey(nil, false), 'x'), kv(9, 9, 1)), "not a revision"},
		"value":               {record(at, false, []byte{0xff}), "not an encoded KeyValue"},
		"mod revision":        {record(at, false, kv(8, 8, 1)), "mod_revision"},
		"no key":              {record(at, false, AppendKV(nil, nil, 9, 9, 1, nil, 0)), "no key"},
		"tombstone":           {record(at, true, kv(9, 9, 1)), "more than a key"},
		"version 0":           {record(at, false, kv(9, 9, 0)), "can not have version"},
		"create in future":    {record(at, false, kv(10, 9, 2)), "can not have version"},
		"version 2 at create": {record(at, false, kv(9, 9, 2)), "can not have version"},
		"same version":        {record(at, false, AppendKV(nil, []byte("a"), 5, 9, 2, nil, 0)), "goes from version"},
		"a gap of versions":   {record(at, false, AppendKV(nil, []byte("a"), 5, 9, 4, nil, 0)), "goes from version"},
		"another creation":    {record(at, false, AppendKV(nil, []byte("a"), 6, 9, 3, nil, 0)), "goes from version"},
		"version after death": {record(at, false, AppendKV(nil, []byte("dead"), 6, 9, 2, nil, 0)), "after it was deleted"},
		"revision 0":          {record(Revision{}, false, nil), "start at 1"},
		"index":               {put("meta", metaIndex, []byte("x")), "instead of 8"},
		"compact revision":    {put("meta", metaFinishedCompact, []byte("x")), "not a revision"},
		"compact order":       {put("meta", metaFinishedCompact, Revision{Main: 99}.AppendKey(nil, false)), "newer than the scheduled"},
		"conf state":          {put("meta", metaConfState, []byte("{")), "not JSON"},
		"store id":            {put("tarn", privateStoreID, []byte("x")), "store id"},
		"lease key":           {put("lease", []byte("x"), nil), "8"},
		"lease id":            {put("lease", leaseKey(3), LeaseRecord{ID: 4, TTL: 1}.encode()), "has id"},
		"lease value":         {put("lease", leaseKey(3), []byte{0xff}), "protobuf"},
		"alarm":               {put("alarm", []byte{0xff}, nil), "protobuf"},
		"alarm value":         {put("alarm", AlarmRecord{MemberID: 1, Type: 1}.key(), []byte("x")), "has a value"},
		"member":              {put("members", []byte("5"), []byte("{")), "member"},
		"member id":           {put("members", []byte("5"), []byte(`{"id":6}`)), "has id"},
		"bucket as record":    {func(tx *bolt.Tx) error { _, err := tx.Bucket(bucketLease).CreateBucket([]byte("x")); return err }, "is a bucket"},
	} {
		t.Run(name, func(t *testing.T) {
			path := testPath(t)
			tr := openTest(t, Options{Path: path})
			// Planted last: what Open refuses is found by a check of an open tree too.
			apply(t, tr, &Batch{ScheduledCompact: new(int64(4)), FinishedCompact: new(int64(4)), Put: []Record{
				{Rev: Revision{5, 0}, Value: AppendKV(nil, []byte("a"), 5, 5, 1, nil, 0)},
				{Rev: Revision{6, 0}, Value: AppendKV(nil, []byte("a"), 5, 6, 2, nil, 0)},
				{Rev: Revision{7, 0}, Tombstone: true, Value: AppendKV(nil, []byte("dead"), 0, 0, 0, nil, 0)},
				{Rev: Revision{8, 0}},
			}})
			noFindings(t, tr)
			if err := tr.handle.db.Update(c.plant); err != nil {
				t.Fatal(err)
			}
			found := findings(t, tr)
			if len(found) == 0 || !strings.Contains(strings.Join(found, "\n"), c.want) {
				t.Errorf("findings %q, want one with %q", found, c.want)
			}
		})
	}
}

func TestCheckAndHashEndWithContext(t *testing.T) {
	tr := openTest(t, Options{Path: testPath(t)})
	apply(t, tr, &Batch{Put: puts(2, 2*lookAround, 10)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tr.Check(ctx, func(s string) { t.Errorf("finding %q", s) }); !errors.Is(err, context.Canceled) {
		t.Errorf("Check: %v", err)
	}
	if _, err := tr.Hash(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Hash: %v", err)
	}
	if err := tr.Defragment(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Defragment: %v", err)
	}
	noFindings(t, tr)
}
