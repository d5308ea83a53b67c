package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"
)

// reload is what SIGHUP asks for. What can not be used stays as it is, and the server goes on.
func (s *serving) reload() {
	s.manager.notify.Reloading()
	s.reloadLogLevel()
	if s.reloadTLS != nil {
		if err := s.reloadTLS(); err != nil {
			s.log.Error("SIGHUP: the files of certificates can not be used; the old ones stay in use", "error", err)
		} else {
			s.log.Info("SIGHUP: the files of certificates were read again")
		}
	}
	s.tellReady()
}

// reloadLogLevel takes the log level from the configuration file as it is now.
// The other settings need a restart.
func (s *serving) reloadLogLevel() {
	if why := s.fixedLogLevel(); why != "" {
		s.log.Info("SIGHUP: the log level stays as it is", "reason", why)
		return
	}
	level, err := s.readLogLevel()
	if err != nil {
		s.log.Error("SIGHUP: the log level stays as it is", "error", err)
		return
	}
	if level == s.level.Level() {
		s.log.Info("SIGHUP: the log level is as the configuration file has it", "level", levelName(level))
		return
	}
	s.level.Set(level)
	s.log.Log(context.Background(), max(level, slog.LevelInfo), "SIGHUP: the log level is set", "level", levelName(level))
}

// fixedLogLevel is why no file can change the log level, "" if one can.
func (s *serving) fixedLogLevel() string {
	if s.opts.configFile == "" {
		return "there is no configuration file to read it from"
	}
	if from := s.from.of("log-level"); from == fromFlag || from == fromEnv("log-level") {
		return fmt.Sprintf("it comes from the %s, which wins over the configuration file", from)
	}
	return ""
}

func (s *serving) readLogLevel() (slog.Level, error) {
	// Everything as at a start, into settings of its own: a file that a start
	// would refuse is not half believed here.
	fresh := defaultServeOptions()
	fresh.configFile = s.opts.configFile
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	fresh.register(flags)
	_, err := fresh.resolve(flags, nil)
	return fresh.logLevel, err
}
