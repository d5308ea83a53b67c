package tools

import (
	"strings"
	"testing"
)

// Keys are put so that each order sorts them differently.
func TestGetOrders(t *testing.T) {
	s := start(t)
	s.ctl("put", "k/b", "3") // created at 2
	s.ctl("put", "k/a", "1") // created at 3
	s.ctl("put", "k/c", "2") // created at 4
	s.ctl("put", "k/b", "3") // changed at 5, version 2
	s.ctl("put", "k/b", "3") // changed at 6, version 3
	s.ctl("put", "k/c", "2") // changed at 7, version 2
	for _, c := range []struct{ want, flags string }{
		{"k/a | k/b | k/c", "--sort-by=key"},
		{"k/c | k/b | k/a", "--sort-by=key --order=descend"},
		{"k/b | k/a | k/c", "--sort-by=create --order=ascend"},
		{"k/a | k/b | k/c", "--sort-by=modify --order=ascend"},
		{"k/b | k/c | k/a", "--sort-by=version --order=descend"},
		{"k/a | k/c | k/b", "--sort-by=value --order=ascend"},
		{"k/b", "--sort-by=version --order=descend --limit=1"},
		{"k/c", "--min-mod-rev=7"},
		{"k/a", "--max-mod-rev=5"},
		{"k/a | k/c", "--min-create-rev=3"},
		{"k/b", "--max-create-rev=2"},
		{"k/a | k/b", "--limit=2"},
		{"k/a | k/b", "--rev=3"},
	} {
		flags := strings.Fields(c.flags + " --prefix k/ --keys-only")
		if got := strings.Join(strings.Fields(s.ctl(append([]string{"get"}, flags...)...)), " | "); got != c.want {
			t.Errorf("get %s: got %s, want %s", c.flags, got, c.want)
		}
	}
}

func TestGetForms(t *testing.T) {
	s := start(t)
	s.ctl("put", "a", "1")
	s.ctl("put", "b", "2")
	s.ctl("put", "c", "3")
	s.expect("a | 1", "get", "a")
	s.expect("a | 1 | b | 2", "get", "a", "c")
	s.expect("b | 2 | c | 3", "get", "--from-key", "b")
	s.expect("1", "get", "a", "--print-value-only")
	s.expect(`\x61 | \x31`, "get", "a", "--hex")
	s.expect("a | 1", "get", "a", "--consistency=s")
	s.expect("", "get", "none")
	for _, field := range []string{`"Key" : "a"`, `"CreateRevision" : 2`, `"Version" : 1`, `"Count" : 1`} {
		if out := s.ctl("get", "a", "-w", "fields"); !strings.Contains(out, field) {
			t.Errorf("fields: %s is not in\n%s", field, out)
		}
	}
	got := decode[struct {
		Count  int
		More   bool
		Header struct{ Revision int }
		Kvs    []struct{ Key, Value []byte }
	}](t, s.ctl("get", "--prefix", "", "--limit=2", "-w", "json"))
	if got.Count != 3 || !got.More || got.Header.Revision != 4 || len(got.Kvs) != 2 || string(got.Kvs[1].Value) != "2" {
		t.Errorf("json: %+v", got)
	}
	if out := s.ctl("get", "a", "-w", "protobuf"); !strings.Contains(out, "a\x10") {
		t.Errorf("protobuf: %q", out)
	}
	if out := s.ctl("get", "--prefix", "", "--count-only", "-w", "fields"); !strings.Contains(out, `"Count" : 3`) {
		t.Errorf("count: %s", out)
	}
	s.refused("required revision is a future revision", "get", "a", "--rev=100")
}

func TestPutForms(t *testing.T) {
	s := start(t)
	s.expect("OK", "put", "a", "1")
	s.expect("OK | a | 1", "put", "a", "2", "--prev-kv")
	lease := grant(s, 600)
	s.expect("OK", "put", "a", "3", "--lease="+lease)
	s.expect("OK", "put", "a", "4", "--ignore-lease")
	s.expect("a | 4", "get", "a")
	s.ctl("put", "a", "--ignore-value", "--lease="+lease)
	s.expect("a | 4", "get", "a")
	if out := s.ctlInput("from\nstandard input", "put", "a"); out != "OK" {
		t.Errorf("put of standard input: %s", out)
	}
	s.expect("from | standard input", "get", "a", "--print-value-only")
	s.refused("requested lease not found", "put", "a", "5", "--lease=1234")
	s.refused("key not found", "put", "none", "--ignore-value")
}

func TestDeleteForms(t *testing.T) {
	s := start(t)
	s.fill("d", 6)
	s.expect("1 | d0 | value-0", "del", "d0", "--prev-kv")
	s.expect("0", "del", "d0")
	s.expect("2", "del", "d1", "d3")
	s.expect("2 | d4 | value-4 | d5 | value-5", "del", "--from-key", "d4", "--prev-kv")
	s.expect("1", "del", "--prefix", "d")
	s.refused("key is not provided", "del", "")
	s.expect("0", "del", "--prefix", "")
}

func TestCompaction(t *testing.T) {
	s := start(t)
	for range 5 {
		s.ctl("put", "a", "x") // revisions 2 to 6
	}
	s.expect("compacted revision 4", "compaction", "4", "--physical")
	s.refused("required revision has been compacted", "get", "a", "--rev=3")
	s.expect("a | x", "get", "a", "--rev=4")
	s.refused("required revision has been compacted", "compaction", "4")
	s.refused("required revision is a future revision", "compaction", "100")
	s.expect("compacted revision 6", "compact", "6")
}
