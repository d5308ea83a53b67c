package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tarn-kv/tarn/store/auth"
)

// The payload of a frame of the log is a sequence of records. A record is a
// kind byte and fields: numbers as varints, byte strings with their length in front.
const (
	recordPut     = 1 // main, sub, KeyValue
	recordDelete  = 2 // main, sub, KeyValue with the key only
	recordGrant   = 3 // lease ID, TTL
	recordRevoke  = 4 // lease ID
	recordCompact = 5 // revision
	recordAlarm   = 6 // type, member ID, alarmState
	recordBoot    = 7 // term
	recordAuth    = 8 // revision, auth.Update
)

// appendChange appends the head of a change's record; the value follows.
func appendChange(dst []byte, rev Revision, tombstone bool, valueLen int) []byte {
	kind := byte(recordPut)
	if tombstone {
		kind = recordDelete
	}
	dst = append(dst, kind)
	dst = binary.AppendVarint(dst, rev.Main)
	dst = binary.AppendVarint(dst, rev.Sub)
	return binary.AppendUvarint(dst, uint64(valueLen))
}

// control is a change that is not one of the key space.
type control struct {
	kind  byte
	a, b  int64
	state alarmState // of an alarm
	auth  *auth.Update
}

func (c control) append(dst []byte) []byte {
	dst = append(dst, c.kind)
	dst = binary.AppendVarint(dst, c.a)
	switch c.kind {
	case recordGrant:
		dst = binary.AppendVarint(dst, c.b)
	case recordAlarm:
		dst = binary.AppendVarint(dst, c.b)
		dst = append(dst, byte(c.state))
	case recordAuth:
		update := c.auth.Append(nil)
		dst = binary.AppendUvarint(dst, uint64(len(update)))
		dst = append(dst, update...)
	}
	return dst
}

// replayer gets the records of a frame in order. The values stay valid.
type replayer interface {
	replayChange(rev Revision, tombstone bool, value []byte) error
	replayControl(control) error
}

var errShortRecord = errors.New("record ends too early")

// decoder reads fields and remembers the first error.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.err = errShortRecord
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.err = errShortRecord
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes() []byte {
	n, k := binary.Uvarint(d.b)
	if k <= 0 || n > uint64(len(d.b)-k) {
		d.err = errShortRecord
		return nil
	}
	v := d.b[k : k+int(n) : k+int(n)]
	d.b = d.b[k+int(n):]
	return v
}

// decodeFrame hands the records of a payload to r.
func decodeFrame(payload []byte, r replayer) error {
	d := decoder{b: payload}
	for len(d.b) > 0 {
		var err error
		switch kind := d.byte(); kind {
		case recordPut, recordDelete:
			rev := Revision{Main: d.varint(), Sub: d.varint()}
			value := d.bytes()
			if d.err == nil {
				err = r.replayChange(rev, kind == recordDelete, value)
			}
		default:
			c := d.control(kind)
			if d.err == nil {
				err = r.replayControl(c)
			}
		}
		if err = errors.Join(d.err, err); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) control(kind byte) control {
	c := control{kind: kind, a: d.varint()}
	switch kind {
	case recordGrant:
		c.b = d.varint()
	case recordAlarm:
		c.b = d.varint()
		c.state = alarmState(d.byte())
	case recordAuth:
		if update := d.bytes(); d.err == nil {
			c.auth, d.err = auth.ParseUpdate(update)
		}
	case recordRevoke, recordCompact, recordBoot:
	default:
		d.err = fmt.Errorf("unknown record kind %d: the log was written by a newer version, or is damaged", kind)
	}
	return c
}
