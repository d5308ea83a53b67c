package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// lookAtKubelet passes on what tarn kubelet check finds.
func (o *doctorOptions) lookAtKubelet(ctx context.Context, f *findings) {
	kubelet := o.kubelet
	kubelet.timeout, kubelet.machine = o.timeout, o.machine
	l, err := kubelet.look(ctx)
	if err != nil {
		f.unknown("kubelet", "tarn kubelet check says more", "%v", err)
		return
	}
	judgeKubelet(f, newKubeletCheckReport(l))
}

func judgeKubelet(f *findings, r kubeletCheckReport) {
	if r.Layout == "" && r.ConfigFile == "" && r.ConfigDir == "" {
		f.note("kubelet", "no kubelet is recognised on this machine")
		return
	}
	for _, n := range r.Unseen {
		f.unknown(cmp.Or(n.File, "configuration"), cmp.Or(n.Fix, "tarn kubelet check says more"), "%s", n.Text)
	}
	for _, k := range r.Findings {
		what, do := k.ID, strings.Join(strings.Fields(k.Fix), " ")
		if k.Subject != "" {
			what += " (" + k.Subject + ")"
		}
		w := map[string]weight{eviction.Critical: weightProblem, eviction.Warning: weightWarning}[k.Severity]
		if w == "" {
			w = weightNote
		}
		f.add(w, what, do, "%s", k.What)
	}
	if r.Critical+r.Warnings+len(r.Unseen) == 0 {
		f.ok("kubelet", "nothing is wrong with the thresholds of kubelet %s", r.Version)
	}
}
