package harness

import (
	"sync"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
)

// Line is one line that the kubelet logs at its lowest verbosity.
type Line struct {
	Pass int // of the eviction manager, from 1; 0 is before the first
	Text string
}

// log collects lines. The kubelet's code logs through klog, which is one for the whole
// process, so only one capture runs at a time.
var log struct {
	capturing sync.Mutex
	mu        sync.Mutex
	pass      int
	lines     []Line
}

func init() {
	logger := funcr.New(func(_, args string) {
		log.mu.Lock()
		defer log.mu.Unlock()
		log.lines = append(log.lines, Line{log.pass, args})
	}, funcr.Options{Verbosity: 0})
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
}

// capture returns what is logged while f runs.
func capture(f func()) []Line {
	log.capturing.Lock()
	defer log.capturing.Unlock()
	log.mu.Lock()
	log.lines, log.pass = nil, 0
	log.mu.Unlock()
	f()
	log.mu.Lock()
	defer log.mu.Unlock()
	return log.lines
}

// nextPass makes lines from now on belong to the next pass.
func nextPass() (pass int) {
	log.mu.Lock()
	defer log.mu.Unlock()
	log.pass++
	return log.pass
}
