package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// readSize is how much a list client takes at a time.
const readSize = 64 << 10

// listClient lists over HTTP/2 without gRPC's client: what arrives is counted and
// thrown away, so that fifty lists of 10 MB are not in memory here.
type listClient struct {
	http *http.Client
	url  string
}

func newListClient(addr string) *listClient {
	plain := new(http.Protocols)
	plain.SetUnencryptedHTTP2(true)
	return &listClient{
		http: &http.Client{Transport: &http.Transport{Protocols: plain, DisableCompression: true}},
		url:  "http://" + addr,
	}
}

func (c *listClient) close() { c.http.CloseIdleConnections() }

// list calls Range, or RangeStream, and counts what comes.
func (c *listClient) list(ctx context.Context, stream bool, req *pb.RangeRequest) (listed, error) {
	method := pb.KV_Range_FullMethodName
	if stream {
		method = pb.KV_RangeStream_FullMethodName
	}
	counter := listCounter{stream: stream}
	err := c.call(ctx, method, req, &counter)
	if err == nil {
		err = counter.end()
	}
	if err != nil {
		return listed{}, fmt.Errorf("list %s: %w", req.Key, err)
	}
	return counter.listed, nil
}

func (c *listClient) call(ctx context.Context, method string, req proto.Message, answer io.Writer) error {
	body := make([]byte, 5) // not compressed, length
	body, err := proto.MarshalOptions{}.MarshalAppend(body, req)
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(body[1:], uint32(len(body)-5))
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	post.Header.Set("Content-Type", "application/grpc")
	post.Header.Set("TE", "trailers")
	res, err := c.http.Do(post)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.CopyBuffer(answer, onlyReader{res.Body}, make([]byte, readSize)); err != nil {
		return err
	}
	code, text := res.Trailer.Get("Grpc-Status"), res.Trailer.Get("Grpc-Message")
	if code == "" { // an answer without a body has no trailer
		code, text = res.Header.Get("Grpc-Status"), res.Header.Get("Grpc-Message")
	}
	var number codes.Code
	if err := number.UnmarshalJSON([]byte(code)); err != nil {
		return fmt.Errorf("%s, without a gRPC status", res.Status)
	}
	return status.Error(number, text)
}

// onlyReader hides WriteTo, which would not use the buffer.
type onlyReader struct{ io.Reader }

// page is the number of keys of a page of a paged list, as kube-apiserver's clients ask for.
const page = 500

// listPages lists the keys page by page, all at the revision of the first page.
func (c *listClient) listPages(ctx context.Context, keys *keyset) (listed, error) {
	var all listed
	req := &pb.RangeRequest{Key: []byte(keys.prefix), RangeEnd: prefixEnd(keys.prefix), Limit: page, Revision: keys.newest()}
	for {
		got, err := c.list(ctx, false, req)
		if err == nil && got.keys > page {
			err = fmt.Errorf("a page of %d keys, of at most %d", got.keys, page)
		}
		if err != nil {
			return all, err
		}
		if all.keys == 0 {
			all.count = got.count // later pages count from their first key
		}
		all.keys += got.keys
		all.bytes += got.bytes
		if !got.more {
			return all, nil
		}
		if got.keys != page || all.keys > len(keys.names) {
			return all, fmt.Errorf("a page of %d keys after %d keys", got.keys, all.keys-got.keys)
		}
		req.Key = append([]byte(keys.names[all.keys-1]), 0)
	}
}

// timed measures one list.
func timed(list func() (listed, error)) (listed, time.Duration, error) {
	begun := time.Now()
	got, err := list()
	return got, time.Since(begun), err
}
