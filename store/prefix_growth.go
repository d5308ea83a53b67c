package store

import (
	"fmt"
	"strings"
)

// A prefix is large, so that its growth is worth a line in the log, from one of these on, or from
// a tenth of the quota.
const (
	largeKeys  = 10_000
	largeBytes = 64 << 20
)

// growthMark is how large a prefix was when it was marked: at the start, when growth was
// last warned of, or when it had become much smaller. It is guarded by checkpointer.mu.
type growthMark struct{ keys, bytes int64 }

// hasDoubled reports whether a prefix is large and at least twice what it was, and then moves the mark. So slow
// growth is told too, and each doubling once. The mark follows a fall, but not a small one: what goes up
// and down every day, or with every compaction, is no growth.
func (m *growthMark) hasDoubled(now growthMark, largeBytes int64) bool {
	if now.keys < m.keys/4 {
		m.keys = now.keys
	}
	if now.bytes < m.bytes/4 {
		m.bytes = now.bytes
	}
	if (now.keys <= largeKeys || now.keys < 2*m.keys) && (now.bytes <= largeBytes || now.bytes < 2*m.bytes) {
		return false
	}
	*m = now
	return true
}

// markGrowth remembers how large the prefixes are at the start. Nobody else uses the store yet.
func (s *Store) markGrowth() {
	all, counts := s.mem.prefixTotals()
	for i, c := range counts {
		c.mark = growthMark{all[i].Keys, all[i].RecordBytes}
	}
}

// warnOfGrowth logs which prefixes have taken off. It is called when the tree was written, so that no
// timer is needed: a prefix that grows fills the tail, and that brings a checkpoint. ckpt.mu is held.
func (s *Store) warnOfGrowth() {
	large := int64(largeBytes)
	if s.opts.Quota > 0 {
		large = min(large, s.opts.Quota/10)
	}
	all, counts := s.mem.prefixTotals()
	for i, c := range counts {
		t, was := &all[i], c.mark
		if c.mark.hasDoubled(growthMark{t.Keys, t.RecordBytes}, large) {
			s.log.Warn("a prefix has taken off: it is large, and at least twice what it was; find out what writes it, and delete what is not needed",
				"prefix", t.Prefix, "keys", t.Keys, "keys_were", was.keys, "bytes", t.RecordBytes, "bytes_were", was.bytes,
				"live_bytes", t.Bytes, "writes", t.Writes, "how", t.advice())
		}
	}
}

// advice is how to look at a prefix and to delete it where a list of all of it is too large.
func (t *PrefixTotals) advice() string {
	if t.Rest || t.Prefix == OtherKeys || strings.ContainsAny(t.Prefix, `'\`) {
		// Other prefixes lie in its range: a command to copy would delete these too.
		return "look at the keys in pages: etcdctl get --keys-only --limit 1000 --from-key KEY"
	}
	return fmt.Sprintf("count: etcdctl get --prefix '%[1]s' --count-only; a page: etcdctl get --prefix '%[1]s' --keys-only --limit 10000; "+
		"delete what lies before a key of it: etcdctl del --range '%[1]s' KEY; then compact", t.Prefix)
}
