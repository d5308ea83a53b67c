package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tarn-kv/tarn/store/vfs"
)

// A setting is one flag, and can come from four places. The first that has it
// wins: command line, environment, configuration file, default.

// envPrefix is what the names of Tarn's environment variables begin with.
const envPrefix = "TARN_"

// envName is the environment variable of a flag: TARN_DATA_DIR for --data-dir.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// source says where a setting's value came from.
type source string

const (
	fromDefault source = "default"
	fromFlag    source = "command line"
)

func fromEnv(flag string) source { return source("environment variable " + envName(flag)) }

func fromFile(path string, line int) source {
	return source(fmt.Sprintf("configuration file %s, line %d", path, line))
}

// sources holds the origin of each setting that was given.
type sources map[string]source

func (s sources) of(flag string) source {
	if from, ok := s[flag]; ok {
		return from
	}
	return fromDefault
}

// settingError is returned for a value that a setting can not have.
type settingError struct {
	flag, value string
	from        source
	cause       error
}

func (e *settingError) Error() string {
	return fmt.Sprintf("--%s can not be %q (from the %s): %v", e.flag, e.value, e.from, e.cause)
}

func (e *settingError) Unwrap() error { return e.cause }

// flagError puts an error of command-line parsing into this program's words.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &invalid):
		err = &settingError{invalid.GetFlag().Name, invalid.GetValue(), fromFlag, errors.Unwrap(invalid)}
	case errors.As(err, &unknown) && refusedFlag(cmd.Flags(), unknown.GetSpecifiedName()) != nil:
		err = refusedFlag(cmd.Flags(), unknown.GetSpecifiedName())
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		err = fmt.Errorf("there is no flag --%s%s; %s --help lists the flags",
			unknown.GetSpecifiedName(), didYouMean(unknown.GetSpecifiedName(), flagNames(cmd.Flags())), cmd.CommandPath())
	}
	return withExit(exitUsage, err)
}

// flagNames are the names of the flags that help shows.
func flagNames(fs *pflag.FlagSet) []string {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// layers resolves the settings of one command after its flags were parsed.
type layers struct {
	flags   *pflag.FlagSet
	ignored tolerated // nil for commands that tolerate nothing
	env     map[string]string
	from    sources
}

func newLayers(flags *pflag.FlagSet, ignored tolerated, environ []string) *layers {
	l := &layers{flags: flags, ignored: ignored, env: map[string]string{}, from: sources{}}
	for _, e := range environ {
		// An empty variable counts as not set: that is how unit files and
		// wrappers leave one out.
		if name, v, _ := strings.Cut(e, "="); strings.HasPrefix(name, envPrefix) && v != "" {
			l.env[name] = v
		}
	}
	flags.Visit(func(f *pflag.Flag) { l.from[f.Name] = fromFlag })
	return l
}

// applyEnv sets each flag that is not on the command line and has a variable.
func (l *layers) applyEnv() error {
	errs := []error{l.refusedEnv()}
	l.flags.VisitAll(func(f *pflag.Flag) {
		v, ok := l.env[envName(f.Name)]
		if !ok || l.from.of(f.Name) != fromDefault || f.Name == "help" {
			return
		}
		errs = append(errs, l.set(f, v, fromEnv(f.Name)))
	})
	return withExit(exitUsage, errors.Join(errs...))
}

// applyFile sets what is in the configuration file and came from nowhere else.
func (l *layers) applyFile(path string) error {
	if path == "" {
		return nil
	}
	text, err := vfs.ReadFile(path)
	if err != nil {
		return withExit(exitUsage, fmt.Errorf("--config-file (from the %s): %w", l.from.of("config-file"), withAdvice(err, "it must be readable by "+whoRuns())))
	}
	entries, err := parseConfigFile(path, text, l.flags)
	if err != nil {
		return withExit(exitUsage, err)
	}
	var errs []error
	for _, e := range entries {
		f := l.flags.Lookup(e.key)
		if f == nil { // one of etcd's experimental settings
			l.ignored[e.key] = true
			continue
		}
		if l.from.of(e.key) == fromDefault {
			errs = append(errs, l.set(f, e.value, fromFile(path, e.line)))
			continue
		}
		// Overridden, but still checked: a mistake should not wait in the file
		// for the day on which the flag is taken away.
		errs = append(errs, l.check(f, e.value, fromFile(path, e.line)))
	}
	return withExit(exitUsage, errors.Join(errs...))
}

func (l *layers) set(f *pflag.Flag, v string, from source) error {
	if err := f.Value.Set(v); err != nil {
		return &settingError{f.Name, v, from, err}
	}
	l.from[f.Name] = from
	return nil
}

// check tells whether f could have the value v, and leaves f as it is.
func (l *layers) check(f *pflag.Flag, v string, from source) error {
	checked, ok := f.Value.(interface{ Check(string) error })
	if !ok {
		return nil // a setting that is ignored
	}
	if err := checked.Check(v); err != nil {
		return &settingError{f.Name, v, from, err}
	}
	return nil
}

// unknownEnv are the variables with Tarn's prefix that no flag of any command has.
func (l *layers) unknownEnv(root *cobra.Command) []string {
	known := map[string]bool{}
	var learn func(*cobra.Command)
	learn = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) { known[envName(f.Name)] = true })
		for _, below := range c.Commands() {
			learn(below)
		}
	}
	learn(root)
	var names []string
	for name := range l.env {
		if !known[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
