package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// floorArg as the first argument makes this program the floor.
const floorArg = "serve-floor"

// listPrefix is the range that the floor has an answer for.
const listPrefix = "/registry/pods/"

// streamKeys is how many keys the floor puts into a message of RangeStream.
const streamKeys = 250

// floor is what no server in front of grpc-go can go below: a transaction is decoded,
// appended and synced, and a list is answered with bytes that are ready. It
// keeps no key.
type floor struct {
	log      *syncLog
	revision atomic.Int64
	list     mem.BufferSlice   // one RangeResponse
	stream   []mem.BufferSlice // RangeStreamResponses
}

// serveFloor serves until SIGTERM. Its arguments are the address, the directory,
// the number of keys in a list and the size of their values.
func serveFloor(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("%s takes 4 arguments, not %d", floorArg, len(args))
	}
	keys, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	valueSize, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	f := &floor{}
	f.revision.Store(1)
	if f.log, err = openSyncLog(filepath.Join(args[1], "floor-log")); err != nil {
		return err
	}
	defer f.log.close()
	if err := f.prepareLists(keys, valueSize); err != nil {
		return err
	}
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(frameCodec{}), grpc.MaxSendMsgSize(1<<31-1))
	s.RegisterService(f.desc(), f)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, s.Stop)
	return s.Serve(l)
}

func (f *floor) desc() *grpc.ServiceDesc {
	unary := func(call func(dec func(any) error) (any, error)) grpc.MethodHandler {
		return func(_ any, _ context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			return call(dec)
		}
	}
	return &grpc.ServiceDesc{
		ServiceName: pb.KV_ServiceDesc.ServiceName,
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			{MethodName: "Txn", Handler: unary(f.txn)},
			{MethodName: "Range", Handler: unary(f.answerRange)},
		},
		Streams: []grpc.StreamDesc{{StreamName: "RangeStream", ServerStreams: true, Handler: f.rangeStream}},
	}
}

// txn answers as if the condition had held and one key had been put.
func (f *floor) txn(dec func(any) error) (any, error) {
	var bytes frame
	if err := dec(&bytes); err != nil {
		return nil, err
	}
	var req pb.TxnRequest
	if err := proto.Unmarshal(bytes, &req); err != nil {
		return nil, err
	}
	if err := f.log.append(bytes); err != nil {
		return nil, err
	}
	h := &pb.ResponseHeader{Revision: f.revision.Add(1)}
	put := &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{Header: h}}}
	return &pb.TxnResponse{Header: h, Succeeded: true, Responses: []*pb.ResponseOp{put}}, nil
}

func (f *floor) answerRange(dec func(any) error) (any, error) {
	var req pb.RangeRequest
	if err := dec(&req); err != nil {
		return nil, err
	}
	if string(req.Key) == listPrefix {
		return f.list, nil
	}
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: f.revision.Load()}}, nil
}

func (f *floor) rangeStream(_ any, s grpc.ServerStream) error {
	var req pb.RangeRequest
	if err := s.RecvMsg(&req); err != nil {
		return err
	}
	for _, m := range f.stream {
		if err := s.SendMsg(m); err != nil {
			return err
		}
	}
	return nil
}

// prepareLists makes the answers to a list of keys under listPrefix.
func (f *floor) prepareLists(keys, valueSize int) error {
	end, err := proto.Marshal(&pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 2}, Count: int64(keys)})
	if err != nil {
		return err
	}
	for first := 0; first < keys; first += streamKeys {
		part := &pb.RangeResponse{}
		for i := first; i < min(first+streamKeys, keys); i++ {
			part.Kvs = append(part.Kvs, &mvccpb.KeyValue{
				Key: []byte(keyName(listPrefix, i)), CreateRevision: 2, ModRevision: 2, Version: 1, Value: newValue(valueSize),
			})
		}
		bytes, err := proto.Marshal(part)
		if err != nil {
			return err
		}
		f.list = append(f.list, mem.SliceBuffer(bytes))
		f.stream = append(f.stream, streamMessage(bytes))
	}
	f.list = append(f.list, mem.SliceBuffer(end))
	f.stream = append(f.stream, streamMessage(end))
	return nil
}

// streamMessage puts an encoded RangeResponse into a RangeStreamResponse.
func streamMessage(response []byte) mem.BufferSlice {
	head := protowire.AppendVarint(protowire.AppendTag(nil, streamResponse, protowire.BytesType), uint64(len(response)))
	return mem.BufferSlice{mem.SliceBuffer(head), mem.SliceBuffer(response)}
}
