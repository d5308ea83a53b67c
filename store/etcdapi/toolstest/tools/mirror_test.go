package tools

import (
	"strings"
	"testing"
)

func TestMakeMirror(t *testing.T) {
	for _, c := range []struct{ name, flags, first, second string }{
		{"everything", "", "a/1 a/2 b/1", "a/1 a/3 b/1"},
		{"a prefix", "--prefix=a/", "a/1 a/2", "a/1 a/3"},
		{"to another prefix", "--prefix=a/ --dest-prefix=copy/", "copy/1 copy/2", "copy/1 copy/3"},
		{"without a prefix", "--prefix=a/ --no-dest-prefix", "1 2", "1 3"},
		{"from a revision on", "--prefix=a/ --rev=3 --dest-prefix=a/", "a/2", "a/3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, to := start(t), start(t)
			keys := func() string { return strings.Join(strings.Fields(to.ctl("get", "--prefix", "", "--keys-only")), " ") }
			from.ctl("put", "a/1", "x") // revision 2
			from.ctl("put", "a/2", "y")
			from.ctl("put", "b/1", "z")
			from.follow(append(append([]string{"make-mirror"}, strings.Fields(c.flags)...), to.url)...)
			waitFor(t, "the mirror has "+c.first, func() bool { return keys() == c.first })
			from.ctl("del", "a/2")
			from.ctl("put", "a/3", "x")
			waitFor(t, "the mirror has "+c.second, func() bool { return keys() == c.second })
		})
	}
}
