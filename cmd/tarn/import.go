package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
)

func newImportCommand(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Make a data directory from the data of another store",
		Long: `Make a data directory from the data of another store. The source is checked as a
whole before anything is written, and is never changed.

Exit codes: 0 imported, 1 failed, 2 the command line is not valid, 3 the source
can not be imported, 4 the data directory holds a store or is in use.`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImportEtcdCommand(p))
	return cmd
}

// progressLine shows on a terminal how far something is.
type progressLine struct {
	out   io.Writer // nil where nobody looks
	shown time.Time
	used  bool
}

// progressEvery is how often the line is written.
const progressEvery = 200 * time.Millisecond

// newProgressLine shows nothing if out is not a terminal.
func newProgressLine(out io.Writer) *progressLine {
	l := &progressLine{}
	if f, ok := out.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			l.out = out
		}
	}
	return l
}

// show writes the step and, if total is not 0, the share that is done.
func (l *progressLine) show(step string, done, total int64) {
	if l.out == nil || total > 0 && time.Since(l.shown) < progressEvery {
		return
	}
	l.shown, l.used = time.Now(), true
	text := step
	if total > 0 {
		text = fmt.Sprintf("%s: %d%% of %s", step, 100*done/total, roughBytes(total))
	}
	fmt.Fprintf(l.out, "\r\x1b[K%s ", text)
}

// clear takes the line away.
func (l *progressLine) clear() {
	if l.used {
		fmt.Fprint(l.out, "\r\x1b[K")
	}
}
