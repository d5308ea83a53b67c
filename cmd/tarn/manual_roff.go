//go:build manual

package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// page is a manual page that is being written.
type page struct{ bytes.Buffer }

func newPage(name string, section int, date time.Time) *page {
	p := new(page)
	p.line(fmt.Sprintf(`.TH %s %d "%s" "tarn %s" "Tarn"`,
		strings.ToUpper(roff(name)), section, date.Format(time.DateOnly), roff(tarnVersion)))
	p.line(".nh\n.ad l") // names of files and flags stay whole
	return p
}

func (p *page) line(s string) { p.WriteString(s + "\n") }

func (p *page) section(name string) { p.line(".SH " + name) }

// item is a term and what it means.
func (p *page) item(term, text string) {
	p.line(".TP")
	p.line(term)
	p.line(roffLine(text))
}

// text writes paragraphs that a blank line parts. Lines that are indented are shown as they are.
func (p *page) text(s string) {
	for i, paragraph := range strings.Split(strings.TrimRight(s, "\n"), "\n\n") {
		if i > 0 {
			p.line(".PP")
		}
		literal := false
		for _, line := range strings.Split(paragraph, "\n") {
			if indented := strings.HasPrefix(line, "  "); indented != literal {
				literal = indented
				p.line(map[bool]string{true: ".RS 4\n.nf", false: ".fi\n.RE"}[literal])
			}
			if literal {
				line = strings.TrimPrefix(line, "  ")
			}
			p.line(roffLine(line))
		}
		if literal {
			p.line(".fi\n.RE")
		}
	}
}

// roffEscapes are the characters that mean something to roff, or that it would print as
// another one, which can then not be copied.
var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

func roff(s string) string { return roffEscapes.Replace(s) }

// roffLine is for text that begins a line, where a dot begins a command of roff.
func roffLine(s string) string {
	s = roff(s)
	if strings.HasPrefix(s, ".") {
		return `\&` + s
	}
	return s
}
