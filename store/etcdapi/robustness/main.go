package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

// Environment variables; the flags win over them.
const (
	EnvDuration = "TARN_ROBUSTNESS_DURATION" // -duration
	EnvSeeds    = "TARN_ROBUSTNESS_SEEDS"    // -seeds
	EnvSeed     = "TARN_ROBUSTNESS_SEED"     // -seed
	EnvReports  = "TARN_ROBUSTNESS_REPORTS"  // -reports
)

// shortPace is the pace of undisturbed traffic with -short.
const shortPace = 0.4

// memoryLimit makes the collector work harder before the check of a long history takes
// the memory of a small machine.
const memoryLimit = 2 << 30

type settings struct {
	duration    time.Duration
	seeds, seed uint64
	short, keep bool
	broken      string
	check       string
	reports     string
}

func parseSettings() (o settings, err error) {
	duration, err1 := env(EnvDuration, 0, time.ParseDuration)
	seeds, err2 := env(EnvSeeds, 2*coverage, parseUint)
	seed, err3 := env(EnvSeed, rand.Uint64N(1_000_000), parseUint)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return o, err
		}
	}
	reports, _ := env(EnvReports, filepath.Join(os.TempDir(), "tarn-robustness"), func(s string) (string, error) { return s, nil })
	flag.DurationVar(&o.duration, "duration", duration, "run more seeds until this time is over")
	flag.Uint64Var(&o.seeds, "seeds", seeds, "number of seeds to run at least")
	flag.Uint64Var(&o.seed, "seed", seed, "the first seed")
	flag.BoolVar(&o.short, "short", false, fmt.Sprintf("%d seeds with less time between the failures: every traffic and failpoint once", coverage))
	flag.StringVar(&o.broken, "broken", "", "run the broken server of that name; \"list\" lists them")
	flag.StringVar(&o.check, "check", "", "check again what is kept in this directory, and run nothing")
	flag.StringVar(&o.reports, "reports", reports, "directory for histories that did not pass")
	flag.BoolVar(&o.keep, "keep", false, "keep histories that passed, too")
	flag.Parse()
	if o.short {
		o.seeds = coverage
	}
	return o, nil
}

func parseUint(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }

func env[T any](name string, standard T, parse func(string) (T, error)) (T, error) {
	text := os.Getenv(name)
	if text == "" {
		return standard, nil
	}
	v, err := parse(text)
	if err != nil {
		return standard, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

func main() {
	debug.SetMemoryLimit(memoryLimit)
	o, err := parseSettings()
	if err != nil {
		fmt.Fprintln(os.Stderr, "robustness:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	good, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "robustness:", err)
	}
	if err != nil || !good {
		os.Exit(1)
	}
}

// run does what the settings say and returns whether nothing is wrong.
func run(ctx context.Context, o settings) (bool, error) {
	if o.check != "" {
		return checkKept(o.check)
	}
	if o.broken == "list" {
		for _, b := range brokenServers {
			fmt.Printf("%s: %s\n", b.name, b.caught)
		}
		return true, nil
	}
	planOf, err := planner(o)
	if err != nil {
		return false, err
	}
	work, err := os.MkdirTemp("", "robustness")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(work)
	s := &suite{work: work, keep: o.keep, out: os.Stdout}
	if s.reports, err = filepath.Abs(o.reports); err != nil {
		return false, err
	}
	if s.bins, err = findBinaries(work); err != nil {
		return false, err
	}
	err = s.runMany(ctx, o.seed, o.seeds, o.duration, planOf)
	return s.sumUp(), err
}

// planner returns what makes a plan of a seed.
func planner(o settings) (func(uint64) plan, error) {
	b, err := brokenNamed(o.broken)
	switch {
	case err != nil:
		return nil, err
	case o.broken != "":
		return b.plan, nil
	}
	pace := 1.0
	if o.short {
		pace = shortPace
	}
	return func(seed uint64) plan { return newPlan(seed, pace) }, nil
}

// checkKept checks the history in a report and shows what the validation says.
func checkKept(path string) (bool, error) {
	h, err := loadReport(path)
	if err != nil {
		return false, err
	}
	v := check(h, filepath.Join(path, keptSegments), checkLimit, os.Stdout)
	fmt.Printf("%v\n%v\n%v\n", h.Plan, h.figures(), v)
	return len(v.Violations) == 0 && v.Undecided == "", nil
}
