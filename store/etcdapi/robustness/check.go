package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/etcd/tests/v3/robustness/validate"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// verdict is the outcome of a check.
type verdict struct {
	// Violations are what the server did wrong.
	Violations []string
	// Undecided says why there is no verdict; empty if there is one.
	Undecided string

	linearization validate.LinearizationResult
}

func (v *verdict) violated(format string, args ...any) {
	v.Violations = append(v.Violations, fmt.Sprintf(format, args...))
}

// String is "passed", or what is wrong.
func (v verdict) String() string {
	switch {
	case len(v.Violations) > 0:
		return "FAILED: " + strings.Join(v.Violations, "; ")
	case v.Undecided != "":
		return "skipped: " + v.Undecided
	}
	return "passed"
}

// check validates a history against the log that was kept in logDir. What
// the validation says goes to out. limit is for the search of a linear order.
func check(h *history, logDir string, limit time.Duration, out *os.File) (v verdict) {
	for _, p := range h.Problems {
		v.violated("%s", p)
	}
	t, err := trafficNamed(h.Plan.Traffic)
	if err != nil {
		v.Undecided = err.Error()
		return v
	}
	log, err := readLog(logDir)
	if err == nil && len(log.requests) == 0 {
		err = fmt.Errorf("read the log: %s holds no changes", logDir)
	}
	if err != nil {
		v.violated("%v", err)
		return v
	}
	if err := checkAcknowledged(h.clients, log); err != nil {
		v.violated("%v", err)
	}
	if err := checkPrevKV(h.clients); err != nil {
		v.violated("%v", err)
	}
	cfg := validate.Config{ExpectRevisionUnique: t.ExpectUniqueRevision()}
	result, err := runValidation(cfg, settle(h.clients, log), log.requests, limit, out)
	if err != nil {
		v.violated("%v", err)
		return v
	}
	v.take(result)
	return v
}

// take turns the results of the validation into a verdict.
func (v *verdict) take(r validate.RobustnessResult) {
	v.linearization = r.Linearization
	switch r.Linearization.Status {
	case validate.Timeout, validate.DeadlineExceeded:
		v.Undecided = "the search for a linear order took too long"
		return
	}
	for _, part := range []struct {
		name   string
		result validate.Result
	}{
		{"assumptions", r.Assumptions}, {"linearization", r.Linearization.Result},
		{"watch", r.Watch}, {"serializable", r.Serializable},
	} {
		if err := part.result.Error(); err != nil {
			v.violated("%s: %v", part.name, err)
		}
	}
	if len(v.Violations) == 0 && (r.Watch.Status != validate.Success || r.Serializable.Status != validate.Success) {
		v.Undecided = "the validation did not look at the watches"
	}
}

// runValidation runs etcd's validation. A history that it can not follow, for
// example an event of a revision that never was, makes it panic.
func runValidation(cfg validate.Config, clients []report.ClientReport, log []model.EtcdRequest,
	limit time.Duration, out *os.File) (result validate.RobustnessResult, err error) {
	// It prints differences to the standard output.
	stdout := os.Stdout
	os.Stdout = out
	defer func() {
		os.Stdout = stdout
		if p := recover(); p != nil {
			err = fmt.Errorf("the validation can not follow the history: %v", p)
			fmt.Fprintf(out, "%v\n%s", p, debug.Stack())
		}
	}()
	return validate.ValidateAndReturnVisualize(newLogger(out), cfg, clients, log, limit), nil
}

func newLogger(out io.Writer) *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()), zapcore.AddSync(out), zap.InfoLevel))
}
