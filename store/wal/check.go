package wal

import "errors"

// Report is what Check found.
type Report struct {
	Segments int
	Frames   int
	FirstSeq uint64 // number of the first frame, 0 if there is none
	LastSeq  uint64 // number of the last frame, 0 if there is none
	Bytes    int64  // size of all segments
	// TornBytes is the length of a torn frame at the log's end. It is no
	// damage: a crash within a write leaves it and the next Open cuts it off.
	TornBytes int64
	// Problems are errors matching ErrCorrupt, ErrForeign or ErrVersion, at
	// most two for each segment.
	Problems []error
}

// Check reads all segments, changing nothing, and calls each, which may be
// nil, for every good frame, also those up to Options.AfterSeq; the payload is
// valid only during the call. Damage does not stop it: it goes on with the
// next segment and lists the damage in the report. It fails only if a file can
// not be read or each fails.
func Check(o Options, each func(seq uint64, payload []byte) error) (Report, error) {
	o.ReadOnly = true
	o = o.withDefaults()
	var r Report
	segs, _, err := listSegments(o)
	if errors.Is(err, ErrCorrupt) {
		r.Problems = append(r.Problems, err)
		return r, nil
	}
	if err != nil {
		return r, err
	}
	r.Segments = len(segs)
	var buf []byte
	next := uint64(1)
	for i, seg := range segs {
		file := o.path(seg.first)
		if err := checkChain(file, next, seg.first, o.AfterSeq); err != nil {
			r.Problems = append(r.Problems, err)
		}
		content, err := readSegment(o, file, buf)
		if errors.Is(err, ErrCorrupt) {
			r.Problems = append(r.Problems, err)
			next = seg.first
			if i+1 < len(segs) {
				next = segs[i+1].first // how far it went is not known
			}
			continue
		}
		if err != nil {
			return r, err
		}
		buf = content
		r.Bytes += int64(len(buf))
		var eachErr error
		found, err := scanSegment(file, buf, o.StoreID, seg.first, i+1 == len(segs),
			func(seq uint64, payload []byte) error {
				if each != nil {
					eachErr = each(seq, payload)
				}
				return eachErr
			})
		if eachErr != nil {
			return r, eachErr
		}
		if err != nil {
			r.Problems = append(r.Problems, err)
			if i+1 < len(segs) {
				found.next = segs[i+1].first // how far it went is not known
			}
		} else {
			r.TornBytes = found.torn
		}
		r.Frames += found.frames
		if found.frames > 0 {
			if r.FirstSeq == 0 {
				r.FirstSeq = seg.first
			}
			r.LastSeq = found.next - 1
		}
		next = found.next
	}
	if o.MustReach {
		if err := o.reached(len(segs), next-1); err != nil {
			r.Problems = append(r.Problems, err)
		}
	}
	return r, nil
}
