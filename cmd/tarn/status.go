package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// statusOptions are the settings of tarn status.
type statusOptions struct {
	clientOptions
	timeout time.Duration
	output  outputFormat
}

func defaultStatusOptions() statusOptions {
	return statusOptions{
		clientOptions: defaultClientOptions(),
		// A server that is well answers in milliseconds; a disk that is not may
		// take seconds.
		timeout: 5 * time.Second,
		output:  outputText,
	}
}

func newStatusCommand(p process) *cobra.Command {
	opts := defaultStatusOptions()
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Ask a running server how it is",
		Long: `Ask a running server for its version, revision, size, quota, watchers and alarms.

Each flag can be an environment variable, such as TARN_ENDPOINT for --endpoint.

Exit codes: 0 the server answers and has no alarm, 1 it can not be reached or
does not answer, 2 the command line is not valid, 3 it answers and has an alarm.`,
		Args: exactArgs(0),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	opts.register(fs)
	fs.Var(durationValue(&opts.timeout, time.Millisecond), "timeout", "how long to wait for the answers")
	addOutputFlag(fs, &opts.output)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := newLayers(fs, nil, p.environ).applyEnv(); err != nil {
			return err
		}
		return runStatus(cmd.Context(), opts, p.stdout)
	}
	return cmd
}

func runStatus(ctx context.Context, opts statusOptions, out io.Writer) error {
	c, err := opts.dial()
	if err != nil {
		return withExit(exitUsage, err)
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, opts.timeout)
	defer cancel()
	var r *statusReport
	asking, err := opts.login(ctx, c)
	if err == nil {
		r, err = askStatus(asking, c)
	}
	if err != nil {
		return fmt.Errorf("ask %s for its status: %w", opts.endpoint, opts.explain(context.WithoutCancel(ctx), err))
	}
	r.Endpoint = opts.endpoint.String()
	if opts.output == outputJSON {
		err = json.NewEncoder(out).Encode(r)
	} else {
		_, err = io.WriteString(out, r.page())
	}
	if err == nil && len(r.Alarms) > 0 {
		err = &exitError{code: exitAlarm, err: errors.New("alarm " + strings.Join(r.Alarms, ", ")), told: true}
	}
	return err
}

// statusReport is what tarn status prints; the JSON names are stable. A nil
// number is one that the server does not tell.
type statusReport struct {
	Endpoint        string   `json:"endpoint"`
	Name            string   `json:"name"`
	MemberID        string   `json:"memberID"`
	ClusterID       string   `json:"clusterID"`
	Version         string   `json:"version"`
	Revision        int64    `json:"revision"`
	CompactRevision *int64   `json:"compactRevision,omitempty"`
	Keys            *int64   `json:"keys,omitempty"`
	SizeBytes       int64    `json:"sizeBytes"`
	InUseBytes      int64    `json:"inUseBytes"`
	QuotaBytes      int64    `json:"quotaBytes"`
	QuotaPercent    float64  `json:"quotaPercent"`
	Watchers        *int64   `json:"watchers,omitempty"`
	SlowWatchers    *int64   `json:"slowWatchers,omitempty"`
	DiskWaiting     *float64 `json:"diskWaitingSeconds,omitempty"` // of the oldest file operation under way
	Alarms          []string `json:"alarms"`
}

