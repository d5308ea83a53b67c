//go:build manual

package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// commandPage is the manual page of one command.
func commandPage(cmd *cobra.Command, date time.Time) []byte {
	p := newPage(pageName(cmd), 1, date)
	p.section("NAME")
	p.line(roff(pageName(cmd)) + ` \- ` + roff(lowerFirst(cmd.Short)))
	p.section("SYNOPSIS")
	p.line(".B " + roff(cmd.UseLine()))
	description, exits := splitExits(cmd.Long)
	p.section("DESCRIPTION")
	p.text(description)
	if below := pagesBelow(cmd); len(below) > 0 {
		p.section("COMMANDS")
		for _, c := range below {
			p.item(`\fB`+roff(c.CommandPath())+`\fR`, c.Short)
		}
	}
	if cmd.Flags().HasAvailableFlags() {
		p.section("OPTIONS")
		p.flags(cmd.Flags())
	}
	if exits != "" {
		p.section("EXIT STATUS")
		p.text(exits)
	}
	p.section("SEE ALSO")
	p.line(strings.Join(seeAlso(cmd), ",\n"))
	return p.Bytes()
}

// configPage is the page of the configuration file: the settings of tarn serve.
func configPage(root *cobra.Command, date time.Time) []byte {
	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		panic(err) // it is a command of this program
	}
	p := newPage("tarn.yaml", 5, date)
	p.section("NAME")
	p.line(`tarn.yaml \- settings of tarn serve`)
	p.section("SYNOPSIS")
	p.line(".I " + roff(installedConfigFile))
	p.section("DESCRIPTION")
	p.text(`The configuration file of tarn serve, which --config-file names. It is one YAML
document: a line for each setting, whose key is the name of a flag. A flag and the
environment (TARN_DATA_DIR for data-dir) win over a line of the file, which is
checked all the same. An unknown key, a key that is given twice and an empty value
are errors. Settings with several values take a list, or one text with commas. A
number of bytes can have KiB, MiB or GiB behind it.

tarn init adds the lines data-dir and dataset. The commands snapshot, restore and
backup read the file, too, to find the data.

SIGHUP (systemctl reload tarn.service) reads log-level and the files of certificates
again. All other settings need a restart.

As installed, addresses are not set here: the sockets of tarn.socket and
tarn-metrics.socket take the place of listen-client-urls and listen-metrics-urls.`)
	p.section("SETTINGS")
	p.settings(serve.Flags())
	p.section("EXAMPLE")
	p.text("  data-dir: /var/lib/tarn\n  dataset: tank/tarn\n  quota-backend-bytes: 4GiB\n  log-level: info")
	p.section("FILES")
	p.item(`\fI`+roff(installedConfigFile)+`\fR`, "what the installed service reads")
	p.section("SEE ALSO")
	p.line("\\fBtarn\\-serve\\fR(1),\n\\fBtarn\\-init\\fR(1)")
	return p.Bytes()
}

// flags lists what can be given on the command line.
func (p *page) flags(fs *pflag.FlagSet) {
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		head := `\fB` + roff("--"+f.Name) + `\fR`
		if f.Shorthand != "" {
			head = `\fB` + roff("-"+f.Shorthand) + `\fR, ` + head
		}
		kind, usage := pflag.UnquoteUsage(f)
		if kind != "" {
			head += ` \fI` + roff(kind) + `\fR`
		}
		p.item(head, usage+defaultOf(f))
	})
}

// settings lists what can be in the configuration file.
func (p *page) settings(fs *pflag.FlagSet) {
	keys := configKeys(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(keys, f.Name) {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		if kind == "" {
			kind = "true or false"
		}
		p.item(`\fB`+roff(f.Name+":")+`\fR \fI`+roff(kind)+`\fR`, usage+defaultOf(f))
	})
}

func defaultOf(f *pflag.Flag) string {
	switch {
	case f.DefValue == "", f.DefValue == "[]", f.DefValue == "false" && f.NoOptDefVal != "":
		return ""
	case strings.Contains(f.Usage, "(default"):
		return ""
	}
	return fmt.Sprintf(" (default %s)", f.DefValue)
}

func pagesBelow(cmd *cobra.Command) (below []*cobra.Command) {
	for _, c := range cmd.Commands() {
		if hasPage(c) {
			below = append(below, c)
		}
	}
	return below
}

// seeAlso is the command above, and what is beside or below this one.
func seeAlso(cmd *cobra.Command) (refs []string) {
	around := pagesBelow(cmd)
	if cmd.HasParent() {
		around = append([]*cobra.Command{cmd.Parent()}, around...)
		if cmd.Parent().HasParent() {
			around = append(around, pagesBelow(cmd.Parent())...)
		}
	}
	for _, c := range around {
		if c != cmd {
			refs = append(refs, `\fB`+roff(pageName(c))+`\fR(1)`)
		}
	}
	return append(refs, `\fBtarn.yaml\fR(5)`)
}

const exitsHeading = "Exit codes:"

// splitExits takes the paragraph with the exit codes out of a help text.
func splitExits(long string) (description, exits string) {
	var rest []string
	for _, paragraph := range strings.Split(long, "\n\n") {
		if text, ok := strings.CutPrefix(paragraph, exitsHeading); ok {
			exits = strings.TrimSpace(text)
			continue
		}
		rest = append(rest, paragraph)
	}
	return strings.Join(rest, "\n\n"), exits
}

func lowerFirst(s string) string {
	if s == "" || len(s) > 1 && bytes.ContainsAny([]byte{s[1]}, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
