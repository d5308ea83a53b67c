package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// samplePause is the time between two looks at a server's anonymous memory,
// whose peak the kernel does not keep.
const samplePause = 50 * time.Millisecond

// usage is what a server took between two moments.
type usage struct {
	wall     time.Duration
	cpu      time.Duration // of all its threads, ended ones included
	written  int64         // bytes that reached the block layer
	sleeps   int64         // times one of its threads went to sleep: wake-ups
	resident int64         // peak, mapped files included
	private  int64         // peak of heap and stacks
}

// cpuMilli is the processor time in milliseconds per n operations.
func (u usage) cpuMilli(n int) float64 { return millis(u.cpu) / float64(n) }

// meter watches a server from newMeter to stop.
type meter struct {
	pid   int
	from  counters
	quit  chan struct{}
	peaks chan int64
}

type counters struct {
	at              time.Time
	cpu             time.Duration
	written, sleeps int64
}

// newMeter begins to measure. It resets the kernel's peak of resident memory.
func newMeter(pid int) (*meter, error) {
	if err := os.WriteFile(procPath(pid, "clear_refs"), []byte("5"), 0); err != nil {
		return nil, fmt.Errorf("reset the peak of memory: %w", err)
	}
	m := &meter{pid: pid, quit: make(chan struct{}), peaks: make(chan int64, 1)}
	go m.watchMemory()
	var err error
	if m.from, err = readCounters(pid); err != nil {
		close(m.quit)
		return nil, err
	}
	return m, nil
}

func (m *meter) watchMemory() {
	var peak int64
	tick := time.NewTicker(samplePause)
	defer tick.Stop()
	for {
		if status, err := readFields(procPath(m.pid, "status")); err == nil {
			peak = max(peak, status["RssAnon"]<<10)
		}
		select {
		case <-tick.C:
		case <-m.quit:
			m.peaks <- peak
			return
		}
	}
}

// stop ends the measurement. It is called once.
func (m *meter) stop() (usage, error) {
	close(m.quit)
	to, err := readCounters(m.pid)
	if err != nil {
		return usage{}, err
	}
	status, err := readFields(procPath(m.pid, "status"))
	if err != nil {
		return usage{}, err
	}
	return usage{
		wall:     to.at.Sub(m.from.at),
		cpu:      to.cpu - m.from.cpu,
		written:  to.written - m.from.written,
		sleeps:   to.sleeps - m.from.sleeps,
		resident: status["VmHWM"] << 10,
		private:  max(<-m.peaks, status["RssAnon"]<<10),
	}, nil
}

func readCounters(pid int) (c counters, err error) {
	c.at = time.Now()
	if c.cpu, err = cpuTime(pid); err != nil {
		return c, err
	}
	io, err := readFields(procPath(pid, "io"))
	if err != nil {
		return c, err
	}
	c.written = io["write_bytes"]
	threads, err := filepath.Glob(procPath(pid, "task/*/status"))
	for _, name := range threads {
		// A thread can end in between.
		if status, err := readFields(name); err == nil {
			c.sleeps += status["voluntary_ctxt_switches"]
		}
	}
	return c, err
}

// cpuTime reads a process's own clock, which counts nanoseconds where
// /proc/PID/stat counts ticks of 10 ms. A clock's number is made of the process's.
func cpuTime(pid int) (time.Duration, error) {
	const wholeProcess = 2 // CPUCLOCK_SCHED
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|wholeProcess, &ts); err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

func procPath(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// readFields reads a file of lines "name: number ...".
func readFields(name string) (map[string]int64, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	fields := make(map[string]int64)
	for line := range bytes.Lines(text) {
		key, rest, _ := bytes.Cut(line, []byte(":"))
		if words := bytes.Fields(rest); len(words) > 0 {
			if n, err := strconv.ParseInt(string(words[0]), 10, 64); err == nil {
				fields[string(key)] = n
			}
		}
	}
	return fields, nil
}