func askStatus(ctx context.Context, c *client) (*statusReport, error) {
	status, err := etcdserverpb.NewMaintenanceClient(c).Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return nil, err
	}
	r := &statusReport{
		MemberID:   fmt.Sprintf("%x", status.GetHeader().GetMemberId()),
		ClusterID:  fmt.Sprintf("%x", status.GetHeader().GetClusterId()),
		Version:    status.Version,
		Revision:   status.GetHeader().GetRevision(),
		SizeBytes:  status.DbSize,
		InUseBytes: status.DbSizeInUse,
		QuotaBytes: status.DbSizeQuota,
		Alarms:     []string{},
	}
	if r.QuotaBytes > 0 {
		r.QuotaPercent = float64(r.InUseBytes) / float64(r.QuotaBytes) * 100
	}
	members, err := etcdserverpb.NewClusterClient(c).MemberList(ctx, &etcdserverpb.MemberListRequest{})
	if err != nil {
		return nil, fmt.Errorf("list the members: %w", err)
	}
	for _, m := range members.Members {
		if m.ID == status.GetHeader().GetMemberId() {
			r.Name = m.Name
		}
	}
	alarms, err := etcdserverpb.NewMaintenanceClient(c).Alarm(ctx, &etcdserverpb.AlarmRequest{})
	if err != nil {
		return nil, fmt.Errorf("list the alarms: %w", err)
	}
	for _, a := range alarms.Alarms {
		r.Alarms = append(r.Alarms, a.Alarm.String())
	}
	r.addMetrics(c.metrics(ctx))
	return r, nil
}

// addMetrics fills in what the API does not tell.
func (r *statusReport) addMetrics(m map[string]float64) {
	for name, field := range map[string]**int64{
		"etcd_debugging_mvcc_compact_revision":   &r.CompactRevision,
		"etcd_debugging_mvcc_keys_total":         &r.Keys,
		"etcd_debugging_mvcc_watcher_total":      &r.Watchers,
		"etcd_debugging_mvcc_slow_watcher_total": &r.SlowWatchers,
	} {
		if v, ok := m[name]; ok {
			n := int64(v)
			*field = &n
		}
	}
	if v, ok := m["tarn_disk_waiting_seconds"]; ok {
		r.DiskWaiting = &v
	}
}

// diskWaitTold is the time, in seconds, from which on a disk that does not answer is worth a line.
const diskWaitTold = 1

func (r *statusReport) page() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-17s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("endpoint", "%s", r.Endpoint)
	line("name", "%s (member %s, cluster %s)", r.Name, r.MemberID, r.ClusterID)
	line("etcd API", "%s", r.Version)
	line("revision", "%d", r.Revision)
	switch {
	case r.CompactRevision == nil:
		line("compact revision", "unknown")
	case *r.CompactRevision <= 0:
		line("compact revision", "never compacted")
	default:
		line("compact revision", "%d", *r.CompactRevision)
	}
	line("keys", "%s", numberOrUnknown(r.Keys))
	line("size", "%s, %s in use", roughBytes(r.SizeBytes), roughBytes(r.InUseBytes))
	if r.QuotaBytes > 0 {
		line("quota", "%s, %.1f %% used", roughBytes(r.QuotaBytes), r.QuotaPercent)
	} else {
		line("quota", "none")
	}
	line("watchers", "%s, %s slow", numberOrUnknown(r.Watchers), numberOrUnknown(r.SlowWatchers))
	if r.DiskWaiting != nil && *r.DiskWaiting >= diskWaitTold {
		line("DISK", "an operation has not returned for %v: writes wait; look at the disk, and at zpool status -x on ZFS",
			time.Duration(*r.DiskWaiting*float64(time.Second)).Round(100*time.Millisecond))
	}
	if len(r.Alarms) == 0 {
		line("alarms", "none")
	}
	for _, a := range r.Alarms {
		line("ALARM", "%s%s", a, r.alarmAdvice(a))
	}
	return b.String()
}

// alarmAdvice is what an alarm means and what to do about it, by its name in the API.
func (r *statusReport) alarmAdvice(name string) string {
	switch name {
	case "NOSPACE":
		// The server clears its own alarm once a twentieth of the quota is free.
		if r.QuotaBytes > 0 && r.InUseBytes >= r.QuotaBytes-r.QuotaBytes/20 {
			return ": puts are refused because the quota is used up; delete and compact, or raise --quota-backend-bytes"
		}
		return ": puts are refused, and not because of the quota: the file system of the data directory is nearly full, " +
			"or a client raised the alarm; make room in the file system, or delete and compact; " +
			"etcdctl alarm disarm clears what a client raised"
	case "CORRUPT":
		return ": writes are refused; stop the server and run tarn check on its data directory"
	default:
		return ""
	}
}

func numberOrUnknown(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}
