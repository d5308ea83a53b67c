package store

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tarn-kv/tarn/store/auth"
)

// bg is for requests of the server itself: access control does not stop them.
var bg = auth.Trusted(context.Background())

var everything = KeyRange{Key: []byte{0}, End: []byte{0}}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func testStore(t testing.TB) *Store {
	t.Helper()
	return openStore(t, Options{Dir: t.TempDir()})
}

// openStore opens a store that is closed when the test ends.
func openStore(t testing.TB, o Options) *Store {
	t.Helper()
	if o.freedWithin == 0 {
		o.freedWithin = 1 // a pretended full disk stays full
	}
	s, err := Open(o)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// reopen closes a store and opens its directory again.
func reopen(t testing.TB, s *Store) *Store {
	t.Helper()
	must(t, s.Close())
	return openStore(t, s.opts)
}

func single(key string) KeyRange { return KeyRange{Key: []byte(key)} }

func between(from, to string) KeyRange { return KeyRange{Key: []byte(from), End: []byte(to)} }

func putOp(key, value string) Op {
	return Op{Put: &PutRequest{Key: []byte(key), Value: []byte(value)}}
}

func deleteOp(r KeyRange) Op { return Op{Delete: &DeleteRequest{KeyRange: r}} }

func rangeOp(r KeyRange) Op { return Op{Range: &RangeRequest{KeyRange: r}} }

// do runs operations in one transaction and returns the store's revision after it.
func do(s *Store, ops ...Op) (int64, error) {
	res, err := s.Txn(bg, &TxnRequest{Success: ops})
	if err != nil {
		return 0, err
	}
	res.Close()
	return res.Revision, nil
}

func put(t testing.TB, s *Store, key, value string) int64 {
	t.Helper()
	rev, err := do(s, putOp(key, value))
	must(t, err)
	return rev
}

func putLease(t testing.TB, s *Store, key, value string, lease int64) int64 {
	t.Helper()
	rev, err := do(s, Op{Put: &PutRequest{Key: []byte(key), Value: []byte(value), Lease: lease}})
	must(t, err)
	return rev
}

func del(t testing.TB, s *Store, r KeyRange) int64 {
	t.Helper()
	rev, err := do(s, deleteOp(r))
	must(t, err)
	return rev
}

// valuesOf fetches what items stand for.
func valuesOf(s *Store, items []Item) ([]*mvccpb.KeyValue, error) {
	const num = 2
	b, err := s.AppendValues([]byte("x"), items, num)
	if err != nil {
		return nil, err
	}
	if len(b) != 1+FramedSize(items, num) {
		return nil, errors.New("FramedSize is not what AppendValues appends")
	}
	return decodeFramed(b[1:], num)
}

// decodeFramed reads repeated KeyValue fields.
func decodeFramed(b []byte, num protowire.Number) (kvs []*mvccpb.KeyValue, err error) {
	for len(b) > 0 {
		n, typ, k := protowire.ConsumeTag(b)
		if n != num || typ != protowire.BytesType {
			return nil, errors.New("wrong tag in framed values")
		}
		v, m := protowire.ConsumeBytes(b[k:])
		if m < 0 {
			return nil, protowire.ParseError(m)
		}
		kv := new(mvccpb.KeyValue)
		if err := proto.Unmarshal(v, kv); err != nil {
			return nil, err
		}
		kvs, b = append(kvs, kv), b[k+m:]
	}
	return kvs, nil
}

func decodeEvent(t testing.TB, e *Event, prev bool) *mvccpb.Event {
	t.Helper()
	ev := new(mvccpb.Event)
	must(t, proto.Unmarshal(e.Encoded(prev), ev))
	return ev
}

// read returns a range's content with its values.
func read(s *Store, q *RangeRequest) (*RangeResult, []*mvccpb.KeyValue, error) {
	res, err := s.Range(bg, q)
	if err != nil {
		return nil, nil, err
	}
	defer res.Close()
	kvs, err := valuesOf(s, res.Items)
	return res, kvs, err
}
