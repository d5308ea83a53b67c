package etcdapi

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/tarn-kv/tarn/store/etcdapi/concurrencypb"
)

func (t *lockTest) leader() (string, error) {
	r, err := t.elections.Leader(t.ctx, &concurrencypb.LeaderRequest{Name: []byte("q")})
	return string(r.GetKv().GetKey()) + "=" + string(r.GetKv().GetValue()), err
}

func (t *lockTest) proclaim(key string, rev, lease int64, value string) error {
	_, err := t.elections.Proclaim(t.ctx, &concurrencypb.ProclaimRequest{
		Leader: &concurrencypb.LeaderKey{Key: []byte(key), Rev: rev, Lease: lease}, Value: []byte(value)})
	return err
}

func (t *lockTest) resign(key string, rev int64) error {
	_, err := t.elections.Resign(t.ctx, &concurrencypb.ResignRequest{
		Leader: &concurrencypb.LeaderKey{Key: []byte(key), Rev: rev}})
	return err
}

func (t *lockTest) ok(err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func (t *lockTest) leads(want string) {
	t.Helper()
	got, err := t.leader()
	if err != nil || got != want {
		t.Errorf("leader is %s, %v, want %s", got, err, want)
	}
}

func TestElection(t *testing.T) {
	t.Run("GRPC-15 a leader's life", func(t *testing.T) {
		l := newLockTest(t)
		_, err := l.leader()
		wantStatus(t, err, codes.Unknown, "election: no leader")
		l.equal("campaign", l.campaign(l.ctx, 1), outcome{"q/1", 2, nil})
		l.leads("q/1=v")
		l.ok(l.proclaim("q/1", 2, 1, "w"))
		l.leads("q/1=w")
		l.equal("campaigning again has the header of its transaction", l.campaign(l.ctx, 1), outcome{"q/1", 3, nil})
		l.leads("q/1=v")
		wantStatus(t, l.proclaim("q/1", 3, 1, "x"), codes.Unknown, "election: not leader")
		l.ok(l.resign("q/1", 3))
		l.leads("q/1=v")
		l.ok(l.resign("q/1", 2))
		_, err = l.leader()
		wantStatus(t, err, codes.Unknown, "election: no leader")
	})
	t.Run("GRPC-15 the next one leads", func(t *testing.T) {
		l := newLockTest(t)
		l.campaign(l.ctx, 1)
		two, three := l.begin(l.campaign, 2), l.begin(l.campaign, 3)
		two.cancel()
		l.until("the key is deleted", func() bool { return l.keys() == "q/1 q/3" })
		l.ok(l.resign("q/1", 2))
		l.ends(three, "q/3")
		l.leads("q/3=v")
		l.idle()
	})
	t.Run("V-19 a lease that has ended leads nothing", func(t *testing.T) {
		l := newLockTest(t)
		l.campaign(l.ctx, 1)
		two := l.begin(l.campaign, 2)
		l.revoke(2)
		wantStatus(t, (<-two.end).err, codes.Unknown, "election: not leader")
	})
	t.Run("V-21 resigning grants no lease", func(t *testing.T) {
		l := newLockTest(t)
		before := len(l.s.store.Leases())
		l.ok(l.resign("q/1", 2))
		l.equal("leases", len(l.s.store.Leases()), before)
	})
	t.Run("GRPC-15 the leader must be named", func(t *testing.T) {
		l := newLockTest(t)
		_, err := l.elections.Proclaim(l.ctx, &concurrencypb.ProclaimRequest{})
		wantStatus(t, err, codes.Unknown, `"leader" field must be provided`)
		_, err = l.elections.Resign(l.ctx, &concurrencypb.ResignRequest{})
		wantStatus(t, err, codes.Unknown, `"leader" field must be provided`)
		wantStatus(t, l.campaign(l.ctx, 77).err, codes.Unknown, "etcdserver: requested lease not found")
	})
}
