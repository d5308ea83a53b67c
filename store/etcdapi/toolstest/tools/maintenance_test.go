package tools

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// Every form of output that etcdctl has.
var forms = []string{"simple", "fields", "json", "protobuf", "table"}

// unsupported is what etcdctl says where a command has no such form.
const unsupported = "not supported as output format"

// inAllForms runs a command with each form of output; json must be valid.
func (s *server) inAllForms(args ...string) {
	s.t.Helper()
	for _, form := range forms {
		stdout, stderr, err := s.run("", append([]string{"-w", form}, args...)...)
		if err != nil && !strings.Contains(stderr, unsupported) {
			s.t.Errorf("etcdctl %s in form %s: %v\n%s%s", strings.Join(args, " "), form, err, stdout, stderr)
		}
		if form == "json" && err == nil {
			decode[any](s.t, stdout)
		}
	}
}

func TestForms(t *testing.T) {
	s := start(t)
	s.fill("k", 3)
	for _, command := range []string{
		"get --prefix k", "put k0 x --prev-kv", "del k0 --prev-kv", "lease grant 600", "lease list",
		"endpoint health", "endpoint status", "endpoint hashkv", "endpoint hashkv --rev=4",
		"endpoint health --cluster", "endpoint status --cluster", "endpoint hashkv --cluster",
		"member list", "alarm list", "alarm disarm",
	} {
		s.inAllForms(strings.Fields(command)...)
	}
}

func TestEndpoint(t *testing.T) {
	s := start(t)
	s.fill("k", 3)
	if out := s.ctl("endpoint", "health"); !strings.Contains(out, s.url+" is healthy: successfully committed proposal") {
		t.Errorf("health: %s", out)
	}
	status := decode[[]struct {
		Endpoint string
		Status   struct {
			Header           struct{ Revision int }
			Version          string
			Leader, DbSize   uint64
			StorageVersion   string
			DowngradeInfo    struct{ Enabled bool }
			RaftTerm         uint64
			RaftAppliedIndex uint64
		}
	}](t, s.ctl("endpoint", "status", "-w", "json"))
	if len(status) != 1 || status[0].Endpoint != s.url || status[0].Status.Header.Revision != 4 ||
		status[0].Status.Version != "3.7.3" || status[0].Status.Leader == 0 || status[0].Status.DbSize == 0 {
		t.Errorf("status: %+v", status)
	}
	at4, at3 := s.hashKV(4), s.hashKV(3)
	s.ctl("put", "more", "x")
	if again := s.hashKV(4); again != at4 || at3 == at4 {
		t.Errorf("hash at 3: %d, at 4: %d, again: %d", at3, at4, again)
	}
	s.refused("required revision is a future revision", "endpoint", "hashkv", "--rev=100")
}

// hashKV returns the hash of the keys at a revision.
func (s *server) hashKV(revision int) uint64 {
	s.t.Helper()
	answer := decode[[]struct{ HashKV struct{ Hash uint64 } }](s.t, s.ctl("endpoint", "hashkv", fmt.Sprintf("--rev=%d", revision), "-w", "json"))
	return answer[0].HashKV.Hash
}

func TestMembers(t *testing.T) {
	s := start(t, "--name=alone")
	fields := strings.Split(s.ctl("member", "list"), ", ")
	if len(fields) != 6 || fields[1] != "started" || fields[2] != "alone" || fields[4] != s.url || fields[5] != "false" {
		t.Fatalf("member list: %q", fields)
	}
	id, peer := fields[0], fields[3]
	if out := s.ctl("member", "update", id, "--peer-urls="+peer); !strings.Contains(out, "updated in cluster") {
		t.Errorf("member update: %s", out)
	}
	for _, c := range []struct{ want, args string }{
		{"re-configuration failed due to not enough started members", "member add other --peer-urls=http://127.0.0.1:9"},
		{"re-configuration failed due to not enough started members", "member add other --learner --peer-urls=http://127.0.0.1:9"},
		{"member not found", "member promote 1234"},
		{"member not found", "member remove 1234"},
		{"can only promote a learner member", "member promote " + id},
		{"re-configuration failed due to not enough started members", "member remove " + id},
		{"bad leader transferee", "move-leader 1234"},
		{"invalid downgrade target version", "downgrade validate 3.5"},
		{"", "downgrade enable 3.6"},
	} {
		s.refused(c.want, strings.Fields(c.args)...)
	}
	s.expect("Leadership transferred from "+id+" to "+id, "move-leader", id)
	s.expect("Downgrade cancel success, cluster version 3.7", "downgrade", "cancel")
}

func TestDefrag(t *testing.T) {
	s := start(t)
	s.fill("k", 20)
	s.ctl("del", "--prefix", "k")
	s.ctl("compaction", "22")
	if out := s.ctl("defrag"); !strings.HasPrefix(out, "Finished defragmenting etcd member["+s.url+"]") {
		t.Errorf("defrag: %s", out)
	}
	if out := s.ctl("defrag", "--cluster"); !strings.HasPrefix(out, "Finished defragmenting etcd member["+s.url+"]") {
		t.Errorf("defrag --cluster: %s", out)
	}
	s.ctl("put", "k", "still writable")
}

// A full server says so in the list of alarms, and is written to again when
// there is room and the alarm is disarmed.
func TestAlarms(t *testing.T) {
	const mebibyte = 1 << 20
	s := start(t, fmt.Sprintf("--quota-backend-bytes=%d", 8*mebibyte))
	s.expect("", "alarm", "list")
	full := false
	for i := 0; i < 200 && !full; i++ {
		_, stderr, err := s.run(strings.Repeat("x", mebibyte/16), "put", fmt.Sprint("big", i))
		full = err != nil
		if full && !strings.Contains(stderr, "mvcc: database space exceeded") {
			t.Fatalf("put: %s", stderr)
		}
	}
	if !full {
		t.Fatal("the server took more than its quota")
	}
	if out := s.ctl("alarm", "list"); !strings.Contains(out, "alarm:NOSPACE") {
		t.Errorf("alarm list: %q", out)
	}
	s.refused("database space exceeded", "put", "small", "x")
	s.ctl("del", "--prefix", "big")
	revision := decode[[]struct {
		Status struct{ Header struct{ Revision int } }
	}](t, s.ctl("endpoint", "status", "-w", "json"))
	s.ctl("compaction", fmt.Sprint(revision[0].Status.Header.Revision), "--physical")
	s.ctl("defrag")
	s.ctl("alarm", "disarm")
	s.expect("", "alarm", "list")
	s.expect("OK", "put", "small", "x")
}

func TestVersionAndCompletion(t *testing.T) {
	s := start(t)
	if out := s.ctl("version"); !strings.Contains(out, "etcdctl version: 3.7.3") {
		t.Errorf("version: %s", out)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		for _, tool := range []string{"etcdctl", "etcdutl"} {
			out, err := exec.Command(binary(t, tool), "completion", shell).Output()
			if err != nil || !strings.Contains(string(out), tool) {
				t.Errorf("%s completion %s: %v", tool, shell, err)
			}
		}
	}
}
