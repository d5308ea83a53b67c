package main

import (
	"context"
	"strings"
	"time"

	"github.com/tarn-kv/tarn/zfs"
)

// poolsTime is how long the question after the pools may take: without an answer all is looked at.
const poolsTime = 3 * time.Second

// suspendedPools are the pools that answer nothing: a look at a file there can hang in the kernel, and then
// not even the process ends.
func (o *doctorOptions) suspendedPools(ctx context.Context) []string {
	if o.machine.Run == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, poolsTime)
	defer cancel()
	for _, program := range []string{"zpool", "/usr/sbin/zpool", "/sbin/zpool"} {
		out, err := o.machine.Run(ctx, program, "list", "-H", "-o", "name,health")
		if err != nil {
			continue
		}
		var suspended []string
		for line := range strings.Lines(out) {
			if name, health, _ := strings.Cut(strings.TrimSpace(line), "\t"); health == "SUSPENDED" {
				suspended = append(suspended, name)
			}
		}
		return suspended
	}
	return nil
}

// unless leaves a part out if one of the directories that it reads is on a suspended pool.
func (o *doctorOptions) unless(suspended []string, s doctorSection, dirs ...string) doctorSection {
	for _, dir := range dirs {
		for _, pool := range suspended {
			if zfs.PoolOf(datasetBelow(o.mounts, dir)) != pool {
				continue
			}
			return doctorSection{s.area, func(_ context.Context, f *findings) {
				f.problem("pool", "bring the devices back and run zpool clear "+pool,
					"the pool %s is suspended: nothing is written or read there, and %s is not looked at", pool, dir)
			}}
		}
	}
	return s
}
