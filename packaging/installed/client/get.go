package main

import (
	"context"
	"fmt"
	"net"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
)

// monotonic is the time since the boot in microseconds, as systemd's properties have it.
func monotonic() int64 {
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano() / 1000
}

// runGet reads one key, and prints when the connection was there and when the answer came,
// on the clock of systemd. It waits as long as the limit says.
func runGet(ctx context.Context, o settings, key string) error {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	var connected int64
	var once sync.Once
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := new(dials).dial(ctx, address)
		if err == nil {
			once.Do(func() { connected = monotonic() })
		}
		return conn, err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{o.endpoint(0)},
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(dial)}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer client.Close()
	answer, err := client.Get(ctx, key)
	if err != nil {
		return err
	}
	value := ""
	if len(answer.Kvs) == 1 {
		value = string(answer.Kvs[0].Value)
	}
	fmt.Printf("connected=%d answered=%d value=%s\n", connected, monotonic(), value)
	return nil
}
