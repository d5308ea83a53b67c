package eviction

// Node is all that is known of a node.
type Node struct {
	// Version is that of the kubelet; the zero Version is not known.
	Version Version
	Facts   Facts
	Config  *Config // nil is not known
	Live    *Live   // nil is not asked
}

// Report is what Examine finds.
type Report struct {
	Version   Version   `json:"version"`
	Behaviour Behaviour `json:"behaviour"`
	// StartError says why the kubelet does not start, "" if it does. EvictionError
	// says why it starts and then evicts nothing at all.
	StartError    string `json:"startError,omitempty"`
	EvictionError string `json:"evictionError,omitempty"`
	// NodeFS and ImageFS are what the kubelet sees of the two.
	NodeFS  View `json:"nodeFS"`
	ImageFS View `json:"imageFS"`
	// DedicatedImageFS tells that the kubelet takes the two for two devices.
	DedicatedImageFS bool `json:"dedicatedImageFS"`
	// Signals are the thresholds of disks and memory in force, hard ones first.
	Signals []Signal `json:"signals"`
	// Lines are what the kubelet logs in each pass, which is every 10 seconds.
	Lines   []Line  `json:"lines"`
	ImageGC ImageGC `json:"imageGC"`
	// Plan is what to configure; PlanError says why there is none.
	Plan      *Plan     `json:"plan,omitempty"`
	PlanError string    `json:"planError,omitempty"`
	Findings  []Finding `json:"findings"`
}

// View is a file system as the kubelet sees it.
type View struct {
	Stats
	// Real is the size that thresholds should be counted from: what the dataset
	// holds and what it could still take.
	Real uint64 `json:"realCapacityBytes"`
	// Inflation is the capacity divided by Real: 1 is right, 0 is not known.
	Inflation float64 `json:"inflation"`
	// grows tells that the capacity grows with each byte written.
	grows bool
	// unsure tells that the kubelet may see what was refused to us.
	unsure bool
	// Problem says why the kubelet sees nothing, "" if it does.
	Problem string `json:"problem,omitempty"`
}

// Stats are the numbers that the kubelet has of one file system. nil is one that
// it does not have.
type Stats struct {
	Capacity   *uint64 `json:"capacityBytes"`
	Available  *uint64 `json:"availableBytes"`
	Inodes     *uint64 `json:"inodes"`
	InodesFree *uint64 `json:"inodesFree"`
}

// Signal is one threshold in force.
type Signal struct {
	Name string `json:"signal"`
	// Soft tells that it must be met for a while before anything happens.
	Soft bool `json:"soft,omitempty"`
	// Setting is what was written; of a derived one what it is derived from.
	Setting Setting `json:"setting"`
	// Derived tells that the kubelet made it of the one of nodefs or imagefs.
	Derived bool `json:"derived,omitempty"`
	// Off tells that the threshold is switched off (0% or 100%), or that nothing is
	// there for it to be derived from.
	Off bool `json:"off,omitempty"`
	// Threshold is what the kubelet compares with now: bytes, or inodes. nil is that
	// it has no numbers for the signal.
	Threshold *uint64 `json:"threshold"`
	// FiresAt is how many bytes are really available when it fires, if it is this
	// dataset that fills up. It differs from Threshold for a percentage, since the
	// capacity that the kubelet counts from changes while the dataset grows. nil is
	// never, or not known.
	FiresAt *uint64 `json:"firesAt"`
	// Available is what the kubelet compares now.
	Available *uint64 `json:"available"`
	Met       bool    `json:"met"`
	// Reclaim is how much the kubelet wants free on top, 0 without a minimum reclaim.
	Reclaim uint64 `json:"reclaim,omitempty"`
}

// Line is a line of the log and how often it comes in each pass.
type Line struct {
	Signal string `json:"signal"`
	Text   string `json:"text"`
	Times  int    `json:"times"`
}

// ImageGC is what the collection of unused images does, which is every 5 minutes.
type ImageGC struct {
	HighPercent int `json:"highPercent"`
	LowPercent  int `json:"lowPercent"`
	// UsedPercent is what the kubelet computes, and RealPercent what is really used.
	// -1 is not known.
	UsedPercent int `json:"usedPercent"`
	RealPercent int `json:"realPercent"`
	// Runs tells that it would remove images now, and ToFree how many bytes of them.
	Runs   bool   `json:"runs"`
	ToFree uint64 `json:"toFree,omitempty"`
	// Never tells that images go by their age, and for want of room only below 1%.
	Never bool `json:"never,omitempty"`
	// Off tells that the kubelet never collects images: at 100% and without an age.
	Off bool `json:"off,omitempty"`
}

// Severities, the gravest first.
const (
	Critical = "critical" // the kubelet does not start, or pods are evicted or the disk fills up
	Warning  = "warning"  // it works now, or works badly
	Notice   = "notice"   // good to know
)

// Finding is something that a person should know.
type Finding struct {
	ID       string `json:"id"` // one of the constants in findings.go; stable
	Severity string `json:"severity"`
	// Subject is a signal, a path, a dataset or a unit, "" for the node.
	Subject string `json:"subject,omitempty"`
	// What is one sentence; Why and Fix one or more, and Fix can be "".
	What string `json:"what"`
	Why  string `json:"why"`
	Fix  string `json:"fix,omitempty"`
}
