package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// configEntry is one setting of a configuration file.
type configEntry struct {
	key, value string
	line       int
}

// parseConfigFile reads a YAML mapping from flag names to values. A list stands
// for a comma-separated value. Every mistake in the file is reported, with its
// line.
func parseConfigFile(path string, text []byte, flags *pflag.FlagSet) ([]configEntry, error) {
	var doc, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(&doc)
	if err == nil {
		err = decoder.Decode(&more)
	}
	switch {
	case err == nil:
		return nil, fmt.Errorf(`configuration file %s, line %d: a second document begins there; remove the line "---"`, path, more.Line)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("configuration file %s is not YAML: %w", path, err)
	}
	if doc.Kind == 0 || isNull(doc.Content[0]) {
		return nil, nil // nothing but comments
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf(`configuration file %s: it must hold lines such as "data-dir: /var/lib/tarn"`, path)
	}
	var entries []configEntry
	var errs []error
	seen := map[string]int{}
	for i := 0; i < len(top.Content); i += 2 {
		e, err := parseEntry(top.Content[i], top.Content[i+1], flags)
		if first, twice := seen[e.key]; err == nil && twice {
			err = fmt.Errorf("%q is given twice, first in line %d", e.key, first)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("configuration file %s, line %d: %w", path, top.Content[i].Line, err))
			continue
		}
		seen[e.key] = e.line
		entries = append(entries, e)
	}
	return entries, errors.Join(errs...)
}

func parseEntry(key, val *yaml.Node, flags *pflag.FlagSet) (configEntry, error) {
	e := configEntry{key: key.Value, line: key.Line}
	f := flags.Lookup(e.key)
	if f == nil && strings.HasPrefix(e.key, toleratedPrefix) {
		return e, nil
	}
	if err := refusal(e.key); f == nil && err != nil {
		return e, err
	}
	if f == nil || f.Name == "help" || f.Name == "config-file" {
		return e, fmt.Errorf("there is no setting %q%s", e.key, didYouMean(e.key, configKeys(flags)))
	}
	switch {
	case val.Kind == yaml.ScalarNode && !isNull(val):
		e.value = val.Value
	case val.Kind == yaml.SequenceNode && takesList(f):
		items := make([]string, len(val.Content))
		for i, item := range val.Content {
			if item.Kind != yaml.ScalarNode || isNull(item) {
				return e, fmt.Errorf("%q: item %d of the list is not a plain value", e.key, i+1)
			}
			items[i] = item.Value
		}
		e.value = strings.Join(items, ",")
	case val.Kind == yaml.SequenceNode:
		return e, fmt.Errorf("%q takes one value, not a list", e.key)
	case takesList(f):
		return e, fmt.Errorf("%q needs a plain value or a list of them; leave the line out for the default", e.key)
	default:
		return e, fmt.Errorf("%q needs a plain value; leave the line out for the default", e.key)
	}
	return e, nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// configKeys are the settings that a configuration file may hold.
func configKeys(flags *pflag.FlagSet) []string {
	var keys []string
	for _, name := range flagNames(flags) {
		if name != "help" && name != "config-file" {
			keys = append(keys, name)
		}
	}
	return keys
}
