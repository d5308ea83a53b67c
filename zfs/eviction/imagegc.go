package eviction

import (
	"cmp"
	"fmt"
	"slices"
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
	if len(c.invalidGC()) > 0 {
		return gc // the kubelet does not come so far
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

// invalidGC is what the kubelet does not start with. A value of one setting alone can be wrong
// because of the default of the other one.
func (c *Config) invalidGC() (bad []invalid) {
	reject := func(key string, s Setting, format string, args ...any) {
		bad = append(bad, invalid{key: key, setting: s, err: fmt.Errorf(format, args...)})
	}
	const high, low = "imageGCHighThresholdPercent", "imageGCLowThresholdPercent"
	for key, s := range map[string]Setting{high: c.ImageGCHighPercent, low: c.ImageGCLowPercent} {
		if n, err := parsePercent(s.Value); s.Value != "" && (err != nil || n < 0 || n > 100) {
			reject(key, s, "%s is not a whole number from 0 to 100", s.Value)
		}
	}
	slices.SortFunc(bad, func(a, b invalid) int { return cmp.Compare(a.key, b.key) })
	highest, lowest := percentOr(c.ImageGCHighPercent, defaultGCHigh), percentOr(c.ImageGCLowPercent, defaultGCLow)
	switch {
	case len(bad) > 0 || lowest < highest:
	case c.ImageGCHighPercent.Value != "":
		reject(high, c.ImageGCHighPercent, "%d is not more than %s, which is %d; set both", highest, low, lowest)
	default:
		reject(low, c.ImageGCLowPercent, "%d is not less than %s, which is %d; set both", lowest, high, highest)
	}
	if s := c.ImageMaximumGCAge; s.Value != "" {
		if d, err := time.ParseDuration(s.Value); err != nil {
			reject("imageMaximumGCAge", s, "%s is not a time such as 168h", s.Value)
		} else if d < 0 {
			reject("imageMaximumGCAge", s, "%s is less than 0", s.Value)
		}
	}
	return bad
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
	if n, err := parsePercent(s.Value); err == nil {
		return int(n)
	}
	return otherwise
}

// parsePercent reads a number as the kubelet's flags do.
func parsePercent(text string) (int64, error) { return strconv.ParseInt(text, 0, 32) }
