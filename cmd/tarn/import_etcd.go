package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/store/migrate"
)

// importEtcdOptions are the settings of tarn import etcd.
type importEtcdOptions struct {
	file          string
	dataDir       string
	skipHashCheck bool
	dryRun        bool
	output        outputFormat
}

func newImportEtcdCommand(p process) *cobra.Command {
	opts := importEtcdOptions{dataDir: defaultDataDir, output: outputText}
	cmd := &cobra.Command{
		Use:   "etcd FILE",
		Short: "Import a snapshot of etcd",
		Long: `Make a data directory from FILE, which "etcdctl snapshot save" or "etcdutl
snapshot save" wrote, for etcd or for Tarn. The store in it has the same
revisions, keys, leases, users, roles, alarms and compactions, and the same hash;
it has an ID of its own. Members are left out.

The database of an etcd that was stopped (member/snap/db in its data directory)
can be imported too. It has no hash at its end: add --skip-hash-check.

FILE is only read. Before anything is written, its hash, its pages and all its
records are checked. The data directory must be empty or missing.

Each flag can be an environment variable, such as TARN_DATA_DIR for --data-dir.

Exit codes: 0 imported (with --dry-run: FILE can be imported), 1 failed, 2 the
command line is not valid, 3 FILE can not be imported, 4 the data directory holds
a store or is in use. After 1, 3 and 4 the data directory is as it was before.`,
		Args: exactArgs(1),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.Var(stringValue(&opts.dataDir, "dir", "the path of a directory"), "data-dir", "where to make the store")
	boolFlag(fs, &opts.dryRun, "dry-run", "check FILE and write nothing")
	boolFlag(fs, &opts.skipHashCheck, "skip-hash-check", "accept a FILE without a hash at its end, or with a wrong one")
	addOutputFlag(fs, &opts.output)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := newLayers(fs, nil, p.environ).applyEnv(); err != nil {
			return err
		}
		opts.file = args[0]
		return runImportEtcd(cmd.Context(), opts, p)
	}
	return cmd
}

// importVerdict is what an import prints; the JSON names are stable.
type importVerdict struct {
	File            string   `json:"file"`
	DataDir         string   `json:"dataDir"` // "" if nothing was written
	StoreID         string   `json:"storeID"` // "" if nothing was written
	StorageVersion  string   `json:"storageVersion"`
	Revision        int64    `json:"revision"`
	CompactRevision int64    `json:"compactRevision"`
	Keys            int64    `json:"keys"`
	Records         int64    `json:"records"`
	Hash            uint32   `json:"hash"`
	Leases          int      `json:"leases"`
	Alarms          int      `json:"alarms"`
	Users           int      `json:"users"`
	Roles           int      `json:"roles"`
	AuthEnabled     bool     `json:"authEnabled"`
	LeftOut         []string `json:"leftOut"`
}

func runImportEtcd(ctx context.Context, opts importEtcdOptions, p process) error {
	line := newProgressLine(p.stderr)
	r, err := migrate.ImportSnapshot(ctx, opts.file, migrate.Options{
		Dir: opts.dataDir, SkipHashCheck: opts.skipHashCheck, DryRun: opts.dryRun, Progress: line.show,
	})
	line.clear()
	if err != nil {
		code := exitFailed
		switch {
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
			err = errors.New("interrupted, nothing was written")
		case errors.Is(err, migrate.ErrSource):
			code = exitImportSource
		case errors.Is(err, migrate.ErrTarget):
			code = exitImportTarget
		default:
			err = withAdvice(err, "run it as root, or as a user who may read the file and write the data directory")
		}
		return withExit(code, importError(opts.file, err))
	}
	v := importVerdict{
		File: opts.file, DataDir: opts.dataDir, StoreID: r.StoreID, StorageVersion: r.StorageVersion, Revision: r.Revision,
		CompactRevision: r.CompactRevision, Keys: r.Keys, Records: r.Records, Hash: r.Hash, Leases: r.Leases, Alarms: r.Alarms,
		Users: r.Users, Roles: r.Roles, AuthEnabled: r.AuthEnabled, LeftOut: append([]string{}, r.LeftOut...),
	}
	if opts.dryRun {
		v.DataDir = ""
	}
	if opts.output == outputJSON {
		return json.NewEncoder(p.stdout).Encode(v)
	}
	_, err = io.WriteString(p.stdout, v.page())
	return err
}

// importError names the file, if the text does not.
func importError(file string, err error) error {
	if strings.Contains(err.Error(), file) {
		return fmt.Errorf("import: %w", err)
	}
	return fmt.Errorf("import %s: %w", file, err)
}

func (v importVerdict) page() string {
	var b strings.Builder
	if v.DataDir == "" {
		b.WriteString("nothing was written: the file can be imported\n")
	} else {
		fmt.Fprintf(&b, "imported into %s\nstore     %s\n", v.DataDir, v.StoreID)
	}
	fmt.Fprintf(&b, "revision  %d, %s\n", v.Revision, compactedUpTo(v.CompactRevision))
	fmt.Fprintf(&b, "keys      %d in %d record(s), %s\n", v.Keys, v.Records, hashText(v.Hash))
	fmt.Fprintf(&b, "leases    %d\n", v.Leases)
	if v.Users+v.Roles > 0 || v.AuthEnabled {
		on := "off"
		if v.AuthEnabled {
			on = "on"
		}
		fmt.Fprintf(&b, "users     %d, roles %d; access control is %s\n", v.Users, v.Roles, on)
	}
	if v.Alarms > 0 {
		fmt.Fprintf(&b, "alarms    %d, kept: `etcdctl alarm disarm` clears them\n", v.Alarms)
	}
	if len(v.LeftOut) > 0 {
		fmt.Fprintf(&b, "left out  buckets that etcd does not have: %s\n", strings.Join(v.LeftOut, ", "))
	}
	return b.String()
}
