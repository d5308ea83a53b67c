package store

// KeyRange is what a request addresses: the single key Key if End is empty,
// else all keys in [Key, End) in byte order. An End of one zero byte means no
// upper end, so {"\x00", "\x00"} is every key.
type KeyRange struct {
	Key []byte
	End []byte
}

// span is a KeyRange made uniform: keys in [start, end), or ≥ start if open.
type span struct {
	start, end string
	open       bool
}

func (r KeyRange) span() span {
	switch {
	case len(r.End) == 0:
		return span{start: string(r.Key), end: string(r.Key) + "\x00"}
	case len(r.End) == 1 && r.End[0] == 0:
		return span{start: string(r.Key), open: true}
	default:
		return span{start: string(r.Key), end: string(r.End)}
	}
}

func (s span) contains(key string) bool {
	return key >= s.start && (s.open || key < s.end)
}

func (s span) overlaps(o span) bool {
	return (s.open || o.start < s.end) && (o.open || s.start < o.end)
}

func (s span) empty() bool { return !s.open && s.end <= s.start }
