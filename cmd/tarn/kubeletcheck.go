package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/zfs/eviction"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

func newKubeletCheckCommand(p process) *cobra.Command {
	opts := defaultKubeletOptions()
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say what the kubelet makes of this machine's file systems",
		Long: `Read how the kubelet is configured, ask for its version, look at its file systems,
and say what it computes from all that: for each threshold what is configured and
where, what the kubelet takes it for on this version, and at how many free bytes it
really fires. Then what is wrong, the gravest first, why, and what to do.

It reads the kubelet's files, drop-ins and flags, those of k3s, and the units of
systemd. With --kubeconfig the running kubelet is asked as well. Nothing is changed.

It works without root, but then some files can not be read; what is missing is said.
It works without ZFS, too, where there is little to say.

For a machine that is not recognised, name --config, --config-dir, --root-dir,
--image-dir and --kubelet-version.

Each flag can be an environment variable, such as TARN_KUBECONFIG for --kubeconfig.

Exit codes: 0 nothing to do, 1 failed, 2 the command line is not valid, 3 there are
warnings, 4 there is something critical: the kubelet does not start, or pods are or
may be evicted for nothing, or the disk can fill up, 5 neither, but something could
not be looked at.`,
		Args: exactArgs(0),
	}
	fs := cmd.Flags()
	opts.register(fs)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := newLayers(fs, nil, p.environ).applyEnv(); err != nil {
			return err
		}
		if err := opts.validate(); err != nil {
			return withExit(exitUsage, err)
		}
		return runKubeletCheck(cmd.Context(), opts, p.stdout)
	}
	return cmd
}

// kubeletCheckReport is what tarn kubelet check prints; the JSON names are stable.
type kubeletCheckReport struct {
	Layout      string           `json:"layout"` // "" if no kubelet was recognised
	Version     eviction.Version `json:"version"`
	VersionFrom string           `json:"versionFrom"`
	ConfigFile  string           `json:"configFile"`
	ConfigDir   string           `json:"configDir"`
	// Node is the name of the node whose kubelet was asked, "" if none was.
	Node string `json:"node"`
	// Notes are about the configuration; those in Unseen tell what could not be looked at.
	Notes  []nodeconf.Note `json:"notes"`
	Unseen []nodeconf.Note `json:"unseen"`
	// Partial tells that files of the configuration can not be read.
	Partial bool `json:"partial"`
	// Judged tells that Config is what Examined is about. Else it is what could be read, and nothing is worked out of it.
	Judged bool `json:"judged"`
	// Config, Facts, Live and Examined are null if they are not known.
	Config   *eviction.Config `json:"config"`
	Facts    *eviction.Facts  `json:"facts"`
	Live     *eviction.Live   `json:"live"`
	Examined *eviction.Report `json:"examined"`
	Critical int              `json:"critical"`
	Warnings int              `json:"warnings"`
	// Findings are those of Examined and what Notes come to, the gravest first.
	Findings []eviction.Finding `json:"findings"`
}

func newKubeletCheckReport(l *kubeletLook) kubeletCheckReport {
	r := kubeletCheckReport{
		Layout: l.node.Layout, Version: l.node.Version, VersionFrom: l.node.VersionFrom,
		ConfigFile: l.node.ConfigFile, ConfigDir: l.node.ConfigDir,
		Facts: l.facts, Examined: l.report, Notes: []nodeconf.Note{}, Unseen: append([]nodeconf.Note{}, l.unseen...),
		Findings: l.findings(),
	}
	for _, n := range l.node.Notes {
		if isUnseen(n) {
			r.Unseen = append(r.Unseen, n)
		} else {
			r.Notes = append(r.Notes, n)
		}
	}
	r.Config, r.Partial = l.judged, l.partial()
	if r.Judged = l.judged != nil; !r.Judged {
		r.Config = l.config(l.node)
	}
	if l.live != nil {
		r.Node, r.Live = l.live.node, &l.live.Live
	}
	for _, f := range r.Findings {
		switch f.Severity {
		case eviction.Critical:
			r.Critical++
		case eviction.Warning:
			r.Warnings++
		}
	}
	return r
}

func runKubeletCheck(ctx context.Context, opts kubeletOptions, out io.Writer) error {
	l, err := opts.look(ctx)
	if err != nil {
		return withExit(exitUsage, err)
	}
	r := newKubeletCheckReport(l)
	if opts.output == outputJSON {
		err = json.NewEncoder(out).Encode(r)
	} else {
		_, err = io.WriteString(out, r.page())
	}
	if err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	return r.verdict()
}

// verdict is the exit code; all of it has been told.
func (r kubeletCheckReport) verdict() error {
	code, text := exitOK, ""
	switch {
	case r.Critical > 0:
		code, text = exitProblems, "critical"
	case r.Warnings > 0:
		code, text = exitWarnings, "warnings"
	case len(r.Unseen) > 0:
		code, text = exitNotAllSeen, "not everything was seen"
	default:
		return nil
	}
	return &exitError{code: code, err: errors.New(text), told: true}
}
