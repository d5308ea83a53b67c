package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	keysOfWriter = 10
	// everyOther: each tenth watch is of all keys, the others of one writer's.
	everyOther = 10
	// watchesOfClient share a connection and a stream.
	watchesOfClient = 20
)

// load is what a number of clients did and were told.
type load struct {
	settings
	run     int64 // tells the values of this run from those of others
	secure  *tls.Config
	dials   dials
	journal *journal
	watches []*watch
	knocks  []*knocker
	reads   *gaps
	writes  *gaps
	clients []*clientv3.Client

	mu     sync.Mutex
	newest map[string]int64 // revision of the last acknowledged write, by key
	cut    map[string]int   // requests without an answer, by error
	wrong  []error
}

// runLoad runs the clients until ctx ends, then checks everything.
func runLoad(ctx context.Context, o settings) (err error) {
	l := &load{settings: o, run: time.Now().UnixMilli(), reads: newGaps("reads"), writes: newGaps("writes"),
		newest: map[string]int64{}, cut: map[string]int{}}
	if l.secure, err = o.tls(); err != nil {
		return err
	}
	if l.journal, err = openJournal(o.journal); err != nil {
		return err
	}
	defer l.close()
	watching, endWatches := context.WithCancel(context.Background())
	defer endWatches()
	if err := l.startWatches(watching); err != nil {
		return err
	}
	clients, err := l.startClients(ctx)
	if err != nil {
		return err
	}
	if o.ready != "" {
		if err := os.WriteFile(o.ready, nil, 0o644); err != nil {
			return err
		}
	}
	clients.Wait()
	return l.check(endWatches)
}

func (l *load) close() {
	for _, c := range l.clients {
		c.Close()
	}
}

// connect makes a client with connections of its own.
func (l *load) connect(n int) (*clientv3.Client, error) {
	client, err := l.dials.client(l.endpoint(n), l.secure)
	if err == nil {
		l.clients = append(l.clients, client)
	}
	return client, err
}

func writerPrefix(n int) string { return fmt.Sprintf("%s%d/", prefix, n) }

func (l *load) startWatches(ctx context.Context) error {
	var client *clientv3.Client
	for n := range l.settings.watches {
		if n%watchesOfClient == 0 {
			var err error
			if client, err = l.connect(n / watchesOfClient); err != nil {
				return err
			}
		}
		begin, cancel := context.WithTimeout(ctx, l.limit)
		now, err := client.Get(begin, fenceKey)
		cancel()
		if err != nil {
			return fmt.Errorf("a read before the watches: %w", err)
		}
		w := &watch{prefix: prefix, from: now.Header.Revision + 1}
		if n%everyOther != 0 {
			w.prefix = writerPrefix(n % l.writers)
		}
		if err := w.start(ctx, client); err != nil {
			return err
		}
		l.watches = append(l.watches, w)
	}
	return nil
}

// startClients returns when each has had an answer.
func (l *load) startClients(ctx context.Context) (*sync.WaitGroup, error) {
	running, answered := new(sync.WaitGroup), new(sync.WaitGroup)
	start := func(n int, request func(*clientv3.Client, int)) error {
		client, err := l.connect(n)
		if err != nil {
			return err
		}
		answered.Add(1)
		running.Go(func() {
			for i := 0; i == 0 || ctx.Err() == nil; i++ {
				request(client, i)
				if i == 0 {
					answered.Done()
				}
				pause(ctx, l.pause)
			}
		})
		return nil
	}
	for n := range l.writers {
		if err := start(n, func(c *clientv3.Client, i int) { l.write(c, n, i) }); err != nil {
			return nil, err
		}
	}
	for n := range l.readers {
		if err := start(n, func(c *clientv3.Client, _ int) { l.read(c) }); err != nil {
			return nil, err
		}
	}
	for n := range 2 {
		k := newKnocker(l.endpoint(n), &l.dials, l.secure)
		l.knocks = append(l.knocks, k)
		running.Go(func() { k.run(ctx, l.settings) })
	}
	answered.Wait()
	return running, nil
}

func (l *load) write(client *clientv3.Client, writer, i int) {
	ctx, cancel := context.WithTimeout(context.Background(), l.limit)
	defer cancel()
	w := write{key: fmt.Sprintf("%s%d", writerPrefix(writer), i%keysOfWriter), value: fmt.Sprintf("%d-%d-%d", l.run, writer, i)}
	answer, err := client.Put(ctx, w.key, w.value)
	if err != nil {
		l.unanswered(err)
		return
	}
	w.revision = answer.Header.Revision
	l.writes.answered()
	if err := l.journal.add(w); err != nil {
		l.blame(err)
	}
	l.mu.Lock()
	l.newest[w.key] = w.revision
	l.mu.Unlock()
}

// read reads a key: it must be as new as what was acknowledged before.
func (l *load) read(client *clientv3.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), l.limit)
	defer cancel()
	key := fmt.Sprintf("%s%d", writerPrefix(rand.IntN(l.writers)), rand.IntN(keysOfWriter))
	l.mu.Lock()
	least := l.newest[key]
	l.mu.Unlock()
	answer, err := client.Get(ctx, key)
	if err != nil {
		l.unanswered(err)
		return
	}
	l.reads.answered()
	got := int64(0)
	if len(answer.Kvs) == 1 {
		got = answer.Kvs[0].ModRevision
	}
	if got < least {
		l.blame(fmt.Errorf("a read of %s gave its revision %d, after %d was acknowledged", key, got, least))
	}
}

// unanswered counts a request whose fate is open. One that nobody answered for a long time is
// an error.
func (l *load) unanswered(err error) {
	l.mu.Lock()
	l.cut[kindOf(err)]++
	l.mu.Unlock()
	if errors.Is(err, context.DeadlineExceeded) {
		l.blame(fmt.Errorf("no answer for %v: %w", l.limit, err))
	}
}

func (l *load) blame(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, err)
}
