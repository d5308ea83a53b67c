package main

import (
	"fmt"
	"iter"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// frame is an encoded message. Watches and the floor use it, so that little of the two
// processors goes to the load generator.
type frame []byte

// frameCodec passes frames through; everything else is protobuf.
type frameCodec struct{}

func (frameCodec) Name() string { return "proto" }

func (frameCodec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case mem.BufferSlice:
		return v, nil
	case proto.Message:
		b, err := proto.Marshal(v)
		return mem.BufferSlice{mem.SliceBuffer(b)}, err
	}
	return nil, fmt.Errorf("no message: %T", v)
}

func (frameCodec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *frame:
		n := data.Len()
		if cap(*v) < n {
			*v = make(frame, n)
		}
		*v = (*v)[:n]
		data.CopyTo(*v)
		return nil
	case proto.Message:
		return proto.Unmarshal(data.Materialize(), v)
	}
	return fmt.Errorf("no message: %T", v)
}

// field is one field of an encoded message: a number or bytes.
type field struct {
	num   protowire.Number
	value uint64
	bytes []byte
}

// fieldsOf goes through the fields of a message up to the first malformed one.
func fieldsOf(message []byte) iter.Seq[field] {
	return func(yield func(field) bool) {
		for len(message) > 0 {
			num, kind, n := protowire.ConsumeTag(message)
			if n < 0 {
				return
			}
			message = message[n:]
			f := field{num: num}
			switch kind {
			case protowire.VarintType:
				f.value, n = protowire.ConsumeVarint(message)
			case protowire.BytesType:
				f.bytes, n = protowire.ConsumeBytes(message)
			default:
				n = protowire.ConsumeFieldValue(num, kind, message)
			}
			if n < 0 || !yield(f) {
				return
			}
			message = message[n:]
		}
	}
}
