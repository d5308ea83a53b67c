package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tarn-kv/tarn/store/protofield"
)

// How kube-apiserver begins the values that it stores in other forms than JSON.
const (
	kubeProtobuf  = "k8s\x00"
	kubeEncrypted = "k8s:enc:"
)

// kubeObject is what can be told of a stored object without its Go type: what all kinds have, and the
// data of those that people look for in a backup. The names are those of Kubernetes' own JSON.
type kubeObject struct {
	APIVersion string            `json:"apiVersion" yaml:"apiVersion"`
	Kind       string            `json:"kind" yaml:"kind"`
	Metadata   kubeMetadata      `json:"metadata" yaml:"metadata"`
	Type       string            `json:"type,omitempty" yaml:"type,omitempty"` // of a Secret
	Immutable  *bool             `json:"immutable,omitempty" yaml:"immutable,omitempty"`
	Data       map[string]string `json:"data,omitempty" yaml:"data,omitempty"` // of a Secret in base64
	BinaryData map[string]string `json:"binaryData,omitempty" yaml:"binaryData,omitempty"`

	// whole is set if nothing of the object but bookkeeping is left out.
	whole bool
}

type kubeMetadata struct {
	Name              string            `json:"name,omitempty" yaml:"name,omitempty"`
	Namespace         string            `json:"namespace,omitempty" yaml:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty" yaml:"uid,omitempty"`
	CreationTimestamp string            `json:"creationTimestamp,omitempty" yaml:"creationTimestamp,omitempty"`
	DeletionTimestamp string            `json:"deletionTimestamp,omitempty" yaml:"deletionTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty" yaml:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty" yaml:"annotations,omitempty"`
	Finalizers        []string          `json:"finalizers,omitempty" yaml:"finalizers,omitempty"`
}

// valueForm tells how a value is stored.
type valueForm string

const (
	formKubernetes valueForm = "kubernetes" // protobuf of a known envelope
	formJSON       valueForm = "json"
	formEncrypted  valueForm = "encrypted" // by kube-apiserver
	formBytes      valueForm = "bytes"
)

// storedValue is a value as far as it can be understood.
type storedValue struct {
	form   valueForm
	object *kubeObject     // of formKubernetes
	json   json.RawMessage // of formJSON
	scheme string          // of formEncrypted: provider and the name of the key
}

// readValue never fails: what it does not understand are bytes.
func readValue(value []byte) storedValue {
	switch {
	case bytes.HasPrefix(value, []byte(kubeProtobuf)):
		if object, err := decodeKubeObject(value[len(kubeProtobuf):]); err == nil {
			return storedValue{form: formKubernetes, object: object}
		}
	case bytes.HasPrefix(value, []byte(kubeEncrypted)):
		scheme := value[len(kubeEncrypted):]
		// Provider, version and key's name, each before a colon; the rest is the secret.
		if parts := bytes.SplitN(scheme[:min(len(scheme), 300)], []byte(":"), 4); len(parts) == 4 {
			scheme = bytes.Join(parts[:3], []byte(":"))
		} else {
			scheme = nil
		}
		return storedValue{form: formEncrypted, scheme: strings.ToValidUTF8(string(scheme), "?")}
	case len(value) > 0 && (value[0] == '{' || value[0] == '[') && json.Valid(value):
		return storedValue{form: formJSON, json: value}
	}
	return storedValue{form: formBytes}
}

var errNotKube = errors.New("not an object of Kubernetes")

// decodeKubeObject reads the envelope, runtime.Unknown, and what it holds.
func decodeKubeObject(b []byte) (*kubeObject, error) {
	o := &kubeObject{}
	var raw []byte
	contentType := ""
	err := protofield.Each(b, func(num protowire.Number, v []byte, _ uint64) error {
		switch num {
		case 1: // TypeMeta
			return protofield.Each(v, func(num protowire.Number, v []byte, _ uint64) error {
				switch num {
				case 1:
					o.APIVersion = string(v)
				case 2:
					o.Kind = string(v)
				}
				return nil
			})
		case 2:
			raw = v
		case 3, 4: // an encoding or a type of content other than protobuf
			contentType += string(v)
		}
		return nil
	})
	if err != nil || contentType != "" || o.Kind == "" {
		return nil, errNotKube
	}
	// All kinds that are stored as protobuf have their metadata in field 1.
	err = protofield.Each(raw, func(num protowire.Number, v []byte, n uint64) error {
		if num == 1 {
			return o.Metadata.decode(v)
		}
		return o.decodeData(num, v, n)
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotKube, err)
	}
	o.whole = o.APIVersion == "v1" && (o.Kind == "Secret" || o.Kind == "ConfigMap")
	return o, nil
}

// decodeData reads the fields of a Secret or a ConfigMap.
func (o *kubeObject) decodeData(num protowire.Number, v []byte, n uint64) error {
	base64Of := base64.StdEncoding.EncodeToString
	text := func(b []byte) string { return string(b) }
	if o.APIVersion != "v1" {
		return nil
	}
	switch {
	case o.Kind == "Secret" && num == 2:
		return addEntry(&o.Data, v, base64Of)
	case o.Kind == "Secret" && num == 3:
		o.Type = string(v)
	case o.Kind == "ConfigMap" && num == 2:
		return addEntry(&o.Data, v, text)
	case o.Kind == "ConfigMap" && num == 3:
		return addEntry(&o.BinaryData, v, base64Of)
	case o.Kind == "Secret" && num == 5, o.Kind == "ConfigMap" && num == 4:
		o.Immutable = new(n != 0)
	}
	return nil
}

func (m *kubeMetadata) decode(b []byte) error {
	text := func(b []byte) string { return string(b) }
	return protofield.Each(b, func(num protowire.Number, v []byte, _ uint64) (err error) {
		switch num {
		case 1:
			m.Name = string(v)
		case 3:
			m.Namespace = string(v)
		case 5:
			m.UID = string(v)
		case 8:
			m.CreationTimestamp, err = decodeKubeTime(v)
		case 9:
			m.DeletionTimestamp, err = decodeKubeTime(v)
		case 11:
			err = addEntry(&m.Labels, v, text)
		case 12:
			err = addEntry(&m.Annotations, v, text)
		case 14:
			m.Finalizers = append(m.Finalizers, string(v))
		}
		return err
	})
}

func decodeKubeTime(b []byte) (text string, err error) {
	var seconds int64
	err = protofield.Each(b, func(num protowire.Number, _ []byte, n uint64) error {
		if num == 1 {
			seconds = int64(n)
		}
		return nil
	})
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339), err
}

// addEntry adds one entry of a protobuf map.
func addEntry(to *map[string]string, entry []byte, show func([]byte) string) error {
	var key, value []byte
	err := protofield.Each(entry, func(num protowire.Number, v []byte, _ uint64) error {
		switch num {
		case 1:
			key = v
		case 2:
			value = v
		}
		return nil
	})
	if err != nil {
		return err
	}
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[string(key)] = show(value)
	return nil
}

// plainText tells whether bytes are text to show as it is.
func plainText(b []byte) bool {
	return utf8.Valid(b) && !bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f })
}
