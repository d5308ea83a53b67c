package tools

import (
	"strings"
	"testing"
)

func TestTxnForms(t *testing.T) {
	s := start(t)
	s.ctl("put", "a", "1") // revision 2
	s.ctl("put", "b", "2") // revision 3
	for _, c := range []struct{ name, compares, then, otherwise, want string }{
		{"all kinds of compare", "mod(\"a\") = \"2\"\ncreate(\"a\") < \"3\"\nver(\"a\") > \"0\"\nval(\"a\") != \"2\"",
			"get a", "get b", "SUCCESS | a | 1"},
		{"a false one", "value(\"a\") = \"no\"", "get a", "get b\nput c 3\ndel none", "FAILURE | b | 2 | OK | 0"},
		{"no compare", "", "put \"d e\" \"f g\"\nget \"d e\"", "", "SUCCESS | OK | d e | f g"},
		{"no operation", "", "", "", "SUCCESS"},
		{"ranges", "", "get --prefix d\ndel --prefix --prev-kv d", "", "SUCCESS | d e | f g | 1 | d e | f g"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var input strings.Builder
			for _, section := range []string{c.compares, c.then, c.otherwise} {
				if section != "" {
					section += "\n"
				}
				input.WriteString(section + "\n") // an empty line ends a section
			}
			out := s.ctlInput(input.String(), "txn")
			if got := strings.Join(strings.FieldsFunc(out, func(r rune) bool { return r == '\n' }), " | "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestTxnInteractive(t *testing.T) {
	s := start(t)
	out := s.ctlInput("ver(\"a\") = \"0\"\n\nput a 1\n\nget a\n\n", "txn", "-i")
	for _, prompt := range []string{"compares:", "success requests (get, put, del):", "failure requests (get, put, del):", "SUCCESS"} {
		if !strings.Contains(out, prompt) {
			t.Errorf("%q is not in\n%s", prompt, out)
		}
	}
	s.expect("a | 1", "get", "a")
}
