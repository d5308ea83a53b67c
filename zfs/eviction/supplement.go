package eviction

import "slices"

// Supplement is the part of a plan that a node lacks: the thresholds that findings of Examine say
// are missing, or have no meaning. It is for a node that counts right, as one without ZFS does, and
// is nil if nothing is missing. Errors are those of NewPlan, returned if what is missing depends on
// the size of a file system.
func Supplement(n Node, found []Finding) (*Plan, error) {
	var lacks []string
	bare := false
	for _, f := range found {
		switch f.ID {
		case FindingNoDefaults:
			bare = true
			fallthrough
		case FindingNoMemory, FindingNoDisk:
			lacks = append(lacks, f.Subject)
		case FindingInodes:
			if f.Severity == Critical && f.Fix == inodesOff {
				lacks = append(lacks, f.Subject)
			}
		}
	}
	if len(lacks) == 0 {
		return nil, nil
	}
	p := &Plan{}
	p.addMemory(n.Config)
	if !slices.Equal(lacks, []string{MemoryAvailable}) {
		var err error
		if p, err = NewPlan(n); err != nil {
			return nil, err
		}
	}
	return &Plan{Hard: slices.DeleteFunc(p.Hard, func(a Amount) bool {
		return !slices.Contains(lacks, a.Signal) && !(bare && isInodes(a.Signal))
	})}, nil
}
