package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/store"
)

// checkOptions are the settings of tarn check.
type checkOptions struct {
	dir    string
	output outputFormat
}

func newCheckCommand(p process) *cobra.Command {
	opts := checkOptions{output: outputText}
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Check a data directory that no server has open",
		Long: `Check the log and the tree in a data directory, read everything and change
nothing. A server that has the directory open must be stopped before.

It finds damage to the structure of tree.db and to the form of its records, and
every frame of the log that is missing or has a wrong checksum. It does not find
a flipped bit inside a value stored in tree.db: against that help a file system
with checksums, and the printed hash, compared with an earlier one of the same
revision and compact revision.

The verdict is one line: OK, or DAMAGED and the findings. A torn last record in
the log is what a power cut leaves; it was promised to nobody and is no damage.
NOTE tells of one of the two meta pages of tree.db that is damaged, if the log has
what is missing then: the server repairs that. What could not be read is left out.

Exit codes: 0 OK, 1 damaged, 2 not checked (in use, no store there, or the
command line is not valid).`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.dir = args[0]
			return runCheck(cmd.Context(), opts, p.stdout)
		},
	}
	addOutputFlag(cmd.Flags(), &opts.output)
	return cmd
}

// checkVerdict is what tarn check prints; the JSON names are stable.
type checkVerdict struct {
	OK              bool     `json:"ok"`
	StoreID         string   `json:"storeID"` // "" if the store has none yet, or it could not be read
	*CheckedContent          // nil if the tree could not be read
	TreeBytes       int64    `json:"treeBytes"`
	*CheckedLog              // nil if the log was not read
	Hash            *uint32  `json:"hash,omitempty"` // nil if there are findings
	Findings        []string `json:"findings"`
	Notes           []string `json:"notes"`
}

// CheckedContent is what the tree and the good part of the log hold. It has a capital letter for
// package json's sake.
type CheckedContent struct {
	Revision        int64 `json:"revision"`
	CompactRevision int64 `json:"compactRevision"`
	Keys            int64 `json:"keys"`
}

// CheckedLog is what was found of the log.
type CheckedLog struct {
	WALBytes int64 `json:"walBytes"`
	Frames   int   `json:"frames"`
	TornTail bool  `json:"tornTail"`
}

func newCheckVerdict(r store.CheckReport) checkVerdict {
	v := checkVerdict{
		OK: len(r.Findings) == 0, StoreID: r.StoreID, TreeBytes: r.TreeBytes,
		Findings: append([]string{}, r.Findings...), Notes: append([]string{}, r.Notes...),
	}
	if r.ContentRead {
		v.CheckedContent = &CheckedContent{Revision: r.Revision, CompactRevision: r.CompactRevision, Keys: r.Keys}
	}
	if r.LogRead {
		v.CheckedLog = &CheckedLog{WALBytes: r.WALBytes, Frames: r.Frames, TornTail: r.TornTail}
	}
	if v.OK {
		v.Hash = &r.Hash
	}
	return v
}

func runCheck(ctx context.Context, opts checkOptions, out io.Writer) error {
	if info, err := os.Stat(opts.dir); err != nil {
		return withExit(exitNotChecked, fmt.Errorf("not checked: %w", withOwnerAdvice(err, opts.dir)))
	} else if !info.IsDir() {
		return withExit(exitNotChecked, fmt.Errorf("not checked: %s is not a directory; give the one that --data-dir names", opts.dir))
	}
	r, err := store.Check(ctx, opts.dir)
	if err != nil {
		return withExit(exitNotChecked, fmt.Errorf("not checked: %w", withOwnerAdvice(err, opts.dir)))
	}
	v := newCheckVerdict(r)
	if opts.output == outputJSON {
		err = json.NewEncoder(out).Encode(v)
	} else {
		_, err = io.WriteString(out, v.page())
	}
	switch {
	case err != nil:
		return withExit(exitNotChecked, fmt.Errorf("print the verdict: %w", err))
	case !v.OK:
		return &exitError{code: exitCheckDamaged, err: errors.New("damaged"), told: true}
	}
	return nil
}

func (v checkVerdict) page() string {
	var b strings.Builder
	if v.OK {
		b.WriteString("OK\n")
	} else {
		fmt.Fprintf(&b, "DAMAGED: %s\n", strings.Join(v.Findings, "\nDAMAGED: "))
	}
	for _, note := range v.Notes {
		fmt.Fprintf(&b, "NOTE: %s\n", note)
	}
	switch {
	case v.StoreID != "":
		fmt.Fprintf(&b, "store     %s\n", v.StoreID)
	case v.CheckedContent != nil:
		b.WriteString("store     gets its ID at the first start\n")
	}
	if c := v.CheckedContent; c != nil {
		fmt.Fprintf(&b, "revision  %d, %s\n", c.Revision, compactedUpTo(c.CompactRevision))
		fmt.Fprintf(&b, "keys      %d%s\n", c.Keys, v.hashText())
	}
	if v.TreeBytes > 0 {
		fmt.Fprintf(&b, "tree      %s\n", roughBytes(v.TreeBytes))
	}
	if l := v.CheckedLog; l != nil {
		torn := ""
		if l.TornTail {
			torn = ", and a torn last record, as a power cut leaves it"
		}
		fmt.Fprintf(&b, "log       %s, %d record(s)%s\n", roughBytes(l.WALBytes), l.Frames, torn)
	}
	return b.String()
}

func (v checkVerdict) hashText() string {
	if v.Hash == nil {
		return ""
	}
	return ", " + hashText(*v.Hash)
}

// hashText is a hash of the key space as we write it, and as etcd's tools do.
func hashText(hash uint32) string {
	return fmt.Sprintf("hash %08x (etcdctl prints %d)", hash, hash)
}

func compactedUpTo(revision int64) string {
	if revision <= 0 {
		return "never compacted"
	}
	return fmt.Sprintf("compacted up to %d", revision)
}
