package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tarn-kv/tarn/zfs"
)

// value is a setting's pflag.Value. The same parser serves the command line,
// the environment and the configuration file, and its error says what is valid.
type value[T any] struct {
	p      *T
	kind   string // what the help calls it
	valid  string // for the error: what can be given
	parse  func(string) (T, error)
	format func(T) string
}

func (v *value[T]) Set(text string) error {
	parsed, err := v.read(text)
	if err == nil {
		*v.p = parsed
	}
	return err
}

// Check is Set without setting.
func (v *value[T]) Check(text string) error {
	_, err := v.read(text)
	return err
}

func (v *value[T]) read(text string) (parsed T, err error) {
	if text = strings.TrimSpace(text); text == "" {
		return parsed, &invalidValue{reason: errEmpty, valid: v.valid}
	}
	if parsed, err = v.parse(text); err != nil {
		return parsed, &invalidValue{reason: err, valid: v.valid}
	}
	return parsed, nil
}

func (v *value[T]) String() string {
	if v.p == nil {
		return ""
	}
	return v.format(*v.p)
}

func (v *value[T]) Type() string { return v.kind }

// words are those that a setting with a fixed choice takes, nil for others.
func (v *value[T]) words() []string {
	if !strings.Contains(v.kind, "|") {
		return nil
	}
	return strings.Split(v.kind, "|")
}

// invalidValue is the reason why a value was refused.
type invalidValue struct {
	reason error
	valid  string
}

func (e *invalidValue) Error() string {
	if errors.Is(e.reason, errNotValid) {
		return "valid: " + e.valid
	}
	return fmt.Sprintf("%v; valid: %s", e.reason, e.valid)
}

// errEmpty is returned for a setting that is given and says nothing: with --store-id,
// --trusted-ca-file or --cors that would switch a protection off without a word.
var errEmpty = errors.New("it is empty; leave the setting out for the default")

// errNotValid is returned by parsers that have nothing to say beyond what is valid.
var errNotValid = errors.New("not valid")

func stringValue(p *string, kind, valid string) pflag.Value {
	return &value[string]{p, kind, valid,
		func(s string) (string, error) { return s, nil },
		func(s string) string { return s }}
}

func boolValue(p *bool) pflag.Value {
	return &value[bool]{p, "bool", "true or false",
		func(s string) (bool, error) {
			b, err := strconv.ParseBool(s)
			if err != nil {
				err = errNotValid
			}
			return b, err
		},
		strconv.FormatBool}
}

func durationValue(p *time.Duration, least time.Duration) pflag.Value {
	return &value[time.Duration]{p, "duration", fmt.Sprintf("a time of at least %s, such as 30s, 5m or 1h30m", shortDuration(least)),
		func(s string) (time.Duration, error) {
			d, err := time.ParseDuration(s)
			if err != nil || d < least {
				return 0, errNotValid
			}
			return d, nil
		},
		shortDuration}
}

// shortDuration leaves out the zeros that Duration.String adds: 5m, not 5m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func intValue(p *int, least, most int) pflag.Value {
	valid := fmt.Sprintf("a whole number of at least %d", least)
	if most < math.MaxInt {
		valid = fmt.Sprintf("a whole number from %d to %d", least, most)
	}
	return &value[int]{p, "number", valid,
		func(s string) (int, error) {
			n, err := strconv.Atoi(s)
			if err != nil || n < least || n > most {
				return 0, errNotValid
			}
			return n, nil
		},
		strconv.Itoa}
}

// choiceValue takes one of a few words.
func choiceValue[T ~string](p *T, choices ...T) pflag.Value {
	words := make([]string, len(choices))
	for i, c := range choices {
		words[i] = string(c)
	}
	return &value[T]{p, strings.Join(words, "|"), strings.Join(words, ", "),
		func(s string) (T, error) {
			for _, c := range choices {
				if string(c) == s {
					return c, nil
				}
			}
			return "", errNotValid
		},
		func(c T) string { return string(c) }}
}

// outputFormat is how a command prints its answer.
type outputFormat string

const (
	outputText outputFormat = "text"
	outputJSON outputFormat = "json"
)

func addOutputFlag(fs *pflag.FlagSet, p *outputFormat) {
	fs.VarP(choiceValue(p, outputText, outputJSON), "output", "o", "text for people, json for programs")
}

// tagValue is the tag of a hold.
func tagValue(p *string) pflag.Value {
	return &value[string]{p, "tag", "1 to 100 letters, digits, and - _ . :",
		func(s string) (string, error) { return s, zfs.ValidTag(s) },
		func(s string) string { return s }}
}
