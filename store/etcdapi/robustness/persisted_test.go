package main

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/store/tree"
	"go.etcd.io/etcd/tests/v3/robustness/model"
)

func putRecord(revision, sub int64, key, value string, lease int64) []byte {
	return changeRecord(recordPut, revision, sub, tree.AppendKV(nil, []byte(key), revision, revision, 1, []byte(value), lease))
}

func deleteRecord(revision, sub int64, key string) []byte {
	return changeRecord(recordDelete, revision, sub, tree.AppendKV(nil, []byte(key), 0, 0, 0, nil, 0))
}

func changeRecord(kind byte, revision, sub int64, kv []byte) []byte {
	b := binary.AppendVarint([]byte{kind}, revision)
	b = binary.AppendVarint(b, sub)
	b = binary.AppendUvarint(b, uint64(len(kv)))
	return append(b, kv...)
}

func numbers(kind byte, values ...int64) []byte {
	b := []byte{kind}
	for _, v := range values {
		b = binary.AppendVarint(b, v)
	}
	return b
}

func frame(records ...[]byte) (payload []byte) {
	for _, r := range records {
		payload = append(payload, r...)
	}
	return payload
}

func putOp(key, value string, lease int64) model.EtcdOperation {
	return model.EtcdOperation{Type: model.PutOperation, Put: model.PutOptions{Key: key, Value: model.ToValueOrHash(value), LeaseID: lease}}
}

func deleteOp(key string) model.EtcdOperation {
	return model.EtcdOperation{Type: model.DeleteOperation, Delete: model.DeleteOptions{Key: key}}
}

func txn(ops ...model.EtcdOperation) model.EtcdRequest {
	return model.EtcdRequest{Type: model.Txn, Txn: &model.TxnRequest{OperationsOnSuccess: ops}}
}

func revoke(id int64) model.EtcdRequest {
	return model.EtcdRequest{Type: model.LeaseRevoke, LeaseRevoke: &model.LeaseRevokeRequest{LeaseID: id}}
}

func grant(id int64) model.EtcdRequest {
	return model.EtcdRequest{Type: model.LeaseGrant, LeaseGrant: &model.LeaseGrantRequest{LeaseID: id}}
}

func TestLogBecomesRequests(t *testing.T) {
	p := newPersisted()
	for _, payload := range [][]byte{
		frame(numbers(recordBoot, 2)),
		frame(putRecord(2, 0, "a", "1", 0), putRecord(2, 1, "b", "2", 0), putRecord(3, 0, "c", "3", 0)),
		frame(numbers(recordGrant, 7, 60), putRecord(4, 0, "a", "4", 7), putRecord(5, 0, "b", "5", 7)),
		// A transaction, then the end of the lease with its keys, in one frame.
		frame(deleteRecord(6, 0, "c"), deleteRecord(7, 0, "a"), deleteRecord(7, 1, "b"), numbers(recordRevoke, 7)),
		frame(numbers(recordCompact, 5), append(numbers(recordAlarm, 1, 9), 1)),
		// The end of a lease without keys takes nothing from the transaction before it.
		frame(numbers(recordGrant, 8, 60), putRecord(8, 0, "d", "6", 0), deleteRecord(9, 0, "d"), numbers(recordRevoke, 8)),
	} {
		if err := p.addFrame(payload); err != nil {
			t.Fatal(err)
		}
	}
	want := []model.EtcdRequest{
		txn(putOp("a", "1", 0), putOp("b", "2", 0)), txn(putOp("c", "3", 0)),
		grant(7), txn(putOp("a", "4", 7)), txn(putOp("b", "5", 7)),
		txn(deleteOp("c")), revoke(7),
		{Type: model.Compact, Compact: &model.CompactRequest{Revision: 5}},
		grant(8), txn(putOp("d", "6", 0)), txn(deleteOp("d")), revoke(8),
	}
	if !reflect.DeepEqual(p.requests, want) {
		t.Errorf("got  %+v\nwant %+v", p.requests, want)
	}
	if p.revision != 9 || p.revoked[7] != 7 || p.revoked[8] != 9 || !reflect.DeepEqual(p.puts[putKey{"b", model.ToValueOrHash("5")}], []int64{5}) {
		t.Errorf("revision %d, revoked %v, puts %v", p.revision, p.revoked, p.puts)
	}
	if got, want := p.deletes["c"], []recordedDelete{{6, 3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("deletes of c: %v, want %v", got, want)
	}
}

func TestLogThatContradictsItself(t *testing.T) {
	first := putRecord(2, 0, "a", "1", 0)
	for name, c := range map[string]struct {
		frames [][]byte
		want   string
	}{
		"a revision twice":   {[][]byte{first, first}, "revision 2 is used again"},
		"a revision missing": {[][]byte{first, putRecord(4, 0, "a", "2", 0)}, "revision 4 follows revision 2"},
		"going back":         {[][]byte{first, putRecord(3, 0, "a", "2", 0), first}, "revision 2 follows revision 3"},
		"an unknown record":  {[][]byte{{99}}, "unknown kind 99"},
	} {
		p := newPersisted()
		var err error
		for _, f := range c.frames {
			if err == nil {
				err = p.addFrame(f)
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestFrameThatEndsTooEarly(t *testing.T) {
	for _, whole := range [][]byte{putRecord(200, 0, "key", "value", 5), numbers(recordGrant, 7000, 60), append(numbers(recordAlarm, 1, 9), 1)} {
		for n := 1; n < len(whole); n++ {
			if r, err := decodeFrame(whole[:n]); err == nil {
				t.Errorf("%d of %d bytes are read as %+v", n, len(whole), r)
			}
		}
	}
}
