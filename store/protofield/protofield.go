// Package protofield walks over the fields of an encoded protobuf message of which
// a few are wanted and no generated code is at hand.
package protofield

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrMalformed is returned when bytes are not a protobuf message.
var ErrMalformed = errors.New("not a protobuf message")

// Each calls each with the fields of the message b, in their order: v for bytes,
// n for varints. Fields of other types are passed over. v is a part of b. The first
// error of each ends the walk and is returned; ErrMalformed is returned when b is
// no message.
func Each(b []byte, each func(num protowire.Number, v []byte, n uint64) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return ErrMalformed
		}
		b = b[n:]
		var v []byte
		var number uint64
		switch typ {
		case protowire.BytesType:
			v, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return ErrMalformed
		}
		b = b[n:]
		if typ != protowire.BytesType && typ != protowire.VarintType {
			continue
		}
		if err := each(num, v, number); err != nil {
			return err
		}
	}
	return nil
}
