package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/vfs"
)

// topOrder is what tarn top sorts by.
type topOrder string

const (
	byBytes  topOrder = "bytes"
	byStored topOrder = "stored"
	byKeys   topOrder = "keys"
	byWrites topOrder = "writes"
)

// topOptions are the settings of tarn top.
type topOptions struct {
	clientOptions
	timeout time.Duration
	dataDir string // read this instead of asking a server
	sort    topOrder
	limit   int // 0: all
	output  outputFormat
}

func defaultTopOptions() topOptions {
	return topOptions{
		clientOptions: defaultClientOptions(),
		timeout:       5 * time.Second,
		sort:          byBytes,
		limit:         20, // fits a screen
		output:        outputText,
	}
}

func newTopCommand(p process) *cobra.Command {
	opts := defaultTopOptions()
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show which prefixes have the most keys, bytes and writes",
		Long: `Show how many keys and bytes there are of each kind of thing, largest first:
/registry/pods/, /registry/<group>/<resource>/ and so on. It costs the server next
to nothing, however many keys there are, and works when a list of them no longer
does and when the store is full.

  KEYS     live keys
  BYTES    of these, without their old versions
  RECORDS  what is stored: the keys, their old versions and deletions that are
           not compacted
  STORED   bytes of the records
  WRITES   keys put and deleted since the server was started

"(rest)" stands behind a prefix if longer ones are in lines of their own: the line
is for the other keys. "other" are the keys of no prefix. --output json has all
prefixes that --limit leaves.

With --data-dir the command reads a directory that no server has open and changes
nothing; it does not know WRITES then. A server with access control shows this to
users with the role root (--user).

Each flag but --data-dir can be an environment variable, such as TARN_ENDPOINT for
--endpoint.

Exit codes: 0 shown, 1 the server can not be reached or does not answer, or the
directory can not be read, 2 the command line is not valid.`,
		Args: exactArgs(0),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	opts.register(fs)
	fs.Var(durationValue(&opts.timeout, time.Millisecond), "timeout", "how long to wait for the answer")
	fs.Var(stringValue(&opts.dataDir, "directory", "a directory"), "data-dir", "read the store in this directory, which no server has open")
	fs.Var(choiceValue(&opts.sort, byBytes, byStored, byKeys, byWrites), "sort", "what comes first")
	fs.Var(intValue(&opts.limit, 0, math.MaxInt), "limit", "how many prefixes to show, 0 for all")
	addOutputFlag(fs, &opts.output)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		both := fs.Changed("data-dir") && fs.Changed("endpoint")
		dir := opts.dataDir // TARN_DATA_DIR is where a server has its data, and no wish to read there
		if err := newLayers(fs, nil, p.environ).applyEnv(); err != nil {
			return err
		}
		if opts.dataDir = dir; both {
			return withExit(exitUsage, errors.New("--data-dir reads a directory and --endpoint asks a server: give one of them"))
		}
		return runTop(cmd.Context(), opts, p.stdout)
	}
	return cmd
}

func runTop(ctx context.Context, opts topOptions, out io.Writer) error {
	r := topReport{Endpoint: opts.endpoint.String()}
	var err error
	if opts.dataDir != "" {
		r = topReport{DataDir: opts.dataDir}
		r.Prefixes, err = readPrefixes(ctx, opts.dataDir)
	} else {
		r.Prefixes, err = opts.askPrefixes(ctx)
	}
	if err != nil {
		return err
	}
	r.arrange(opts.sort, opts.limit)
	if opts.output == outputJSON {
		return json.NewEncoder(out).Encode(r)
	}
	_, err = io.WriteString(out, r.page())
	return err
}

// readPrefixes reads a directory.
func readPrefixes(ctx context.Context, dir string) ([]store.PrefixTotals, error) {
	all, err := store.ReadPrefixes(ctx, dir)
	if errors.Is(err, store.ErrInUse) {
		h, _ := vfs.HolderOf(dir)
		err = fmt.Errorf("%w; %s", err, h.NextStep("ask the server with --endpoint, or stop it"))
	}
	if err != nil {
		return nil, fmt.Errorf("read the prefixes of a store: %w", err)
	}
	return all, nil
}

// topReport is what tarn top prints; the JSON names are stable.
type topReport struct {
	Endpoint string               `json:"endpoint,omitempty"`
	DataDir  string               `json:"dataDir,omitempty"`
	Prefixes []store.PrefixTotals `json:"prefixes"`
	Hidden   int                  `json:"hidden"` // prefixes that the limit leaves out
	Total    topTotal             `json:"total"`  // of all, hidden ones too
}

// topTotal is the sum of all prefixes.
type topTotal struct {
	Keys        int64  `json:"keys"`
	Bytes       int64  `json:"bytes"`
	Records     int64  `json:"records"`
	RecordBytes int64  `json:"recordBytes"`
	Writes      uint64 `json:"writes"`
}

// arrange adds up, sorts and cuts.
func (r *topReport) arrange(order topOrder, limit int) {
	for _, t := range r.Prefixes {
		r.Total.Keys += t.Keys
		r.Total.Bytes += t.Bytes
		r.Total.Records += t.Records
		r.Total.RecordBytes += t.RecordBytes
		r.Total.Writes += t.Writes
	}
	slices.SortStableFunc(r.Prefixes, func(x, y store.PrefixTotals) int {
		switch order {
		case byStored:
			return cmp.Compare(y.RecordBytes, x.RecordBytes)
		case byKeys:
			return cmp.Compare(y.Keys, x.Keys)
		case byWrites:
			return cmp.Compare(y.Writes, x.Writes)
		default:
			return cmp.Compare(y.Bytes, x.Bytes)
		}
	})
	if limit > 0 && len(r.Prefixes) > limit {
		r.Hidden = len(r.Prefixes) - limit
		r.Prefixes = r.Prefixes[:limit]
	}
	r.Prefixes = append([]store.PrefixTotals{}, r.Prefixes...) // never null
}

func (r *topReport) page() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }
	row := func(t topTotal, name string) {
		writes := fmt.Sprint(t.Writes)
		if r.DataDir != "" {
			writes = "-"
		}
		line(fmt.Sprint(t.Keys), roughBytes(t.Bytes), fmt.Sprint(t.Records), roughBytes(t.RecordBytes), writes, "  "+name)
	}
	line("KEYS", "BYTES", "RECORDS", "STORED", "WRITES", "  PREFIX")
	for _, t := range r.Prefixes {
		name := t.Prefix
		if t.Rest && name != store.OtherKeys {
			name += " (rest)"
		}
		row(topTotal{t.Keys, t.Bytes, t.Records, t.RecordBytes, t.Writes}, name)
	}
	row(r.Total, "total")
	w.Flush()
	if r.Hidden > 0 {
		fmt.Fprintf(&b, "%d more with --limit 0\n", r.Hidden)
	}
	return b.String()
}
