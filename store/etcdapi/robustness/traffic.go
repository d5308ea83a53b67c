package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/tests/v3/robustness/client"
	"go.etcd.io/etcd/tests/v3/robustness/identity"
	"go.etcd.io/etcd/tests/v3/robustness/traffic"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

// namedTraffic is one mixture of requests.
type namedTraffic struct {
	name string
	traffic.Traffic
	prefix string // of the keys
}

const (
	etcdPrefix       = "key"
	kubernetesPrefix = "/registry/pods/"
)

var traffics = []namedTraffic{
	{"kubernetes", traffic.Kubernetes, kubernetesPrefix},
	{"put-delete-lease", traffic.EtcdPutDeleteLease, etcdPrefix},
	{"kubernetes-create-delete", traffic.KubernetesCreateDelete, kubernetesPrefix},
	{"put", traffic.EtcdPut, etcdPrefix},
	{"delete", traffic.EtcdDelete, etcdPrefix},
}

func trafficNamed(name string) (namedTraffic, error) {
	for _, t := range traffics {
		if t.name == name {
			return t, nil
		}
	}
	return namedTraffic{}, fmt.Errorf("there is no traffic named %q", name)
}

// Numbers of clients. With fewer, little overlaps; with more, the check has to
// try too many orders.
const (
	writers  = 6
	watchers = 4
	// keysInUse is the number of keys of etcd's own traffic at a time.
	keysInUse = 10
	// deletesAtOnce limits requests whose effect does not tell which request had it.
	deletesAtOnce = 3
)

// requestTimeout is longer than etcd's 200 ms, so that on a busy machine most
// requests still get their answer.
const requestTimeout = 500 * time.Millisecond

func init() { traffic.RequestTimeout = requestTimeout }

// load is the running traffic of a scenario.
type load struct {
	finish chan struct{}
	wg     sync.WaitGroup
}

// startTraffic starts the clients. They go on until stop, whatever becomes of
// the server, or until ctx ends.
func startTraffic(ctx context.Context, p plan, endpoint string, set *client.ClientSet) (*load, error) {
	t, err := trafficNamed(p.Traffic)
	if err != nil {
		return nil, err
	}
	endpoints := []string{endpoint}
	l := &load{finish: make(chan struct{})}
	limiter := rate.NewLimiter(rate.Limit(p.QPS), int(p.QPS))
	keys, objects := traffic.NewKeyStore(keysInUse, etcdPrefix), traffic.NewKubernetesStorage()
	err = traffic.SimulateKeyValueTraffic(ctx, &l.wg, &traffic.KeyValue{MemberClientCount: writers}, endpoints, set, t,
		traffic.RunTrafficLoopParam{
			QPSLimiter: limiter, IDs: set.IdentityProvider(), LeaseIDStorage: identity.NewLeaseIDStorage(),
			NonUniqueRequestConcurrencyLimiter: traffic.NewConcurrencyLimiter(deletesAtOnce),
			KeyStore:                           keys, Storage: objects, Finish: l.finish,
		})
	if err == nil {
		watch := traffic.Watch{MemberClientCount: watchers, RevisionOffsetRange: traffic.Range{Min: -100, Max: 100}}
		err = traffic.SimulateWatchTraffic(ctx, &l.wg, &watch, endpoints, set, t, traffic.RunWatchLoopParam{
			Config: watch, QPSLimiter: limiter, KeyStore: keys, Storage: objects, Finish: l.finish, Logger: zap.NewNop(),
		})
	}
	if err == nil && p.Compaction > 0 {
		err = traffic.SimulateCompactionTraffic(ctx, &l.wg, &traffic.Compaction{}, endpoints, set, t,
			traffic.RunCompactLoopParam{Period: p.Compaction, Finish: l.finish})
	}
	if err != nil {
		l.stop()
		return nil, fmt.Errorf("start the traffic: %w", err)
	}
	return l, nil
}

// stop ends the clients after their current requests.
func (l *load) stop() {
	close(l.finish)
	l.wg.Wait()
}
