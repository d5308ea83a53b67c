package eviction

import "time"

// Config is the configuration that a kubelet gets from its files and flags, with
// the place that each value comes from. Keys of the maps are signals, such as
// nodefs.available. A map that nothing sets is nil.
type Config struct {
	Hard            map[string]Setting `json:"evictionHard"`
	Soft            map[string]Setting `json:"evictionSoft,omitempty"`
	SoftGracePeriod map[string]Setting `json:"evictionSoftGracePeriod,omitempty"`
	MinimumReclaim  map[string]Setting `json:"evictionMinimumReclaim,omitempty"`

	// The zero Setting stands for the kubelet's default.
	ImageGCHighPercent Setting `json:"imageGCHighThresholdPercent,omitzero"`
	ImageGCLowPercent  Setting `json:"imageGCLowThresholdPercent,omitzero"`
	ImageMaximumGCAge  Setting `json:"imageMaximumGCAge,omitzero"`

	// ConfigFile tells that the kubelet gets a file with --config. Only then do the
	// built-in thresholds count, where the file has no evictionHard of its own.
	ConfigFile bool `json:"configFile"`

	// What somebody wrote and what does not count, see the types.
	Lost    []Lost       `json:"lost,omitempty"`
	Ignored []Ignored    `json:"ignored,omitempty"`
	Unknown []UnknownKey `json:"unknown,omitempty"`

	// Unit is what starts the kubelet, nil if that is not known.
	Unit *Unit `json:"unit,omitempty"`
}

// Origins of a Setting, in the order in which a later one wins.
const (
	OriginDefault = "default" // built into the kubelet or k3s
	OriginFile    = "file"    // the kubelet's --config
	OriginDropIn  = "drop-in" // a file in the kubelet's --config-dir
	OriginFlag    = "flag"    // the kubelet's command line, k3s's kubelet-arg too
	OriginLive    = "live"    // asked of the running kubelet
	OriginPlan    = "plan"    // what this package proposes
)

// Setting is one value as it was written.
type Setting struct {
	Value string `json:"value"`
	// Origin is one of the constants.
	Origin string `json:"origin"`
	// Source is for people: a file, or a file and what in it, as in
	// "kubelet-arg in /etc/rancher/k3s/config.yaml". It can be "".
	Source string `json:"source,omitempty"`
}

// Lost is a value in a file that something else replaces as part of a whole.
type Lost struct {
	Map     string  `json:"map"` // evictionHard and so on
	Key     string  `json:"key"`
	Setting Setting `json:"setting"`
	By      Setting `json:"by"` // Value is that of the whole flag
}

// Ignored is a file that looks like configuration and is not read as such.
type Ignored struct {
	Path   string `json:"path"`
	Reason string `json:"reason"` // one of the constants, or an error's text
}

// Reasons of Ignored.
const (
	IgnoredSuffix   = "suffix"    // only names that end in .conf are read
	IgnoredNotYAML  = "not YAML"  // the kubelet does not start with it
	IgnoredNoHeader = "no header" // apiVersion or kind are missing: the kubelet does not start with it
)

// UnknownKey is a key that no KubeletConfiguration has.
type UnknownKey struct {
	Path string `json:"path"`
	Key  string `json:"key"`
	// Meant is the key that it looks like, or "".
	Meant string `json:"meant,omitempty"`
	// DropIn tells that the file is a drop-in, where the kubelet says nothing of it.
	DropIn bool `json:"dropIn"`
}

// Unit is what is known of the systemd unit of the kubelet or k3s.
type Unit struct {
	Name string `json:"name"`
	// MountsFor are the paths of RequiresMountsFor.
	MountsFor []string `json:"requiresMountsFor,omitempty"`
	// AfterMounts tells that it is ordered after all mounts of ZFS: zfs-mount.service,
	// zfs.target or local-fs.target with a generator that knows of them.
	AfterMounts bool `json:"afterMounts,omitempty"`
	// Started is when it was started, zero if it does not run.
	Started time.Time `json:"started,omitzero"`
}

// Live is what a running kubelet answers, as far as it was asked.
type Live struct {
	// Hard and MinimumReclaim are from /configz; nil is not asked.
	Hard           map[string]string `json:"evictionHard,omitempty"`
	MinimumReclaim map[string]string `json:"evictionMinimumReclaim,omitempty"`
	// The file systems are from /stats/summary; nil is not asked or not answered.
	NodeFS      *Stats `json:"nodeFS,omitempty"`
	ImageFS     *Stats `json:"imageFS,omitempty"`
	ContainerFS *Stats `json:"containerFS,omitempty"`
	// Summary tells that /stats/summary was answered, so that a nil above means that
	// the kubelet knows nothing of that file system.
	Summary      bool `json:"summary"`
	DiskPressure bool `json:"diskPressure"`
}
