package etcdapi

import (
	"testing"
	"testing/fstest"
)

func TestMemoryLimit(t *testing.T) {
	meminfo := &fstest.MapFile{Data: []byte("MemTotal:        8000000 kB\nMemFree:          100000 kB\n")}
	group := &fstest.MapFile{Data: []byte("0::/system.slice/tarn.service\n")}
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for name, tt := range map[string]struct {
		root fstest.MapFS
		want int64
	}{
		"nothing known": {fstest.MapFS{}, 0},
		"machine":       {fstest.MapFS{"proc/meminfo": meminfo}, 8000000 << 10},
		"unlimited group": {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": group,
			"sys/fs/cgroup/system.slice/tarn.service/memory.max": file("max\n")}, 8000000 << 10},
		"own group": {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": group,
			"sys/fs/cgroup/system.slice/tarn.service/memory.max": file("1073741824\n")}, 1 << 30},
		"group around it": {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": group,
			"sys/fs/cgroup/system.slice/memory.max":              file("536870912\n"),
			"sys/fs/cgroup/system.slice/tarn.service/memory.max": file("1073741824\n")}, 512 << 20},
		"in a container": {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/\n"),
			"sys/fs/cgroup/memory.max": file("268435456\n")}, 256 << 20},
		"version 1": {fstest.MapFS{"proc/meminfo": meminfo, "proc/self/cgroup": file("4:memory:/x\n")}, 8000000 << 10},
	} {
		if got := memoryLimit(tt.root); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	for limit, want := range map[int64]int64{0: 32 << 20, 1 << 30: 64 << 20, 64 << 30: 256 << 20} {
		if got := listBudgetFor(limit); got != want {
			t.Errorf("listBudgetFor(%d) = %d, want %d", limit, got, want)
		}
	}
}
