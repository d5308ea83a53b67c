package store

import (
	"strconv"
	"strings"
)

// A prefix is the part of a key that tells what kind of thing it is for. For Kubernetes that is
// /registry/<resource>/ or /registry/<group>/<resource>/, where a group has a dot in its
// name. The same rule, two segments or three, serves other layouts.

const (
	// maxPrefixes is how many prefixes are told apart: clients choose their keys, and must not
	// fill the memory with that.
	maxPrefixes = 1000
	// maxPrefixLen in bytes has room for a group and a resource with names as long as they may be.
	maxPrefixLen = 512
)

// prefixEnds returns where the prefixes of a key end, the longest last: each ends in a slash.
// final tells that no key of the longest one has a longer one.
func prefixEnds(key string) (ends [3]int, n int, final bool) {
	key = key[:min(len(key), maxPrefixLen)]
	at := 0
	if strings.HasPrefix(key, "/") {
		at = 1
	}
	for n < len(ends) {
		i := strings.IndexByte(key[at:], '/')
		if i < 0 {
			return ends, n, false
		}
		dotted := strings.IndexByte(key[at:at+i], '.') >= 0
		at += i + 1
		ends[n] = at
		n++
		if n == 2 && !dotted {
			return ends, n, true
		}
	}
	return ends, n, true
}

// prefixCount is what is counted for one prefix: what the index can not tell. It
// is guarded by Store.mem.
type prefixCount struct {
	prefix string
	end    string // the first key behind the prefix
	label  string // the prefix in a form that can be printed
	at     int    // its position among the counts
	above  int    // the position of the next shorter prefix
	below  int    // the number of prefixes that have this one above them
	final  bool   // there can be none below

	records int64 // not compacted, tombstones among them
	bytes   int64 // of their encoded KeyValues
	writes  uint64

	mark growthMark
}

// prefixCounts has a count per prefix. One that finds no room in it is counted with the next
// shorter one that has; what has none of its own is counted with the first, which has the
// empty prefix.
//
// Nothing is ever taken out, and whoever finds no room once finds none later. So a record
// is always taken from the count that it was added to. A restart begins anew.
type prefixCounts struct {
	byPrefix map[string]*prefixCount
	list     []*prefixCount // in order of their making, so the shorter before the longer
	last     *prefixCount   // the count used last, if it is final
}

// of returns the count that a key belongs to. It allocates only for a prefix that is new.
func (p *prefixCounts) of(key string) *prefixCount {
	if p.last != nil && strings.HasPrefix(key, p.last.prefix) {
		return p.last
	}
	ends, n, final := prefixEnds(key)
	var c *prefixCount
	if n > 0 {
		c = p.byPrefix[key[:ends[n-1]]]
	}
	if c == nil {
		c = p.descend(key, ends[:n], final)
	}
	if c.final {
		p.last = c
	}
	return c
}

// descend makes what is missing on the way to a key's longest prefix, as far as there is room.
func (p *prefixCounts) descend(key string, ends []int, final bool) *prefixCount {
	if p.list == nil {
		p.byPrefix = make(map[string]*prefixCount)
		p.list = []*prefixCount{{label: OtherKeys}}
	}
	c := p.list[0]
	for i, end := range ends {
		next := p.byPrefix[key[:end]]
		if next == nil {
			if !p.roomBelow(c) {
				return c
			}
			next = p.add(c, strings.Clone(key[:end]))
			next.final = final && i == len(ends)-1
		}
		c = next
	}
	return c
}

// roomBelow leaves a quarter of the room to others, whatever one prefix has below it.
func (p *prefixCounts) roomBelow(c *prefixCount) bool {
	return c.below < 3*(maxPrefixes-len(p.list))
}

func (p *prefixCounts) add(above *prefixCount, prefix string) *prefixCount {
	c := &prefixCount{prefix: prefix, end: prefix[:len(prefix)-1] + "0", at: len(p.list), above: above.at}
	quoted := strconv.Quote(prefix)
	if c.label = prefix; len(quoted) != len(prefix)+2 {
		c.label = quoted[1 : len(quoted)-1]
	}
	above.below++
	p.list = append(p.list, c)
	p.byPrefix[prefix] = c
	return c
}

// span is all keys with the prefix.
func (c *prefixCount) span() span {
	return span{start: c.prefix, end: c.end, open: c.prefix == ""}
}

// added counts a record that is durable.
func (p *prefixCounts) added(key string, size int) *prefixCount {
	c := p.of(key)
	c.records++
	c.bytes += int64(size)
	return c
}

// wrote is added for a record that was written now.
func (p *prefixCounts) wrote(key string, size int) { p.added(key, size).writes++ }

// removed takes records of a key off that a compaction has removed.
func (p *prefixCounts) removed(key string, dead []record) {
	if len(dead) == 0 {
		return
	}
	c := p.of(key)
	c.records -= int64(len(dead))
	for i := range dead {
		c.bytes -= int64(dead[i].size)
	}
}
