package etcdapi

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// raw is a response that is encoded already. Its buffers belong to gRPC once it
// was returned from a handler or given to SendMsg: gRPC frees them when the
// bytes are on their way.
type raw mem.BufferSlice

// codec is the protobuf codec that also takes raw. It has no state.
type codec struct{}

func newCodec() encoding.CodecV2 { return codec{} }

// Name is the name of gRPC's own protobuf codec: on the wire they are the same.
func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case raw:
		return mem.BufferSlice(v), nil
	case proto.Message:
		return marshal(v)
	default:
		return nil, fmt.Errorf("encode message: %T is neither a protobuf message nor encoded", v)
	}
}

func marshal(v proto.Message) (mem.BufferSlice, error) {
	buf, pool := allocate(proto.Size(v))
	// The size was taken just now and nobody else has the message.
	out, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(*buf, v)
	if err != nil {
		if pool != nil {
			pool.Put(buf)
		}
		return nil, fmt.Errorf("encode %s: %w", v.ProtoReflect().Descriptor().FullName(), err)
	}
	*buf = out
	return mem.BufferSlice{mem.NewBuffer(buf, pool)}, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("decode message: %T is no protobuf message", v)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	if err := proto.Unmarshal(buf.ReadOnlyData(), m); err != nil {
		return fmt.Errorf("decode %s: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return nil
}
