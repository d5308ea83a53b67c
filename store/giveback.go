package store

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/tarn-kv/tarn/store/tree"
	"github.com/tarn-kv/tarn/store/vfs"
)

// giveBack gives what compactions have freed in the tree's file back to the file system, if it is much. A
// checkpoint can go between its steps. Neither reads nor writes wait for it.
func (s *Store) giveBack() {
	start, sum := time.Now(), int64(0)
	s.ckpt.mu.Lock()
	defer s.ckpt.mu.Unlock()
	s.ckpt.owesSpace = false
	pace := s.newPace()
	for from := int64(0); s.stopped() == nil; pace.step(s) {
		given, next, err := s.tree.GiveBack(from)
		sum += given
		atomic.AddUint64(&s.count.BytesGivenBack, uint64(given))
		switch {
		case errors.Is(err, tree.ErrPagesHeld):
			s.ckpt.owesSpace = true // the next checkpoint tries again
			s.log.Debug("space of the tree is given back later", "reason", err)
		case errors.Is(err, tree.ErrFailed):
			s.fail(err)
		case vfs.IsNoSpace(err):
			s.log.Debug("space of the tree could not be given back for lack of space to note it", "error", err)
		case errors.Is(err, tree.ErrClosed):
		case err != nil:
			s.log.Warn("space of the tree could not be given back; the next compaction tries again", "error", err)
		}
		if from = next; err != nil || next == 0 {
			break
		}
	}
	if sum > 0 {
		s.log.Debug("gave space of the tree back to the file system", "bytes", sum, "took", time.Since(start))
	}
}

// giveBackOwed gives back what an older read has held until now.
func (s *Store) giveBackOwed() {
	s.ckpt.mu.Lock()
	owed := s.ckpt.owesSpace
	s.ckpt.mu.Unlock()
	if owed {
		s.giveBack()
	}
}
