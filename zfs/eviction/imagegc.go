package eviction

import (
	"strconv"
	"time"
)

// The kubelet's own values.
const (
	defaultGCHigh = 85
	defaultGCLow  = 80
)

// imageGC works out what the collection of images does with a view of the file system.
func imageGC(c *Config, v View) ImageGC {
	gc := ImageGC{
		HighPercent: percentOr(c.ImageGCHighPercent, defaultGCHigh), LowPercent: percentOr(c.ImageGCLowPercent, defaultGCLow),
		UsedPercent: -1, RealPercent: -1,
	}
	gc.Off = gc.HighPercent == 100 && maximumAge(c) == ""
	gc.Never = gc.HighPercent == 100 && !gc.Off
	if gc.Off || v.Capacity == nil || *v.Capacity == 0 {
		return gc
	}
	capacity, available := int64(*v.Capacity), min(int64(*v.Available), int64(*v.Capacity))
	gc.UsedPercent = usedPercent(available, capacity)
	if v.Real > 0 {
		gc.RealPercent = usedPercent(min(available, int64(v.Real)), int64(v.Real))
	}
	if gc.UsedPercent >= gc.HighPercent {
		gc.Runs = true
		gc.ToFree = uint64(max(0, capacity*int64(100-gc.LowPercent)/100-available))
	}
	return gc
}

// maximumAge is the age at which images go, "" for none.
func maximumAge(c *Config) string {
	if d, err := time.ParseDuration(c.ImageMaximumGCAge.Value); err != nil || d <= 0 {
		return ""
	}
	return c.ImageMaximumGCAge.Value
}

// usedPercent rounds up, as the kubelet does.
func usedPercent(available, capacity int64) int { return 100 - int(available*100/capacity) }

func percentOr(s Setting, otherwise int) int {
	if n, err := strconv.Atoi(s.Value); err == nil {
		return n
	}
	return otherwise
}
