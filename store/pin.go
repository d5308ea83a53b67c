package store

import (
	"slices"
	"sync"
)

// pins are the revisions that somebody is reading: their records stay in
// memory and in the tree while a compaction goes on above them.
type pins struct {
	mu   sync.Mutex
	revs []int64 // ascending, with repetitions
	// freed, if set, is called without the lock after the lowest pin has gone.
	freed func()
}

func (p *pins) add(rev int64) {
	p.mu.Lock()
	i, _ := slices.BinarySearch(p.revs, rev)
	p.revs = slices.Insert(p.revs, i, rev)
	p.mu.Unlock()
}

func (p *pins) remove(rev int64) {
	p.mu.Lock()
	i, _ := slices.BinarySearch(p.revs, rev)
	p.revs = slices.Delete(p.revs, i, i+1)
	lowest := i == 0
	p.mu.Unlock()
	if lowest && p.freed != nil {
		p.freed()
	}
}

// lowest returns the lowest pinned revision, or max.
func (p *pins) lowest(max int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.revs) > 0 && p.revs[0] < max {
		return p.revs[0]
	}
	return max
}

func (p *pins) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.revs)
}

// pin is one pinned revision. The zero value pins nothing.
type pin struct {
	pins *pins
	rev  int64
}

// Close lets a compaction remove what was read. It may be called more than once.
func (p *pin) Close() {
	if p.pins != nil {
		p.pins.remove(p.rev)
		p.pins = nil
	}
}
