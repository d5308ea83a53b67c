package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// tamper changes the messages of one call. A nil one changes nothing.
type tamper interface {
	// request returns what the server gets.
	request(message []byte) []byte
	// response returns what the client gets: any number of messages.
	response(message []byte) [][]byte
}

// tamperer makes the tamper of a call.
type tamperer func(method string) tamper

// proxy passes calls on to a server and lets tampers have their way.
type proxy struct {
	address   string
	back      *grpc.ClientConn
	server    *grpc.Server
	newTamper tamperer
}

// startProxy makes a proxy on an address of its own. newTamper is called for each
// call, from many goroutines.
func startProxy(to string, newTamper tamperer) (*proxy, error) {
	p := &proxy{newTamper: newTamper}
	var err error
	if p.address, err = freeAddress(); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		return nil, fmt.Errorf("start the proxy: %w", err)
	}
	if p.back, err = dial(to); err != nil {
		l.Close()
		return nil, err
	}
	p.server = grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(p.handle))
	go func() { _ = p.server.Serve(l) }() // until stop
	return p, nil
}

func (p *proxy) stop() {
	p.server.Stop()
	p.back.Close()
}

var bothWays = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

// handle passes on one call, whatever its kind.
func (p *proxy) handle(_ any, front grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(front)
	ctx, cancel := context.WithCancel(front.Context())
	defer cancel()
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, md)
	}
	back, err := p.back.NewStream(ctx, bothWays, method, grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		return err
	}
	t := p.newTamper(method)
	go func() {
		defer func() { _ = back.CloseSend() }()
		for {
			var m []byte
			if front.RecvMsg(&m) != nil {
				return
			}
			if t != nil {
				m = t.request(m)
			}
			if back.SendMsg(&m) != nil {
				return // the other direction gets the error
			}
		}
	}()
	return answer(front, back, t)
}

// answer passes on the answers of a call until its end.
func answer(front grpc.ServerStream, back grpc.ClientStream, t tamper) error {
	for {
		var m []byte
		if err := back.RecvMsg(&m); err != nil {
			front.SetTrailer(back.Trailer())
			if errors.Is(err, io.EOF) {
				return nil
			}
			return status.Convert(err).Err()
		}
		messages := [][]byte{m}
		if t != nil {
			messages = t.response(m)
		}
		for _, m := range messages {
			if err := front.SendMsg(&m); err != nil {
				return err
			}
		}
	}
}

// rawCodec leaves messages as they are: *[]byte.
type rawCodec struct{}

var _ encoding.CodecV2 = rawCodec{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
