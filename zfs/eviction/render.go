package eviction

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// KubeletConfiguration is the plan as a drop-in file for the kubelet, each line with
// its reason. It ends with a line break.
func (p *Plan) KubeletConfiguration() string {
	var b strings.Builder
	b.WriteString("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n")
	section := func(name string, list []Amount) {
		if len(list) == 0 {
			return
		}
		b.WriteString(name + ":\n")
		for _, a := range list {
			fmt.Fprintf(&b, "  # %s\n  %s: %q\n", a.Reason, a.Signal, a.Value)
		}
	}
	section("evictionHard", p.Hard)
	section("evictionSoft", p.Soft)
	section("evictionMinimumReclaim", p.MinimumReclaim)
	if gc := p.ImageGC; gc != nil {
		fmt.Fprintf(&b, "# %s\nimageGCHighThresholdPercent: %d\nimageMaximumGCAge: %q\n", gc.Reason, gc.HighPercent, gc.MaximumAge)
	}
	return b.String()
}

// Flags is the plan as flags of the kubelet without the dashes, as kubelet-arg of k3s
// takes them. A flag replaces a whole map, so what is switched off is just not there.
// The collection of images by age has no flag and is left out.
func (p *Plan) Flags() []string {
	var flags []string
	add := func(flag string, list []Amount, sign string) {
		var parts []string
		for _, a := range list {
			if a.Value != "0%" {
				parts = append(parts, a.Signal+sign+a.Value)
			}
		}
		if len(parts) > 0 {
			flags = append(flags, flag+"="+strings.Join(parts, ","))
		}
	}
	add("eviction-hard", p.Hard, "<")
	add("eviction-minimum-reclaim", p.MinimumReclaim, "=")
	return flags
}

// Over is what the kubelet would have with the plan as the last of its drop-ins: c with
// the keys of the plan replaced. c can be nil and is not changed. What flags set
// stays, since flags win over files.
func (p *Plan) Over(c *Config, source string) *Config {
	result := Config{}
	if c != nil {
		result = *c
	}
	put := func(to map[string]Setting, list []Amount) map[string]Setting {
		if len(list) == 0 {
			return to
		}
		for _, s := range to {
			if s.Origin == OriginFlag {
				return to
			}
		}
		if to = maps.Clone(to); to == nil {
			to = map[string]Setting{}
		}
		for _, a := range list {
			to[a.Signal] = Setting{Value: a.Value, Origin: OriginPlan, Source: source}
		}
		return to
	}
	result.Hard = put(result.Hard, p.Hard)
	result.Soft = put(result.Soft, p.Soft)
	result.MinimumReclaim = put(result.MinimumReclaim, p.MinimumReclaim)
	if gc := p.ImageGC; gc != nil {
		result.ImageGCHighPercent = Setting{Value: strconv.Itoa(gc.HighPercent), Origin: OriginPlan, Source: source}
		result.ImageMaximumGCAge = Setting{Value: gc.MaximumAge, Origin: OriginPlan, Source: source}
	}
	return &result
}
