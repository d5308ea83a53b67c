package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// process is what a command sees of the process it runs in, so that a test can
// run one without a shell.
type process struct {
	stdout, stderr io.Writer
	args, environ  []string // as os.Args without the program, and os.Environ
}

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, p process) int {
	root := newRootCommand(p)
	root.SetArgs(p.args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	addCobraCommands(root)
	err := root.ExecuteContext(ctx)
	var exit *exitError
	if err != nil && !(errors.As(err, &exit) && exit.told) {
		// Of several errors that were joined each has its line.
		fmt.Fprintf(p.stderr, "tarn: %s\n", strings.ReplaceAll(err.Error(), "\n", "\ntarn: "))
	}
	return exitCode(err)
}

func newRootCommand(p process) *cobra.Command {
	root := &cobra.Command{
		Use:   "tarn",
		Short: "Keep a Kubernetes control plane's data on one node",
		Long: `Tarn keeps a Kubernetes control plane's data: one server for the etcd v3 API on
one node, and the commands to look after it.

Try it:
  tarn serve      serve on 127.0.0.1:2379, data in ./` + defaultDataDir + `
  tarn status     ask it how it is

Exit codes: 0 done, 1 failed, 2 the command line or configuration is not valid.
Commands list their own in their help.`,
		Version:       tarnVersion,
		Args:          unknownCommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newServeCommand(p), newStatusCommand(p), newTopCommand(p), newCheckCommand(p), newImportCommand(p),
		newInitCommand(p),
		newDoctorCommand(p),
		newK3sCommand(p),
		newSnapshotCommand(p),
		newBackupCommand(p),
		newRestoreCommand(p),
		newKubeletCommand(p),
		newVersionCommand(p))
	return root
}

// addCobraCommands adds cobra's own commands, help and completion, and makes them
// refuse wrong arguments as the others do. The root's output must be set.
func addCobraCommands(root *cobra.Command) {
	completeChoices(root)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = helpTopic
		case "completion":
			c.Args = unknownCommand
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range c.Commands() {
				shell.Args = exactArgs(0)
			}
		}
	}
}

// completeChoices lets the shell offer the words of each flag with a fixed choice, and no files.
func completeChoices(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if v, ok := f.Value.(interface{ words() []string }); ok && v.words() != nil {
			// It fails only for a flag that has been registered, which is in force then.
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(v.words(), cobra.ShellCompDirectiveNoFileComp))
		}
	})
	for _, below := range cmd.Commands() {
		completeChoices(below)
	}
}

// helpTopic refuses to explain a command that does not exist.
func helpTopic(cmd *cobra.Command, args []string) error {
	topic, rest, err := cmd.Root().Find(args)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		return nil
	}
	if topic.HasSubCommands() {
		return unknownCommand(topic, rest)
	}
	return withExit(exitUsage, fmt.Errorf("%s has no command %q", topic.CommandPath(), rest[0]))
}

// unknownCommand refuses arguments of the root command: they are misspelled commands.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	err := fmt.Errorf("there is no command %q%s; %s --help lists the commands", args[0], didYouMean(args[0], names), cmd.CommandPath())
	return withExit(exitUsage, err)
}

// exactArgs refuses any other number of arguments than the command's usage line shows.
func exactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return withExit(exitUsage, fmt.Errorf("arguments: %d given, %d expected; usage: %s",
			len(args), n, cmd.UseLine()))
	}
}
