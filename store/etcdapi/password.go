package etcdapi

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Limits and default of Config.BcryptCost, each step doubles the effort.
const (
	MinBcryptCost     = bcrypt.MinCost
	MaxBcryptCost     = bcrypt.MaxCost
	DefaultBcryptCost = bcrypt.DefaultCost
)

// passwords hashes and checks passwords. Both take tens of milliseconds of a processor on
// purpose, and anybody may cause it: so only some of the processors do it at once.
type passwords struct {
	cost  int
	slots chan struct{}

	once  sync.Once
	decoy []byte // a hash that no password fits
}

func newPasswords(cost int) *passwords {
	return &passwords{cost: cost, slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// work runs f when its turn has come. The context's error is returned if that ends before.
func (p *passwords) work(ctx context.Context, f func()) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.slots }()
	f()
	return nil
}

// hash returns bcrypt's text for a password of at most 72 bytes.
func (p *passwords) hash(ctx context.Context, password string) (text []byte, err error) {
	var failed error
	if err := p.work(ctx, func() { text, failed = bcrypt.GenerateFromPassword([]byte(password), p.cost) }); err != nil {
		return nil, toStatus(err)
	}
	if failed != nil {
		return nil, status.Error(codes.Unknown, failed.Error())
	}
	return text, nil
}

// fits checks a password against bcrypt's text. With no text it takes as long and
// fails, so that nobody learns from the time which users there are.
func (p *passwords) fits(ctx context.Context, text []byte, password string) (ok bool, err error) {
	err = p.work(ctx, func() {
		if len(text) == 0 {
			p.once.Do(func() { p.decoy, _ = bcrypt.GenerateFromPassword([]byte(newTokenPrefix()), p.cost) })
			text = p.decoy
		}
		ok = bcrypt.CompareHashAndPassword(text, []byte(password)) == nil
	})
	return ok, toStatus(err)
}
