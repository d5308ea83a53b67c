package main

import (
	"bytes"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// onWatches tampers with each watch stream by itself.
func onWatches(newTamper func() tamper) func() tamperer {
	return func() tamperer {
		return func(method string) tamper {
			if method != watchMethod {
				return nil
			}
			return newTamper()
		}
	}
}

// resumeTamper begins watches in the past one revision too late.
type resumeTamper struct{}

func (resumeTamper) response(m []byte) [][]byte { return [][]byte{m} }

func (resumeTamper) request(m []byte) []byte {
	r := &pb.WatchRequest{}
	if proto.Unmarshal(m, r) != nil || r.GetCreateRequest().GetStartRevision() < 2 {
		return m
	}
	r.GetCreateRequest().StartRevision++
	b, err := proto.Marshal(r)
	if err != nil {
		return m
	}
	return b
}

// staleReads answers some reads with what an equal read was answered before.
func staleReads() tamperer {
	cache := &answers{every: every{n: tamperEvery}, byRequest: map[string][]byte{}}
	return func(method string) tamper {
		if method != rangeMethod {
			return nil
		}
		return &staleTamper{cache: cache}
	}
}

// answers are what reads were answered lately.
type answers struct {
	every     every
	mu        sync.Mutex
	byRequest map[string][]byte
}

type staleTamper struct {
	cache *answers
	asked []byte
}

func (t *staleTamper) request(m []byte) []byte {
	t.cache.mu.Lock()
	defer t.cache.mu.Unlock()
	t.asked = m
	return m
}

func (t *staleTamper) response(m []byte) [][]byte {
	t.cache.mu.Lock()
	defer t.cache.mu.Unlock()
	old, known := t.cache.byRequest[string(t.asked)]
	if known && !bytes.Equal(old, m) && t.cache.every.now() {
		return [][]byte{old}
	}
	t.cache.byRequest[string(t.asked)] = m
	return [][]byte{m}
}

// messagesBeforeSilence is more than most streams of the traffic get.
const messagesBeforeSilence = 300

// silentTamper passes on nothing more after some messages.
type silentTamper struct{ messages int }

func (*silentTamper) request(m []byte) []byte { return m }

func (t *silentTamper) response(m []byte) [][]byte {
	t.messages++
	if t.messages > messagesBeforeSilence {
		return nil
	}
	return [][]byte{m}
}
