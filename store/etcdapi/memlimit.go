package etcdapi

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

const (
	minListBudget = 32 << 20
	maxListBudget = 256 << 20
	// budgetShare is the part of the memory that lists may use by default. The
	// rest is for the index, the tail, the page cache and the control plane on
	// the same machine.
	budgetShare = 16
)

// DefaultListBudget is the default of Config.ListBudget in bytes: a sixteenth of
// the memory that this process may use, by its control group's limit or the
// machine's size, but at least 32 MiB and at most 256 MiB.
func DefaultListBudget() int64 {
	return listBudgetFor(memoryLimit(os.DirFS("/")))
}

// listBudgetFor is the budget for a memory limit in bytes, 0 if that is unknown.
func listBudgetFor(limit int64) int64 {
	return min(max(limit/budgetShare, minListBudget), maxListBudget)
}

// memoryLimit returns the bytes of memory that this process may use, or 0 if the
// system does not tell. root is the system's root directory.
func memoryLimit(root fs.FS) int64 {
	limit := machineMemory(root)
	for _, dir := range controlGroups(root) {
		if n := readLimit(root, dir+"/memory.max"); n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}

// machineMemory is MemTotal. What is free at this moment would be no good
// measure: it changes from start to start, and ZFS's cache counts as used.
func machineMemory(root fs.FS) int64 {
	info, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(info)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err == nil {
				return kb << 10
			}
		}
	}
	return 0
}

// controlGroups returns the directories of this process's control group and of
// those around it: each one's limit counts. Only version 2 is looked at.
func controlGroups(root fs.FS) []string {
	const mount = "sys/fs/cgroup"
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(groups)) {
		own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		var dirs []string
		for dir := path.Join("/", own); ; dir = path.Dir(dir) {
			dirs = append(dirs, path.Join(mount, dir))
			if dir == "/" {
				return dirs
			}
		}
	}
	return nil
}

// readLimit reads a limit in bytes; 0 if there is none ("max") or no such file.
func readLimit(root fs.FS, name string) int64 {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
