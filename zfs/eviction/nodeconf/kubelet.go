package nodeconf

import (
	"fmt"
	"strings"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// signalMaps are the settings that map signals to values.
var signalMaps = []string{keyHard, keySoft, keyGrace, keyReclaim}

// fromFiles takes over what the files say together.
func (l *layers) fromFiles() {
	l.fold()
	c := &l.config
	for key, to := range map[string]*map[string]eviction.Setting{keyHard: &c.Hard, keySoft: &c.Soft, keyGrace: &c.SoftGracePeriod, keyReclaim: &c.MinimumReclaim} {
		*to = l.signals(key)
	}
	for key, to := range map[string]*eviction.Setting{keyImageGCHigh: &c.ImageGCHighPercent, keyImageGCLow: &c.ImageGCLowPercent, keyImageMaxAge: &c.ImageMaximumGCAge} {
		if o := l.merged.fields[key]; o != nil && !o.null {
			*to = o.setting()
		}
	}
}

func (o *object) setting() eviction.Setting {
	s := o.from
	s.Value = o.text
	return s
}

// checkSignals notes what is no mapping from signals to text: the kubelet takes nothing else.
func (l *layers) checkSignals(key string, o *object) {
	if o == nil || o.null {
		return
	}
	if o.fields == nil {
		l.note(Note{Kind: Refused, File: o.from.Source, Key: key, Text: "it must be a mapping of signals to values, and the kubelet does not start with it", Fix: "see docs/kubelet-eviction.md for the form"})
	}
	for signal, v := range o.fields {
		if !v.null && !v.isText {
			l.note(Note{Kind: Refused, File: v.from.Source, Key: key + "." + signal, Text: fmt.Sprintf("the value %s is not text, and the kubelet does not start with it", firstOf(v.text, "there")),
				Fix: "quote it, or give it a unit such as Gi or %"})
		}
	}
}

// signals reads a mapping from signals to values, nil if there is none.
func (l *layers) signals(key string) map[string]eviction.Setting {
	o := l.merged.fields[key]
	if o == nil || o.null || o.fields == nil {
		return nil
	}
	signals := map[string]eviction.Setting{}
	for signal, v := range o.fields {
		if !v.null {
			signals[signal] = v.setting()
		}
	}
	return signals
}

// flags takes over what command lines say. A flag replaces the whole of what files say under its name; of
// several flags of one name the signals add up.
func (l *layers) flags(args []Arg) {
	c := &l.config
	for _, f := range []struct {
		flag, key, equals string
		to                *map[string]eviction.Setting
	}{
		{"eviction-hard", keyHard, "<", &c.Hard},
		{"eviction-soft", keySoft, "<", &c.Soft},
		{"eviction-soft-grace-period", keyGrace, "=", &c.SoftGracePeriod},
		{"eviction-minimum-reclaim", keyReclaim, "=", &c.MinimumReclaim},
	} {
		if given, by := l.flagSignals(args, f.flag, f.equals); given != nil {
			l.lose(f.key, *f.to, by)
			*f.to = given
		}
	}
	for flag, to := range map[string]*eviction.Setting{"image-gc-high-threshold": &c.ImageGCHighPercent, "image-gc-low-threshold": &c.ImageGCLowPercent} {
		if g, ok := lastArg(args, flag); ok {
			*to = g.flagSetting(flag)
		}
	}
}

// flagSetting is a value from the kubelet's command line.
func (g Given) flagSetting(flag string) eviction.Setting {
	s := eviction.Setting{Value: g.Value, Origin: eviction.OriginFlag}
	switch g.Place {
	case PlaceDefault:
		s.Origin, s.Source = eviction.OriginDefault, "the flag --"+flag+" that k3s gives by itself"
	case PlaceFile:
		s.Source = "kubelet-arg in " + g.File
	case PlaceByHand:
		s.Source = "--" + flag + ", by hand"
	default:
		s.Source = "--" + flag + " in " + firstOf(g.File, "the command line")
	}
	return s
}

// flagSignals reads all flags of one name; nil if there is none. by is the last one, with the text of all.
func (l *layers) flagSignals(args []Arg, flag, equals string) (signals map[string]eviction.Setting, by eviction.Setting) {
	var texts []string
	for _, a := range args {
		if flagName(a.Name) != flag {
			continue
		}
		if signals == nil {
			signals = map[string]eviction.Setting{}
		}
		texts = append(texts, a.Value)
		by = a.flagSetting(flag)
		for part := range strings.SplitSeq(a.Value, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			signal, value, ok := strings.Cut(part, equals)
			if !ok {
				l.note(Note{Kind: Refused, File: a.File, Key: "--" + flag, Text: fmt.Sprintf("%q is not of the form SIGNAL%sVALUE, and the kubelet does not start with it", part, equals), Fix: "correct the flag"})
				continue
			}
			s := by
			s.Value = strings.TrimSpace(value)
			signals[strings.TrimSpace(signal)] = s
		}
	}
	by.Value = strings.Join(texts, ",")
	return signals, by
}

// lose records what files say and a flag replaces.
func (l *layers) lose(key string, has map[string]eviction.Setting, by eviction.Setting) {
	for _, signal := range sortedKeys(has) {
		if s := has[signal]; s.Origin == eviction.OriginFile || s.Origin == eviction.OriginDropIn {
			l.config.Lost = append(l.config.Lost, eviction.Lost{Map: key, Key: signal, Setting: s, By: by})
		}
	}
}
