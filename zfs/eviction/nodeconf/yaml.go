package nodeconf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// object is a YAML mapping or scalar as the kubelet and k3s read it: of a key that is given twice the last counts.
type object struct {
	null   bool
	text   string // of a scalar
	isText bool   // a scalar that is no number, boolean or null
	list   []*object
	fields map[string]*object // nil for all but mappings
	order  []string           // of the fields
	twice  string             // a key that is given twice in it or below, with its line; "" if none is
	from   eviction.Setting   // Origin and Source
}

// parseYAML reads the first document of a file. An empty one is a mapping without fields.
func parseYAML(text []byte, from eviction.Setting) (*object, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if doc.Kind == 0 {
		return &object{fields: map[string]*object{}, from: from}, nil
	}
	budget := maxObjects
	o, err := newObject(doc.Content[0], from, 0, &budget)
	switch {
	case err != nil:
		return nil, err
	case o.null:
		return &object{fields: map[string]*object{}, from: from}, nil
	case o.fields == nil:
		return nil, errors.New("it holds no settings of the form key: value")
	}
	return o, nil
}

// booleans are what the kubelet and k3s, whose YAML is 1.1, take for true and false where it is not quoted.
var booleans = map[string]string{}

func init() {
	for _, words := range [][2]string{{"y", "n"}, {"yes", "no"}, {"on", "off"}, {"true", "false"}} {
		for i, value := range []string{"true", "false"} {
			w := words[i]
			for _, spelling := range []string{w, strings.ToUpper(w[:1]) + w[1:], strings.ToUpper(w)} {
				booleans[spelling] = value
			}
		}
	}
}

const (
	// maxDepth ends YAML that refers to itself.
	maxDepth = 100
	// maxObjects ends YAML whose aliases stand for ever more of the same.
	maxObjects = 100_000
)

// newObject takes from budget what it makes.
func newObject(n *yaml.Node, from eviction.Setting, depth int, budget *int) (*object, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("line %d: it is nested too deeply", n.Line)
	}
	if *budget--; *budget < 0 {
		return nil, fmt.Errorf("line %d: with its aliases it has more than %d values", n.Line, maxObjects)
	}
	o := &object{from: from}
	switch n.Kind {
	case yaml.AliasNode:
		return newObject(n.Alias, from, depth+1, budget)
	case yaml.ScalarNode:
		o.null, o.text, o.isText = n.Tag == "!!null", n.Value, n.Tag == "!!str" || n.Tag == "!!timestamp"
		if b, ok := booleans[n.Value]; ok && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			o.text, o.isText = b, false
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			item, err := newObject(c, from, depth+1, budget)
			if err != nil {
				return nil, err
			}
			o.twice = firstOf(o.twice, item.twice)
			o.list = append(o.list, item)
		}
	case yaml.MappingNode:
		o.fields = map[string]*object{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			field, err := newObject(n.Content[i+1], from, depth+1, budget)
			if err != nil {
				return nil, err
			}
			key := n.Content[i]
			if _, has := o.fields[key.Value]; has {
				field.twice = fmt.Sprintf("line %d: %s is given twice", key.Line, key.Value)
			}
			o.twice = firstOf(o.twice, field.twice)
			o.set(key.Value, field)
		}
	}
	return o, nil
}

func (o *object) set(key string, field *object) {
	if _, has := o.fields[key]; !has {
		o.order = append(o.order, key)
	}
	o.fields[key] = field
}

func (o *object) remove(key string) {
	delete(o.fields, key)
	o.order = slices.DeleteFunc(o.order, func(k string) bool { return k == key })
}

// texts are the values of a list, or the one of a scalar. null has none.
func (o *object) texts() (texts []string) {
	switch {
	case o.null:
	case o.fields == nil && o.list == nil:
		texts = append(texts, o.text)
	}
	for _, item := range o.list {
		if item.fields == nil && item.list == nil {
			texts = append(texts, item.text)
		}
	}
	return texts
}

// mergePatch is what becomes of base with a JSON merge patch (RFC 7396): mappings are merged key by
// key, null takes a key away, all else replaces. Neither is changed.
func mergePatch(base, patch *object) *object {
	if patch.fields == nil {
		return patch
	}
	merged := &object{fields: map[string]*object{}, from: patch.from}
	if base != nil {
		for _, key := range base.order {
			merged.set(key, base.fields[key])
		}
	}
	for _, key := range patch.order {
		field := patch.fields[key]
		if field.null {
			merged.remove(key)
			continue
		}
		merged.set(key, mergePatch(merged.fields[key], field))
	}
	return merged
}
