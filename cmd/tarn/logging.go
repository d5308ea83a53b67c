package main

import (
	"io"
	"log/slog"

	"github.com/spf13/pflag"
)

type logFormat string

const (
	logText logFormat = "text"
	logJSON logFormat = "json"
)

// logLevels are the levels as flags and files name them.
var logLevels = map[string]slog.Level{
	"debug": slog.LevelDebug,
	"info":  slog.LevelInfo,
	"warn":  slog.LevelWarn,
	"error": slog.LevelError,
}

func levelValue(p *slog.Level) pflag.Value {
	return &value[slog.Level]{p, "debug|info|warn|error", "debug, info, warn, error",
		func(s string) (slog.Level, error) {
			level, ok := logLevels[s]
			if !ok {
				return 0, errNotValid
			}
			return level, nil
		},
		levelName}
}

func levelName(l slog.Level) string {
	for name, level := range logLevels {
		if level == l {
			return name
		}
	}
	return l.String()
}

// newLogger writes to w what is at least as important as level says at that moment.
func newLogger(w io.Writer, format logFormat, level slog.Leveler) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if format == logJSON {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
