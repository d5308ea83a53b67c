package store

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/tarn-kv/tarn/store/auth"
	"github.com/tarn-kv/tarn/store/tree"
)

// authority holds users and roles. Both states are never changed, only replaced.
type authority struct {
	head      *auth.State // with changes that are not durable yet; guarded by Store.mu
	published atomic.Pointer[auth.State]
}

// Auth returns users and roles as they are now: what is in it is durable.
func (s *Store) Auth() *auth.State { return s.auth.published.Load() }

// ChangeAuth changes users and roles. plan gets the newest state and returns what the
// change comes to, nil for nothing; it runs while all writes wait, so it must be quick. It
// returns once the change is durable and all that is asked later sees it.
//
// An error of auth.State.Admin is returned when the context's caller may not do it,
// and the error of plan.
func (s *Store) ChangeAuth(ctx context.Context, plan func(*auth.State) (*auth.Update, error)) error {
	return s.submit(func(b *batch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		before := s.auth.head
		if err := before.Admin(auth.CallerOf(ctx)); err != nil {
			return err
		}
		u, err := plan(before)
		if err != nil || u == nil {
			return err
		}
		next, err := before.Apply(u)
		if err != nil {
			return fmt.Errorf("change users and roles: %w", err)
		}
		s.setAuth(b, next, u)
		return nil
	})
}

// setAuth applies an update to the head. Store.mu is held.
func (s *Store) setAuth(b *batch, next *auth.State, u *auth.Update) {
	before := s.auth.head
	b.control(control{kind: recordAuth, a: int64(u.Revision), auth: u})
	s.auth.head, b.auth = next, next
	b.undo = append(b.undo, func() { s.auth.head = before })
}

// loadAuth reads users and roles from the tree.
func (s *Store) loadAuth() error {
	kept, err := s.tree.Auth()
	if err != nil {
		return err
	}
	u := &auth.Update{Revision: max(kept.Revision, auth.FirstRevision)}
	if kept.Enabled {
		u.Switch = auth.SwitchOn
	}
	for _, r := range kept.Users {
		u.Users = append(u.Users, auth.Record(r))
	}
	for _, r := range kept.Roles {
		u.Roles = append(u.Roles, auth.Record(r))
	}
	next, err := auth.New().Apply(u)
	if err == nil {
		s.auth.head = next
	}
	return err
}

// addAuth adds an update to what a checkpoint writes.
func addAuth(b *tree.Batch, u *auth.Update) {
	b.AuthRevision = &u.Revision
	if u.Switch != auth.Unchanged {
		on := u.Switch == auth.SwitchOn
		b.AuthEnabled = &on
	}
	for _, r := range u.Users {
		b.AuthUsers = append(b.AuthUsers, tree.AuthRecord(r))
	}
	for _, r := range u.Roles {
		b.AuthRoles = append(b.AuthRoles, tree.AuthRecord(r))
	}
}
