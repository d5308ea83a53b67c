package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// settings are what the flags say.
type settings struct {
	workloads []workload
	rounds    int
	quick     bool
	floors    bool
	dir       string
	json      string
	further   serverFlag
}

func parseSettings(args []string) (o settings, err error) {
	f := flag.NewFlagSet("sidebyside", flag.ExitOnError)
	names := f.String("w", "", "workloads, separated by commas (default: all but snapshot): "+workloadNames())
	f.IntVar(&o.rounds, "rounds", 0, "rounds of each workload; the servers take turns in each (default 3, with -quick 1)")
	f.BoolVar(&o.quick, "quick", false, "smaller loads")
	f.BoolVar(&o.floors, "floor", true, "have the floor take part in put and list")
	f.StringVar(&o.dir, "dir", "", "where data directories are made, on the file system to measure (default: the temporary directory)")
	f.StringVar(&o.json, "json", "", "also write all that was measured to this file")
	f.Var(&o.further, "server", "a further `server`, as name='command {dir} {port}'; can be repeated")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.rounds == 0 {
		o.rounds = 3
		if o.quick {
			o.rounds = 1
		}
	}
	if o.rounds < 1 {
		return o, fmt.Errorf("-rounds %d: at least 1 is needed", o.rounds)
	}
	o.workloads, err = chooseWorkloads(*names)
	return o, err
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == floorArg {
		if err := serveFloor(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "floor:", err)
			os.Exit(1)
		}
		return
	}
	o, err := parseSettings(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "sidebyside:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	good, err := compare(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sidebyside:", err)
	}
	if err != nil || !good {
		os.Exit(1)
	}
}
