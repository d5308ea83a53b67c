package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// doctorOf is a doctor of a machine without anything but these files.
func doctorOf(t *testing.T, version string, files map[string]string) doctorOptions {
	t.Helper()
	o := defaultDoctorOptions()
	o.installed = "" // whatever this machine has
	o.endpoint = &o.server
	o.machine = testMachine(t, t.TempDir(), version, files)
	o.timeout = time.Minute
	o.dataDir = filepath.Join(t.TempDir(), "data")
	o.server.endpoint = mustURLs(t, "http://127.0.0.1:1")[0]
	o.output = outputJSON
	return o
}

func examine(t *testing.T, o doctorOptions) (doctorReport, int) {
	t.Helper()
	var out bytes.Buffer
	err := runDoctor(t.Context(), o, nil, &out)
	var r doctorReport
	if jsonErr := json.Unmarshal(out.Bytes(), &r); jsonErr != nil {
		t.Fatalf("%v in %s", jsonErr, &out)
	}
	for i := 1; i < len(r.Findings); i++ {
		if slices.Index(weights, r.Findings[i].Weight) < slices.Index(weights, r.Findings[i-1].Weight) {
			t.Errorf("%+v comes after %+v", r.Findings[i], r.Findings[i-1])
		}
	}
	for _, f := range r.Findings {
		if f.Do == "" && (f.Weight == weightProblem || f.Weight == weightWarning || f.Weight == weightUnknown) || f.Found == "" {
			t.Errorf("nothing to do: %+v", f)
		}
	}
	return r, exitCode(err)
}

// wantFinding wants a finding about something.
func wantFinding(t *testing.T, list []finding, area, what string, w weight, text string) {
	t.Helper()
	var others []finding
	for _, f := range list {
		if f.Area == area && f.What == what {
			if f.Weight == w && strings.Contains(f.Found, text) {
				return
			}
			others = append(others, f)
		}
	}
	t.Errorf("no %s about %s: %s with %q; there are %+v", w, area, what, text, others)
}

// A machine with nothing on it: each part says what is missing, in one line.
func TestDoctorWithoutAnything(t *testing.T) {
	o := doctorOf(t, "", nil)
	r, code := examine(t, o)
	if code != exitProblems || r.Problems != 1 || len(r.Findings) != 5 {
		t.Errorf("exit code %d, %+v", code, r)
	}
	wantFinding(t, r.Findings, "store", "answer", weightProblem, "no server is reachable")
	wantFinding(t, r.Findings, "dataset", "data directory", weightNote, o.dataDir)
	wantFinding(t, r.Findings, "units", "systemd", weightNote, "not here")
	wantFinding(t, r.Findings, "kubelet", "kubelet", weightNote, "no kubelet")
	wantFinding(t, r.Findings, "k3s", "k3s", weightNote, "not on this machine")
	var page bytes.Buffer
	o.output = outputText
	if err := runDoctor(t.Context(), o, nil, &page); exitCode(err) != exitProblems {
		t.Error(err)
	}
	golden(t, "doctor/nothing.txt", "\n"+strings.ReplaceAll(page.String(), o.dataDir, "DIR"), "")
}

func TestDoctorOfServer(t *testing.T) {
	o := doctorOf(t, "", nil)
	s := serveDir(t, o.dataDir, "")
	o.server.endpoint = mustURLs(t, s.url)[0]
	c := s.client(t)
	if err := put(t, c, "/registry/pods/default/p", "x"); err != nil {
		t.Fatal(err)
	}
	before := treeOf(t, o.dataDir)
	keys, revision := keyCount(t, c)
	r, code := examine(t, o)
	for what, w := range map[string]weight{
		"answer": weightOK, "alarm": weightOK, "quota": weightOK, "version": weightOK, "read": weightOK,
		"progress": weightOK, "stream": weightOK, "history": weightOK, "growth": weightOK, "disk": weightNote, "bootstrap": weightNote,
	} {
		wantFinding(t, r.Findings, "store", what, w, "")
	}
	wantFinding(t, r.Findings, "dataset", "owner", weightOK, o.dataDir)
	wantFinding(t, r.Findings, "dataset", "snapshots", weightWarning, "there are none")
	if code != exitWarnings || r.Problems > 0 {
		t.Errorf("exit code %d, %+v", code, r)
	}
	if k, n := keyCount(t, c); k != keys || n != revision || !slices.Equal(treeOf(t, o.dataDir), before) {
		t.Errorf("something was written: %d keys at %d, %q", k, n, treeOf(t, o.dataDir))
	}
	// The server of somebody else.
	o.dataDir = filepath.Join(t.TempDir(), "other")
	serveDir(t, o.dataDir, "")
	r, _ = examine(t, o)
	wantFinding(t, r.Findings, "dataset", "owner", weightWarning, "is not the one that has ")
	o.brief = true
	if r, _ = examine(t, o); countWeight(r.Findings, weightOK)+countWeight(r.Findings, weightNote) > 0 {
		t.Errorf("%+v", r.Findings)
	}
}

func treeOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A part that hangs, as on a suspended pool, keeps neither the others nor the whole.
func TestDoctorWithHangingPart(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	list := lookAll(t.Context(), []doctorSection{
		{"dataset", func(_ context.Context, f *findings) { f.ok("pool", "seen before"); <-release }},
		{"units", func(_ context.Context, f *findings) { f.ok("tarn.service", "running") }},
		{"store", func(ctx context.Context, f *findings) {
			<-ctx.Done()
			f.unknown("answer", "wait", "%v", ctx.Err())
		}},
	}, 50*time.Millisecond)
	wantFinding(t, list, "dataset", "time", weightUnknown, "within 50ms")
	wantFinding(t, list, "dataset", "pool", weightOK, "seen before")
	wantFinding(t, list, "units", "tarn.service", weightOK, "running")
	wantFinding(t, list, "store", "answer", weightUnknown, "deadline")
	if len(list) != 4 {
		t.Errorf("%+v", list)
	}
}

func TestDoctorVerdicts(t *testing.T) {
	of := func(all ...weight) (list []finding) {
		for _, w := range all {
			list = append(list, finding{Weight: w})
		}
		return list
	}
	for _, c := range []struct {
		list []finding
		code int
		text string
	}{
		{of(weightOK, weightNote), exitOK, "nothing to do"},
		{of(weightOK, weightUnknown), exitNotAllSeen, "1 could not be looked at"},
		{of(weightUnknown, weightWarning, weightWarning), exitWarnings, "2 warnings, 1 could not be looked at"},
		{of(weightWarning, weightProblem), exitProblems, "1 problem, 1 warning"},
	} {
		if code := exitCode(verdictOf(c.list)); code != c.code || tally(c.list) != c.text {
			t.Errorf("%+v: %d, %q", c.list, code, tally(c.list))
		}
	}
}

func TestDoctorUnits(t *testing.T) {
	unit := func(id, load, active, file string, more ...string) string {
		return fmt.Sprintf("Id=%s\nLoadState=%s\nActiveState=%s\nSubState=running\nUnitFileState=%s\n%s\n\n", id, load, active, file, strings.Join(more, "\n"))
	}
	o := doctorOf(t, "", nil)
	look := func(out string, err error) []finding {
		o.machine.Run = func(_ context.Context, name string, args ...string) (string, error) {
			if name != "systemctl" || args[0] != "show" {
				t.Errorf("it runs %s %v", name, args)
			}
			return out, err
		}
		f := &findings{area: "units"}
		o.lookAtUnits(t.Context(), f)
		return f.all()
	}
	wantFinding(t, look("", errors.New("not booted")), "units", "systemd", weightNote, "not booted")
	wantFinding(t, look("", exec.ErrNotFound), "units", "systemd", weightNote, "not here")
	wantFinding(t, look(unit("tarn.service", "not-found", "inactive", ""), nil), "units", "tarn.service", weightNote, "not installed")
	all := look(unit("tarn.socket", "loaded", "active", "enabled")+unit("tarn.service", "loaded", "active", "disabled", "NRestarts=0")+
		unit("tarn-snapshot.timer", "loaded", "active", "enabled")+unit("tarn-verify.timer", "loaded", "inactive", "disabled"), nil)
	wantFinding(t, all, "units", "tarn.service", weightOK, "running")
	wantFinding(t, all, "units", "tarn-snapshot.timer", weightOK, "")
	wantFinding(t, all, "units", "tarn-verify.timer", weightWarning, "nobody proves")
	all = look(unit("tarn.socket", "loaded", "active", "enabled")+unit("tarn.service", "loaded", "inactive", "disabled"), nil)
	wantFinding(t, all, "units", "tarn.socket", weightOK, "starts with the first connection")
	all = look(unit("tarn.socket", "loaded", "inactive", "disabled")+unit("tarn.service", "loaded", "failed", "disabled", "Result=exit-code", "NRestarts=4")+
		unit("tarn-snapshot.timer", "loaded", "active", "enabled")+unit("tarn-snapshot.service", "loaded", "failed", "static", "Result=timeout")+
		unit("k3s.service", "loaded", "failed", "enabled", "Result=signal"), nil)
	wantFinding(t, all, "units", "tarn.service", weightProblem, "failed (exit-code)")
	wantFinding(t, all, "units", "tarn.service", weightWarning, "4 time(s)")
	wantFinding(t, all, "units", "tarn.socket", weightWarning, "not enabled")
	wantFinding(t, all, "units", "tarn-snapshot.timer", weightProblem, "timeout")
	wantFinding(t, all, "units", "k3s.service", weightProblem, "signal")
}

// A mistake in the server's configuration file is reported, and all else is looked at.
func TestDoctorWithBadConfiguration(t *testing.T) {
	path := writeFile(t, "tarn.yaml", "data-dri: /x\n")
	code, out, errs := tarn(t, nil, "doctor", "--config-file="+path, "--endpoint=http://127.0.0.1:1", "--timeout=20s", "-o=json")
	var r doctorReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitProblems || errs != "" {
		t.Fatalf("%d, %v, %s%s", code, err, out, errs)
	}
	wantFinding(t, r.Findings, "store", "configuration", weightProblem, `did you mean "data-dir"?`)
	wantFinding(t, r.Findings, "store", "answer", weightProblem, "")
	if code, _, errs := tarn(t, nil, "doctor", "--timeout=0"); code != exitUsage || !strings.Contains(errs, "--timeout") {
		t.Errorf("%d: %s", code, errs)
	}
}
