package main

import (
	"context"
	"fmt"
	"strings"
)

// startServer is what to do where nothing answers.
const startServer = "systemctl enable --now tarn.socket, where Tarn is installed; or give the server's URL with --endpoint"

// lookAtStore asks the server.
func (o *doctorOptions) lookAtStore(ctx context.Context, f *findings) {
	c, err := o.server.dial()
	if err != nil {
		f.problem("answer", "give valid settings for the connection", "%v", err)
		return
	}
	defer c.close()
	explain := func(err error) error { return o.server.explain(context.WithoutCancel(ctx), err) }
	of := asked{endpoint: o.server.endpoint, socket: o.socket}
	asking, err := o.server.login(ctx, c)
	if err != nil {
		of.noAnswer(f, err, explain(err))
		return
	}
	if !(&datastoreProbe{c: c, explain: explain, wait: probeWait(o.timeout), of: of}).run(asking, f) {
		return
	}
	r, err := askStatus(asking, c)
	if err != nil {
		f.unknown("status", "this is for tarn serve, and for etcd; see the message", "%v", explain(err))
		return
	}
	f.ok("answer", "%s answers at %s, revision %d", r.Name, o.server.endpoint, r.Revision)
	judgeRoom(f, r)
	if page := c.metricsPage(asking); page != nil {
		m := readServerMetrics(page)
		page.Close()
		judgeSyncs(f, m)
		judgeCompaction(f, r, m)
		o.judgePrefixes(asking, f, c, r, m)
	} else {
		f.unknown("metrics", "is it tarn serve, and the client URL? Its page /metrics has them", "the server shows no metrics, so the disk and the growth are not known")
	}
}

// judgeRoom looks at alarms and the quota.
func judgeRoom(f *findings, r *statusReport) {
	for _, a := range r.Alarms {
		meaning, do, found := strings.Cut(strings.TrimPrefix(r.alarmAdvice(a), ": "), "; ")
		if !found {
			do = "etcdctl alarm disarm clears it when its cause is gone"
		}
		f.problem("alarm", do, "%s: %s", a, meaning)
	}
	if len(r.Alarms) == 0 {
		f.ok("alarm", "none")
	}
	const do = "see who fills it with tarn top, or raise quota-backend-bytes in the server's configuration file"
	text := fmt.Sprintf("%s in use of %s (%.0f %%)", roughBytes(r.InUseBytes), roughBytes(r.QuotaBytes), r.QuotaPercent)
	switch {
	case r.QuotaBytes <= 0:
		f.note("quota", "none; %s in use", roughBytes(r.InUseBytes))
	case r.QuotaPercent >= 95:
		f.problem("quota", do, "%s: puts are soon refused", text)
	case r.QuotaPercent >= 75:
		f.warning("quota", do, "%s", text)
	default:
		f.ok("quota", "%s", text)
	}
}
