package tree

import (
	"errors"
	"testing"
)

// What bbolt says when it stumbles over a page is a finding about the page, and not about bbolt.
func TestPlainFinding(t *testing.T) {
	for text, want := range map[string]string{
		"panic: assertion failed: Page expected to be: 7, but self identifies as 0": "Page expected to be: 7, but self identifies as 0",
		"page 7: already freed": "page 7: already freed",
	} {
		if got := plainFinding(errors.New(text)); got != want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	if got := damaged("check", "tree.db", "assertion failed: page 7").Error(); got != "tree: check tree.db: the file is damaged (page 7)" {
		t.Error(got)
	}
}
