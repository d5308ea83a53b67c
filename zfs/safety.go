package zfs

import "strings"

// SafetyLabel begins the labels of the snapshots that a restore makes of the state that it replaces.
const SafetyLabel = "before-restore-of-"

// IsSafety tells whether a restore made the snapshot, of a state that somebody wanted to leave. Its label
// tells it, which goes along with a backup.
func (s *Snapshot) IsSafety() bool { return strings.HasPrefix(s.Label, SafetyLabel) }
