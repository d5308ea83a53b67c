package auth

import (
	"cmp"
	"slices"
)

// grants are the keys that a user's roles allow, together.
type grants struct{ read, write union }

func (g *grants) covers(want Access, key, end string) bool {
	if want == ToWrite {
		return g.write.covers(spanOf(key, end))
	}
	return g.read.covers(spanOf(key, end))
}

// grantsOf works out a user's grants when they are first needed.
func (s *State) grantsOf(u *User) *grants {
	if g, ok := s.grants.Load(u.Name); ok {
		return g.(*grants)
	}
	var read, write []span
	for _, name := range u.Roles {
		r := s.roles[name]
		if r == nil {
			continue // a role that was granted and is not there allows nothing
		}
		for _, p := range r.Permissions {
			if p.Kind == Read || p.Kind == ReadWrite {
				read = append(read, spanOf(p.Key, p.End))
			}
			if p.Kind == Write || p.Kind == ReadWrite {
				write = append(write, spanOf(p.Key, p.End))
			}
		}
	}
	g, _ := s.grants.LoadOrStore(u.Name, &grants{read: unite(read), write: unite(write)})
	return g.(*grants)
}

// span is a range of keys: [start, end), or from start on if open.
type span struct {
	start, end string
	open       bool
}

func spanOf(key, end string) span {
	switch end {
	case "":
		return span{start: key, end: key + "\x00"}
	case "\x00":
		return span{start: key, open: true}
	default:
		return span{start: key, end: end}
	}
}

// union is a set of keys as spans, ascending, of which no two overlap or touch.
type union []span

// unite puts spans that overlap or touch together: a request may reach over
// several permissions if they leave no gap.
func unite(spans []span) union {
	spans = slices.DeleteFunc(spans, func(s span) bool { return !s.open && s.end <= s.start })
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	var u union
	for _, s := range spans {
		if len(u) > 0 {
			last := &u[len(u)-1]
			if last.open {
				break
			}
			if s.start <= last.end {
				last.open = s.open
				last.end = max(last.end, s.end)
				continue
			}
		}
		u = append(u, s)
	}
	return u
}

// covers reports whether all keys of s are in the union. A range that can hold no
// key must begin at one, as etcd has it.
func (u union) covers(s span) bool {
	i, found := slices.BinarySearchFunc(u, s.start, func(x span, start string) int { return cmp.Compare(x.start, start) })
	if !found {
		i-- // the last one that begins before
	}
	if i < 0 {
		return false
	}
	in := u[i]
	if in.open {
		return true
	}
	return s.start < in.end && !s.open && s.end <= in.end
}
