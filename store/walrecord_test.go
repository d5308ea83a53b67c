package store

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	"github.com/tarn-kv/tarn/store/wal"
)

// The bytes of the log's records. They are in data directories: a change here needs a
// new kind of record, and this test stays as it is.
func TestRecordFormat(t *testing.T) {
	b := newBatch(head{})
	b.put(Revision{Main: 300, Sub: 2}, &record{main: 300, create: 7, version: 3, lease: -1}, []byte("k"), []byte("val"))
	b.tombstone(Revision{Main: 301}, []byte("key"))
	controls := []control{
		{kind: recordGrant, a: -5, b: 60}, {kind: recordRevoke, a: 1 << 40}, {kind: recordCompact, a: 299},
		{kind: recordAlarm, a: 1, b: -9, state: alarmOn}, {kind: recordAlarm, a: 2, b: 9}, {kind: recordBoot, a: 3},
	}
	for _, c := range controls {
		b.control(c)
	}
	const want = "01d80404" + "1a" + "0a016b1007" + "18ac02" + "2003" + "2a0376616c" + "30ffffffffffffffffff01" +
		"02da0400" + "05" + "0a036b6579" +
		"030978" + "04808080808040" +
		"05d604" + "06021101" + "06041200" + "0706"
	payload := b.frame[wal.FrameHeader:]
	if got := hex.EncodeToString(payload); got != want {
		t.Errorf("records are\n%s, want\n%s", got, want)
	}
	var rec recorder
	must(t, decodeFrame(payload, &rec))
	if !reflect.DeepEqual(rec.controls, controls) {
		t.Errorf("decoded %+v, want %+v", rec.controls, controls)
	}
	if len(rec.changes) != 2 || rec.changes[0] != (replayedChange{Revision{Main: 300, Sub: 2}, false, string(payload[5:31])}) ||
		rec.changes[1] != (replayedChange{Revision{Main: 301}, true, "\n\x03key"}) {
		t.Errorf("decoded %+v", rec.changes)
	}
	for i, c := range b.changes {
		if got := string(b.frame[c.offset : c.offset+c.length]); got != rec.changes[i].value {
			t.Errorf("change %d refers to %q", i, got)
		}
	}
}

// replayedChange is a decoded change.
type replayedChange struct {
	rev   Revision
	dead  bool
	value string
}

// recorder keeps what is replayed.
type recorder struct {
	changes  []replayedChange
	controls []control
}

func (r *recorder) replayChange(rev Revision, dead bool, value []byte) error {
	r.changes = append(r.changes, replayedChange{rev, dead, string(value)})
	return nil
}

func (r *recorder) replayControl(c control) error {
	r.controls = append(r.controls, c)
	return nil
}

func TestDecodeFrameErrors(t *testing.T) {
	b := newBatch(head{})
	b.put(Revision{Main: 2}, &record{main: 2, create: 2, version: 1}, []byte("k"), []byte("v"))
	b.control(control{kind: recordAlarm, a: 1, b: 2, state: alarmOwn})
	payload := b.frame[wal.FrameHeader:]
	first := b.changes[0].offset + b.changes[0].length - wal.FrameHeader
	for n := range payload {
		err := decodeFrame(payload[:n], new(recorder))
		if whole := n == 0 || n == first; whole != (err == nil) {
			t.Errorf("cut to %d of %d bytes: %v", n, len(payload), err)
		}
	}
	for _, kind := range []byte{0, 8, 255} {
		if decodeFrame([]byte{kind, 2}, new(recorder)) == nil {
			t.Errorf("kind %d is accepted", kind)
		}
	}
	failing := errors.New("replay failed")
	if err := decodeFrame(payload, failingReplayer{failing}); !errors.Is(err, failing) {
		t.Errorf("got %v", err)
	}
}

type failingReplayer struct{ err error }

func (f failingReplayer) replayChange(Revision, bool, []byte) error { return f.err }
func (f failingReplayer) replayControl(control) error               { return f.err }

// FuzzDecodeFrame: no bytes make the decoder panic, or read past their end, and what it accepts it
// reads the same again after encoding.
func FuzzDecodeFrame(f *testing.F) {
	b := newBatch(head{})
	b.put(Revision{Main: 2}, &record{main: 2, create: 2, version: 1}, []byte("k"), []byte("v"))
	b.tombstone(Revision{Main: 2, Sub: 1}, []byte("k"))
	for kind := byte(recordGrant); kind <= recordBoot; kind++ {
		b.control(control{kind: kind, a: 5, b: 9, state: alarmOwn})
	}
	f.Add(b.frame[wal.FrameHeader:])
	f.Add([]byte{recordPut, 4, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, payload []byte) {
		var got recorder
		if decodeFrame(payload, &got) != nil {
			return
		}
		var again []byte
		for _, c := range got.changes {
			again = appendChange(again, c.rev, c.dead, len(c.value))
			again = append(again, c.value...)
		}
		for _, c := range got.controls {
			again = c.append(again)
		}
		var second recorder
		must(t, decodeFrame(again, &second))
		if !reflect.DeepEqual(got, second) {
			t.Fatalf("%v was encoded as %x and read as %v", got, again, second)
		}
	})
}

// A batch that grows moves its memory; what was handed out before stays readable.
func TestBatchGrows(t *testing.T) {
	b := newBatch(head{})
	var handed [][]byte
	for i := range 100 {
		handed = append(handed, b.put(Revision{Main: 2, Sub: int64(i)}, &record{main: 2, create: 2, version: 1}, []byte("k"), bytes.Repeat([]byte{byte(i)}, i)))
	}
	for i, c := range b.changes {
		if !bytes.Equal(b.frame[c.offset:c.offset+c.length], handed[i]) {
			t.Errorf("change %d is not what was handed out", i)
		}
	}
}
