package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A setting that someone relies on must never be ignored, and every one is explained.
func TestRefusedSettings(t *testing.T) {
	o := defaultServeOptions()
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.register(fs)
	for _, r := range refusedSettings {
		if r.why == "" || r.instead == "" {
			t.Errorf("%v is not explained", r.names)
		}
		for _, name := range r.names {
			if fs.Lookup(name) != nil {
				t.Errorf("--%s is accepted", name)
			}
		}
	}
	for name, want := range map[string]bool{"wal-dir": true, "discovery": true, "discovery-token": true, "wal-dirs": false, "data-dir": false, "name": false} {
		if got := refused(name) != nil; got != want {
			t.Errorf("%s is refused: %v", name, got)
		}
	}
}

// The manual has the same settings, reasons and ways out as the messages.
func TestRefusedSettingsAreInTheManual(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repoRoot, "docs/configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| refused | why | instead |")
	if !ok {
		t.Fatal("docs/configuration.md has no table of refused settings")
	}
	var documented, want []string
	plain := strings.NewReplacer("`", "", "…", "")
	for _, row := range regexp.MustCompile(`(?m)^\| (`+"`"+`.*) \|$`).FindAllStringSubmatch(table, -1) {
		documented = append(documented, plain.Replace(row[1]))
	}
	for _, r := range refusedSettings {
		want = append(want, plain.Replace(strings.Join([]string{strings.Join(r.names, ", "), r.why, r.instead}, " | ")))
	}
	for _, row := range want {
		if !slices.Contains(documented, row) {
			t.Errorf("docs/configuration.md lacks the row\n%s", row)
		}
	}
	if len(documented) != len(want) {
		t.Errorf("docs/configuration.md has %d refused settings, and there are %d", len(documented), len(want))
	}
}
