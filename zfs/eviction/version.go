package eviction

import (
	"fmt"
	"regexp"
	"strconv"
)

// Version is a version of Kubernetes. The zero Version is not known.
type Version struct {
	Major, Minor, Patch int
	Pre                 string // alpha.1, rc.0; "" for a release
	// Text is as it was read, with what a distribution adds: v1.36.1+k3s1.
	Text string
}

var versionPattern = regexp.MustCompile(`\bv?([0-9]{1,3})\.([0-9]{1,4})\.([0-9]{1,4})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?`)

// ParseVersion reads the version in what kubelet --version, k3s --version or the
// status of a node says: the first one in the text.
func ParseVersion(text string) (Version, error) {
	m := versionPattern.FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("read the version of the kubelet: %q names none, such as v1.37.2 or v1.36.1+k3s1", text)
	}
	v := Version{Text: m[0], Pre: m[4]}
	for i, to := range []*int{&v.Major, &v.Minor, &v.Patch} {
		*to, _ = strconv.Atoi(m[i+1]) // the pattern lets through nothing else
	}
	return v, nil
}

// Known tells whether there is a version.
func (v Version) Known() bool { return v.Major > 0 }

func (v Version) String() string {
	switch {
	case v.Text != "":
		return v.Text
	case !v.Known():
		return "unknown"
	}
	s := fmt.Sprintf("v%d.%d.%d", v.Major, v.Minor, v.Patch)
	if v.Pre != "" {
		s += "-" + v.Pre
	}
	return s
}

// MarshalText makes the version a string in JSON.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (v *Version) UnmarshalText(text []byte) (err error) {
	*v = Version{}
	if string(text) != v.String() {
		*v, err = ParseVersion(string(text))
	}
	return err
}

// atLeast compares without what comes before a release: 1.37.0-rc.0 counts as 1.37.0.
func (v Version) atLeast(major, minor, patch int) bool {
	switch {
	case v.Major != major:
		return v.Major > major
	case v.Minor != minor:
		return v.Minor > minor
	}
	return v.Patch >= patch
}
