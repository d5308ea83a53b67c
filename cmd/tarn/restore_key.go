package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/tarn-kv/tarn/store"
)

const keyHelp = `Objects of Kubernetes are
shown with their type and metadata, Secrets and ConfigMaps with their data, so that
kubectl apply takes them; --put writes the stored bytes of any kind, as they were.`

// keyOptions are the settings of tarn restore --key.
type keyOptions struct {
	key            string
	prefix         bool // all keys that begin with key
	raw            bool
	put, overwrite bool
	server         clientOptions
}

func defaultKeyOptions() keyOptions {
	o := keyOptions{server: defaultClientOptions()}
	o.server.keyFlag = clientKeyFlag
	return o
}

// clientKeyFlag is the flag for the key of a certificate, where --key is one of the store.
const clientKeyFlag = "client-key"

func (o *keyOptions) register(fs *pflag.FlagSet) {
	fs.Var(stringValue(&o.key, "key", "a key, such as /registry/secrets/default/db, or what keys begin with"), "key", "get this key out of the snapshot, or all that begin with it if it ends with /")
	boolFlag(fs, &o.prefix, "prefix", "get all keys that begin with --key, whatever it ends with")
	boolFlag(fs, &o.raw, "raw", "print the value of the one key, byte by byte")
	boolFlag(fs, &o.put, "put", "write the keys and values into the running server")
	boolFlag(fs, &o.overwrite, "overwrite", "with --put, replace keys that exist")
	o.server.register(fs)
}

// keyEnviron is the environment of a command with --key: there, TARN_KEY is still the key of the
// certificate, as for all other commands.
func keyEnviron(environ []string) []string {
	var out []string
	for _, e := range environ {
		if v, ok := strings.CutPrefix(e, envPrefix+"KEY="); ok {
			e = envPrefix + "CLIENT_KEY=" + v
		}
		out = append(out, e)
	}
	return out
}

// wanted is the range that --key stands for: the one key, or all that begin with it where that is said.
// A key that is not there never stands for others: with --put they would be written.
func (o *keyOptions) wanted(v *store.View) (store.KeyRange, error) {
	one := store.KeyRange{Key: []byte(o.key)}
	all := store.KeyRange{Key: []byte(o.key), End: prefixEnd([]byte(o.key))}
	r := one
	if o.allBelow() {
		r = all
	}
	items, err := v.Items(r, 0)
	if err != nil {
		return r, err
	}
	for range items {
		return r, nil
	}
	if items, err = v.Items(all, 0); err != nil {
		return r, err
	}
	var near []string
	more := ""
	for item := range items {
		if len(near) == shownKeys {
			more = ", …"
			break
		}
		near = append(near, item.Key)
	}
	fail := func(format string, args ...any) (store.KeyRange, error) {
		return r, withExit(exitNoSnapshot, fmt.Errorf("the snapshot has no key %q, "+format, append([]any{o.key}, args...)...))
	}
	if len(near) == 0 {
		return fail("and none that begins with it; those of Kubernetes are /registry/TYPE/NAMESPACE/NAME, such as /registry/secrets/default/db")
	}
	return fail("but others that begin with it: %s%s; give one of them, or add --prefix for all (a key that ends with / means all below it)", fewKeys(near), more)
}

// allBelow tells whether --key means all keys that begin with it.
func (o *keyOptions) allBelow() bool { return o.prefix || strings.HasSuffix(o.key, "/") }

// prefixEnd is the end of the range of all keys that begin with a prefix.
func prefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return []byte{0}
}

func runRestoreKey(ctx context.Context, opts restoreOptions, p process) (err error) {
	source, err := opts.findSource(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.cleanup()) }()
	v, err := source.openView(ctx)
	if err != nil {
		return opts.restoreError(ctx, source.dir, source.name, err)
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	wanted, err := opts.key.wanted(v)
	if err != nil {
		return err
	}
	if opts.key.put {
		return opts.putBack(ctx, v, wanted, p)
	}
	print := printText
	switch {
	case opts.key.raw:
		print = func(out io.Writer, kv *keyRecord) error { _, err := out.Write(kv.value); return err }
	case opts.output == outputJSON:
		print = func(out io.Writer, kv *keyRecord) error { return json.NewEncoder(out).Encode(kv) }
	}
	return v.Scan(ctx, wanted, 0, func(kv store.KeyValue) error { return print(p.stdout, newKeyRecord(kv)) })
}

