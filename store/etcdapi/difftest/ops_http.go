package difftest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// HTTP sends a request to the client port and compares status, the named
// headers and the body: JSON by parsed value, anything else as text.
func HTTP(verb, path, body string, headers ...string) Op {
	return func(ctx context.Context, s *Session) Facts {
		return s.http(ctx, verb, "http://"+s.Server.Client+path, body, headers)
	}
}

// MetricsPort is HTTP with GET on the metrics port.
func MetricsPort(path string, headers ...string) Op {
	return func(ctx context.Context, s *Session) Facts {
		return s.http(ctx, http.MethodGet, "http://"+s.Server.Metrics+path, "", headers)
	}
}

// Gateway posts JSON to the client port.
func Gateway(path, body string) Op { return HTTP(http.MethodPost, path, body) }

// StatusOnly compares nothing but the HTTP status.
func StatusOnly(op Op) Op {
	return func(ctx context.Context, s *Session) Facts {
		return slices.DeleteFunc(op(ctx, s), func(x Fact) bool { return x.Path != "status" })
	}
}

// FirstLine posts JSON to a method that answers with a stream, and compares the
// first message of it.
func FirstLine(path, body string) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		ctx, cancel := context.WithTimeout(ctx, recvTimeout)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.Server.Client+path, strings.NewReader(body))
		if err != nil {
			f.add("!error", err)
			return f
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			f.add("!error", s.ownIDs(err.Error()))
			return f
		}
		defer resp.Body.Close()
		f.add("status", resp.StatusCode)
		line, err := bufio.NewReader(resp.Body).ReadBytes('\n')
		if err != nil {
			f.add("!error", err)
		}
		f.body(s, line)
		return f
	}
}

func (s *Session) http(ctx context.Context, verb, url, body string, headers []string) Facts {
	var f Facts
	req, err := http.NewRequestWithContext(ctx, verb, url, strings.NewReader(body))
	if err != nil {
		f.add("!error", err)
		return f
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.add("!error", s.ownIDs(err.Error()))
		return f
	}
	defer resp.Body.Close()
	f.add("status", resp.StatusCode)
	for _, h := range headers {
		f.add("header "+h, strings.Join(resp.Header.Values(h), ", "))
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		f.add("!error", err)
	}
	f.body(s, b)
	return f
}

func (f *Facts) body(s *Session, b []byte) {
	dec := json.NewDecoder(strings.NewReader(string(b)))
	for i := 0; dec.More(); i++ {
		var v any
		if err := dec.Decode(&v); err != nil {
			// The checks of /readyz come in any order (HTTP-4).
			for j, line := range slices.Sorted(strings.SplitSeq(strings.TrimSpace(string(b)), "\n")) {
				f.add(fmt.Sprintf("line[%d]", j), fmt.Sprintf("%q", s.ownIDs(line)))
			}
			return
		}
		f.json(s, fmt.Sprintf("json[%d]", i), v)
	}
}

// jsonMasks are the JSON names of masked numbers; the reasons are those of masks.
var jsonMasks = []string{"raft_term", "raftTerm", "raftIndex", "raftAppliedIndex", "dbSize", "dbSizeInUse", "hash", "name", "peerURLs", "TTL", "blob", "remaining_bytes"}

func (f *Facts) json(s *Session, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		f.add(path, "object")
		for _, k := range sortedKeys(v) {
			if slices.Contains(jsonMasks, k) {
				f.add(path+"."+k, "present")
				continue
			}
			f.json(s, path+"."+k, v[k])
		}
	case []any:
		f.add(path+".len", len(v))
		for i, e := range v {
			f.json(s, fmt.Sprintf("%s[%d]", path, i), e)
		}
	case string:
		f.add(path, fmt.Sprintf("%q", s.ownIDs(v)))
	default:
		f.add(path, fmt.Sprintf("%v", v))
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

var (
	typeLine  = regexp.MustCompile(`^# TYPE (\S+) (\S+)$`)
	labelName = regexp.MustCompile(`([a-zA-Z_]+)="`)
)

// MetricFamilies compares type and label names of the named metrics.
func MetricFamilies(names ...string) Op {
	return func(ctx context.Context, s *Session) Facts {
		var f Facts
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Server.Client+"/metrics", nil)
		if err != nil {
			f.add("!error", err)
			return f
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			f.add("!error", err)
			return f
		}
		defer resp.Body.Close()
		f.add("status", resp.StatusCode)
		types, labels := parseMetrics(resp.Body)
		for _, n := range names {
			if t, ok := types[n]; ok {
				f.add(n, strings.TrimSpace(t+" "+strings.Join(labels[n], ",")))
			}
		}
		return f
	}
}

func parseMetrics(r io.Reader) (types map[string]string, labels map[string][]string) {
	types, labels = map[string]string{}, map[string][]string{}
	var family string
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := typeLine.FindStringSubmatch(lines.Text()); m != nil {
			family = m[1]
			types[family] = m[2]
			continue
		}
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		for _, m := range labelName.FindAllStringSubmatch(lines.Text(), -1) {
			if !slices.Contains(labels[family], m[1]) {
				labels[family] = append(labels[family], m[1])
			}
		}
		slices.Sort(labels[family])
	}
	return types, labels
}
