package zfs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The names of our snapshots and bookmarks. Other snapshot tools tell theirs by
// name, so this form must never be one that theirs takes for its own.
const (
	NamePrefix = "tarn-"
	timeLayout = "20060102T150405Z"
	// exampleName shows people the form.
	exampleName = "tarn-20060102T150405Z-r123"
)

// Newest is the word that people name the newest snapshot with, so no label can be it.
const Newest = "newest"

// Properties of our snapshots. One that is not there is "".
const (
	PropRevision = "tarn-kv:revision" // decimal; a snapshot without it is not ours
	PropStoreID  = "tarn-kv:store-id" // 32 hex digits
	PropVersion  = "tarn-kv:version"  // of tarn
	PropLabel    = "tarn-kv:label"    // free text of the user
	PropVerified = "tarn-kv:verified" // see Verification
	// PropLastPush is on the dataset: time (RFC 3339) and target, separated by a blank.
	PropLastPush = "tarn-kv:last-push"
)

// Name is what the name of one of our snapshots tells.
type Name struct {
	Time     time.Time // whole seconds, UTC, by the clock of the machine then
	Revision int64     // acknowledged when the snapshot was asked for; the snapshot can hold more
	Nth      int       // 1, or more for another one with the same time and revision
}

var namePattern = regexp.MustCompile(`^tarn-([0-9]{8}T[0-9]{6}Z)-r(0|[1-9][0-9]{0,18})(?:-([1-9][0-9]{0,8}))?$`)

// String formats the name; ParseName is its inverse.
func (n Name) String() string {
	s := fmt.Sprintf("%s%s-r%d", NamePrefix, n.Time.UTC().Format(timeLayout), n.Revision)
	if n.Nth > 1 {
		s += "-" + strconv.Itoa(n.Nth)
	}
	return s
}

// ParseName reads the name of a snapshot without the dataset before it. ok is
// false if it is not exactly one that String makes.
func ParseName(s string) (n Name, ok bool) {
	m := namePattern.FindStringSubmatch(s)
	if m == nil {
		return Name{}, false
	}
	var err error
	if n.Time, err = time.Parse(timeLayout, m[1]); err != nil {
		return Name{}, false
	}
	if n.Revision, err = strconv.ParseInt(m[2], 10, 64); err != nil {
		return Name{}, false
	}
	n.Nth = 1
	if m[3] != "" {
		if n.Nth, err = strconv.Atoi(m[3]); err != nil {
			return Name{}, false
		}
	}
	return n, n.String() == s
}

// Verification is what was found when a snapshot was opened and checked.
type Verification struct {
	Time     time.Time `json:"time"` // whole seconds, UTC
	Revision int64     `json:"revision"`
	Hash     uint32    `json:"hash"` // HashKV at that revision
}

// String is the value of PropVerified: time, revision and hash, separated by blanks.
func (v Verification) String() string {
	return fmt.Sprintf("%s %d %08x", v.Time.UTC().Format(time.RFC3339), v.Revision, v.Hash)
}

// ParseVerification reads the value of PropVerified. ok is false for anything
// that String does not make.
func ParseVerification(s string) (v Verification, ok bool) {
	f := strings.Split(s, " ")
	if len(f) != 3 {
		return Verification{}, false
	}
	var errs [3]error
	v.Time, errs[0] = time.Parse(time.RFC3339, f[0])
	v.Revision, errs[1] = strconv.ParseInt(f[1], 10, 64)
	var hash uint64
	hash, errs[2] = strconv.ParseUint(f[2], 16, 32)
	v.Hash = uint32(hash)
	for _, err := range errs {
		if err != nil {
			return Verification{}, false
		}
	}
	return v, v.String() == s
}