// keyRecord is a key as it is printed; the JSON names are stable.
type keyRecord struct {
	Key            string      `json:"key"`
	KeyBase64      []byte      `json:"keyBase64,omitempty"` // where JSON can not hold the key
	CreateRevision int64       `json:"createRevision"`
	ModRevision    int64       `json:"modRevision"`
	Version        int64       `json:"version"`
	Lease          string      `json:"lease,omitempty"` // in hex, as etcdctl writes it
	Form           valueForm   `json:"form"`
	Scheme         string      `json:"scheme,omitempty"` // of an encrypted value
	Object         *kubeObject `json:"object,omitempty"`
	// Complete is set if Object has all of the object, so that kubectl can make it again.
	Complete bool            `json:"complete,omitempty"`
	JSON     json.RawMessage `json:"json,omitempty"`
	Value    []byte          `json:"value,omitempty"` // in base64, where nothing above tells all

	value []byte
}

// keyBytes are the bytes of a key that is not text, nil for one that is: JSON holds nothing but text.
func keyBytes(key string) []byte {
	if utf8.ValidString(key) {
		return nil
	}
	return []byte(key)
}

func newKeyRecord(kv store.KeyValue) *keyRecord {
	s := readValue(kv.Value)
	r := &keyRecord{
		Key: kv.Key, KeyBase64: keyBytes(kv.Key), CreateRevision: kv.Create, ModRevision: kv.Rev.Main, Version: kv.Version,
		Form: s.form, Scheme: s.scheme, Object: s.object, JSON: s.json, value: kv.Value,
	}
	if kv.Lease != 0 {
		r.Lease = fmt.Sprintf("%016x", uint64(kv.Lease))
	}
	r.Complete = s.object != nil && s.object.whole
	if s.json == nil && !r.Complete {
		r.Value = kv.Value
	}
	return r
}

// printText prints a key as one document of YAML, with what is no part of the object in comments.
func printText(out io.Writer, r *keyRecord) error {
	var b strings.Builder
	lease := "no lease"
	if r.Lease != "" {
		lease = "lease " + r.Lease
	}
	fmt.Fprintf(&b, "---\n# %s\n# version %d, changed at revision %d, created at %d, %s\n", printable(r.Key), r.Version, r.ModRevision, r.CreateRevision, lease)
	switch r.Form {
	case formKubernetes:
		if !r.Complete {
			b.WriteString("# of this kind only the metadata is shown: --raw and --output json have all, --put writes it back\n")
		}
		text, err := yaml.Marshal(r.Object)
		if err != nil {
			return err
		}
		b.Write(text)
	case formJSON:
		b.Write(r.JSON)
		b.WriteByte('\n')
	case formEncrypted:
		with := ""
		if r.Scheme != "" {
			with = " with " + printable(r.Scheme)
		}
		fmt.Fprintf(&b, "# encrypted by kube-apiserver%s: it can be read through an API server that has this key, after --put\nencrypted: %s\n",
			with, base64.StdEncoding.EncodeToString(r.Value))
	default:
		if plainText(r.value) {
			text, err := yaml.Marshal(map[string]string{"value": string(r.value)})
			if err != nil {
				return err
			}
			b.Write(text)
			break
		}
		fmt.Fprintf(&b, "base64: %s\n", base64.StdEncoding.EncodeToString(r.Value))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// printable is a key as one line that no terminal takes for a command.
func printable(key string) string {
	if plainText([]byte(key)) && !strings.ContainsAny(key, "\n\t") {
		return key
	}
	return fmt.Sprintf("%q", key)
}
