package nodeconf

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// layers puts the kubelet's settings together, one layer after the other.
type layers struct {
	*reader
	config eviction.Config
	merged *object
}

// configFile reads the file of --config. Only there the built-in thresholds come in: all of them where the file
// has no evictionHard, and with mergeDefaultEvictionSettings those that it does not name.
func (l *layers) configFile(file string) {
	l.config.ConfigFile = true
	from := eviction.Setting{Origin: eviction.OriginFile, Source: file}
	o, ok := l.kubeletFile(file, from, false)
	if !ok {
		if !l.there(file) {
			l.note(Note{Kind: Refused, File: file, Text: "the kubelet is told to read it with --config, and it is not there, so the kubelet does not start", Fix: "see why it is missing"})
		}
		return
	}
	l.merged = o
	for _, key := range signalMaps {
		o.fillNulls(key)
		l.checkSignals(key, o.fields[key]) // a wrong type here is an error, whatever drop-ins say
	}
	hard := o.fields[keyHard]
	merge := o.fields[keyMergeDefaults]
	switch {
	case hard == nil || hard.null:
		hard = &object{fields: map[string]*object{}}
	case hard.fields == nil || merge == nil || merge.text != "true":
		return
	}
	with := mergePatch(nil, hard)
	for signal, s := range eviction.DefaultHard() {
		if _, has := with.fields[signal]; !has {
			with.set(signal, &object{text: s.Value, isText: true, from: s})
		}
	}
	o.set(keyHard, with)
}

// fillNulls makes null in a mapping of the file of --config what it is for the kubelet: an empty text.
func (o *object) fillNulls(key string) {
	m := o.fields[key]
	if m == nil {
		return
	}
	for _, signal := range m.order {
		if v := m.fields[signal]; v.null {
			m.fields[signal] = &object{isText: true, from: v.from}
		}
	}
}

// kubeletFile reads a KubeletConfiguration. Keys that none has are left out and noted.
func (l *layers) kubeletFile(file string, from eviction.Setting, dropIn bool) (*object, bool) {
	text, ok := l.file(file)
	if !ok {
		return nil, false
	}
	o, err := parseYAML(text, from)
	if err != nil {
		l.config.Ignored = append(l.config.Ignored, eviction.Ignored{Path: file, Reason: eviction.IgnoredNotYAML})
		return nil, false
	}
	if dropIn && o.twice != "" { // in the file of --config the last one counts
		l.config.Ignored = append(l.config.Ignored, eviction.Ignored{Path: file, Reason: o.twice})
		return nil, false
	}
	version, kind := o.fields["apiVersion"], o.fields["kind"]
	switch {
	case version == nil || kind == nil || version.text == "" || kind.text == "":
		l.config.Ignored = append(l.config.Ignored, eviction.Ignored{Path: file, Reason: eviction.IgnoredNoHeader})
		return nil, false
	case version.text != kubeletAPIVersion || kind.text != kubeletKind:
		l.note(Note{Kind: Refused, File: file, Text: "it is a " + kind.text + " of " + version.text + ", and the kubelet does not start with it",
			Fix: "it must have apiVersion: " + kubeletAPIVersion + " and kind: " + kubeletKind})
		return nil, false
	}
	return l.knownFields(o, file, dropIn), true
}

// knownFields leaves out what the kubelet drops. Drop-ins are decoded without regard to upper and lower case, but
// merged with it, so their keys are kept as they are until fold.
func (l *layers) knownFields(o *object, file string, dropIn bool) *object {
	kept := &object{fields: map[string]*object{}, from: o.from}
	for _, key := range o.order {
		known, folded := foldedKey(key)
		switch {
		case isKnownKey(key):
			kept.set(key, o.fields[key])
		case folded && dropIn:
			kept.set(key, o.fields[key])
			l.note(Note{Kind: NoEffect, File: file, Key: key, Text: "it counts as " + known + " in a drop-in only; in another place the kubelet would drop it", Fix: "write " + known})
		default:
			l.config.Unknown = append(l.config.Unknown, eviction.UnknownKey{Path: file, Key: key, Meant: meantKey(key), DropIn: dropIn})
		}
	}
	return kept
}

// fold decodes what was merged: keys in their order, each into the setting that it is without regard to upper and
// lower case. Mappings of one setting add up, of other values the last counts.
func (l *layers) fold() {
	folded := &object{fields: map[string]*object{}, from: l.merged.from}
	for _, key := range sortedKeys(l.merged.fields) {
		field := l.merged.fields[key]
		known, ok := foldedKey(key)
		if !ok || field.null {
			continue
		}
		if slices.Contains(signalMaps, known) {
			l.checkSignals(key, field)
		}
		if before := folded.fields[known]; before != nil && before.fields != nil && field.fields != nil {
			field = mergePatch(before, field)
		}
		folded.set(known, field)
	}
	l.merged = folded
}

// dropIn is a file to merge. reads is what it is read from, if that is another one.
type dropIn struct {
	file, reads string
	origin      string
}

// walkDropIns lists the files of --config-dir as the kubelet walks it: in the order of names, subdirectories at
// their place in it.
func (l *layers) walkDropIns(dir string) (found []dropIn) {
	info, err := fs.Lstat(l.Root, inside(dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.note(Note{Kind: Refused, File: dir, Text: "the kubelet is told to read it with --config-dir, and it is not there, so the kubelet does not start", Fix: "make the directory"})
		return nil
	case err != nil:
		l.unreadable(dir, err)
		return nil
	case info.Mode()&fs.ModeSymlink != 0:
		l.note(Note{Kind: NoEffect, File: dir, Text: "it is a symbolic link, which the kubelet does not follow: nothing in it is read", Fix: "give --config-dir the directory itself"})
		return nil
	}
	err = fs.WalkDir(l.Root, inside(dir), func(name string, e fs.DirEntry, err error) error {
		file := "/" + name
		switch {
		case err != nil:
			l.unreadable(file, err)
			return nil
		case e.IsDir():
		case path.Ext(name) != ".conf":
			l.config.Ignored = append(l.config.Ignored, eviction.Ignored{Path: file, Reason: eviction.IgnoredSuffix})
		default:
			found = append(found, dropIn{file, file, eviction.OriginDropIn})
		}
		return nil
	})
	if err != nil {
		l.unreadable(dir, err)
	}
	return found
}

// addDropIns merges drop-ins over what is there.
func (l *layers) addDropIns(files []dropIn) {
	for _, d := range files {
		source := d.reads
		if d.reads != d.file {
			source += ", copied to " + d.file
		}
		o, ok := l.kubeletFile(d.reads, eviction.Setting{Origin: d.origin, Source: source}, true)
		if !ok {
			continue
		}
		if m := o.fields[keyMergeDefaults]; m != nil && m.text == "true" {
			l.note(Note{Kind: NoEffect, File: d.reads, Key: keyMergeDefaults, Text: "it has an effect only in the file of --config, not in a drop-in", Fix: "write every threshold out in evictionHard"})
		}
		l.merged = mergePatch(l.merged, o)
	}
}
