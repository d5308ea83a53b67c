package auth

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Switch is what an Update does to access control. It is written to the log: its
// numbers are fixed.
type Switch byte

const (
	Unchanged Switch = 0
	SwitchOff Switch = 1
	SwitchOn  Switch = 2
)

// Update is what a change comes to: the records that it writes. It is what the log
// holds, so that recovery needs no rules.
type Update struct {
	Revision uint64 // after the change
	Switch   Switch
	Users    []Record
	Roles    []Record
}

// Apply returns the state after an update.
//
// An error is returned when a record can not be read.
func (s *State) Apply(u *Update) (*State, error) {
	next := s.clone()
	next.revision = u.Revision
	if u.Switch != Unchanged {
		next.enabled = u.Switch == SwitchOn
	}
	for _, r := range u.Users {
		if r.Value == nil {
			delete(next.users, r.Name)
			continue
		}
		x, err := r.user()
		if err != nil {
			return nil, err
		}
		slices.Sort(x.Roles) // etcd keeps them so
		next.users[r.Name] = x
	}
	for _, r := range u.Roles {
		if r.Value == nil {
			delete(next.roles, r.Name)
			continue
		}
		x, err := r.role()
		if err != nil {
			return nil, err
		}
		next.roles[r.Name] = x
	}
	return next, nil
}

// Append appends the update's encoding.
func (u *Update) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, u.Revision)
	dst = append(dst, byte(u.Switch))
	for _, records := range [2][]Record{u.Users, u.Roles} {
		dst = binary.AppendUvarint(dst, uint64(len(records)))
		for _, r := range records {
			dst = appendBytes(dst, []byte(r.Name))
			if r.Value == nil {
				dst = append(dst, 0)
				continue
			}
			dst = append(dst, 1)
			dst = appendBytes(dst, r.Value)
		}
	}
	return dst
}

func appendBytes(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

var errShort = errors.New("update of users and roles ends too early")

// ParseUpdate decodes what Append has encoded, all of b.
func ParseUpdate(b []byte) (*Update, error) {
	p := parser{b: b}
	u := &Update{Revision: p.number(), Switch: Switch(p.byte())}
	u.Users = p.records()
	u.Roles = p.records()
	switch {
	case p.err != nil:
		return nil, p.err
	case len(p.b) > 0:
		return nil, errors.New("update of users and roles is followed by more")
	case u.Switch > SwitchOn:
		return nil, fmt.Errorf("update of users and roles has the unknown switch %d", u.Switch)
	}
	return u, nil
}

// parser reads fields and remembers that they ended too early.
type parser struct {
	b   []byte
	err error
}

func (p *parser) byte() byte {
	if len(p.b) == 0 {
		p.err = errShort
		return 0
	}
	c := p.b[0]
	p.b = p.b[1:]
	return c
}

func (p *parser) number() uint64 {
	v, n := binary.Uvarint(p.b)
	if n <= 0 {
		p.err, p.b = errShort, nil
		return 0
	}
	p.b = p.b[n:]
	return v
}

func (p *parser) bytes() []byte {
	n := p.number()
	if n > uint64(len(p.b)) {
		p.err, p.b = errShort, nil
		return nil
	}
	v := p.b[:n:n]
	p.b = p.b[n:]
	return v
}

func (p *parser) records() (out []Record) {
	for n := p.number(); n > 0 && p.err == nil; n-- {
		r := Record{Name: string(p.bytes())}
		if p.byte() != 0 {
			r.Value = append([]byte{}, p.bytes()...)
		}
		out = append(out, r)
	}
	return out
}
