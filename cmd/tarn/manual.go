//go:build manual

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// Built with the tag manual this program is another one: it writes the manual pages and the
// shell completions into the directory that it is given. They come from the same tree of
// commands as the help, and the code that writes them is not in the program that is shipped.
func main() {
	if err := writeManual(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func writeManual(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: manual DIR")
	}
	date, err := manualDate()
	if err != nil {
		return err
	}
	root := newRootCommand(process{stdout: io.Discard, stderr: io.Discard})
	addCobraCommands(root)
	for _, dir := range []string{"man1", "man5", "completions"} {
		if err := os.MkdirAll(filepath.Join(args[0], dir), 0o755); err != nil {
			return err
		}
	}
	if err := writeCommandPages(root, args[0], date); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(args[0], "man5", "tarn.yaml.5"), configPage(root, date), 0o644); err != nil {
		return err
	}
	completions := filepath.Join(args[0], "completions")
	return errors.Join(
		root.GenBashCompletionFileV2(filepath.Join(completions, "tarn.bash"), true),
		root.GenZshCompletionFile(filepath.Join(completions, "tarn.zsh")),
		root.GenFishCompletionFile(filepath.Join(completions, "tarn.fish"), true))
}

// manualDate is the time of the source where the build says it, so that the same
// source makes the same pages.
func manualDate() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Now().UTC(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH must be a number of seconds: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// writeCommandPages writes a page for a command and each one below it.
func writeCommandPages(cmd *cobra.Command, dir string, date time.Time) error {
	name := filepath.Join(dir, "man1", pageName(cmd)+".1")
	if err := os.WriteFile(name, commandPage(cmd, date), 0o644); err != nil {
		return err
	}
	for _, below := range cmd.Commands() {
		if !hasPage(below) {
			continue
		}
		if err := writeCommandPages(below, dir, date); err != nil {
			return err
		}
	}
	return nil
}

// hasPage leaves out the commands of cobra, which are about this program's help.
func hasPage(cmd *cobra.Command) bool {
	return cmd.IsAvailableCommand() && cmd.Name() != "help" && cmd.Name() != "completion"
}
