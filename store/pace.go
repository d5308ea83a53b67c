package store

import "time"

const (
	// restShare is how long work in the background rests after a step, in parts of the time that
	// the step took, and restMax how long at most.
	restShare = 3
	restMax   = 50 * time.Millisecond
)

// pace goes between the steps of work on the tree that nobody is in a hurry for. Each step's syncs and those of
// the log wait for each other, so steps one behind the other would make every write slow. While nobody
// writes there is no rest.
type pace struct {
	began time.Time
	rev   int64
}

func (s *Store) newPace() pace { return pace{began: time.Now(), rev: s.published.Load()} }

// step lets a waiting checkpoint go first, and writers have the disk. ckpt.mu is held.
func (p *pace) step(s *Store) {
	s.ckpt.mu.Unlock()
	if s.published.Load() != p.rev && !s.closed.Load() {
		time.Sleep(min(restShare*time.Since(p.began), restMax))
	}
	s.ckpt.mu.Lock()
	*p = s.newPace()
}
