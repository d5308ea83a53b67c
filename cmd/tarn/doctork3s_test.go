package main

import (
	"context"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"github.com/tarn-kv/tarn/zfs/eviction"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

func TestDoctorOfK3s(t *testing.T) {
	s := start(t, testOptions(t), nil)
	drill := start(t, testOptions(t), nil)
	endpoint := func(url string) string { return "datastore-endpoint: " + url + "\n" }
	noElections := ""
	for _, c := range k3sComponents {
		noElections += c + "-arg: [leader-elect=false]\n"
	}
	for name, c := range map[string]struct {
		files  map[string]string
		what   string
		weight weight
		want   string
	}{
		"ours":           {map[string]string{k3sConfigPath: endpoint(s.url)}, "datastore", weightOK, s.url},
		"elections":      {map[string]string{k3sConfigPath: endpoint(s.url)}, "elections", weightWarning, "among one server"},
		"no elections":   {map[string]string{k3sConfigPath: endpoint(s.url) + noElections}, "elections", weightOK, ""},
		"same server":    {map[string]string{k3sConfigPath: endpoint(strings.Replace(s.url, "127.0.0.1", "localhost", 1))}, "datastore", weightOK, "the same server"},
		"other server":   {map[string]string{k3sConfigPath: endpoint(drill.url)}, "datastore", weightWarning, "another server"},
		"no server":      {map[string]string{k3sConfigPath: endpoint("http://127.0.0.1:1")}, "datastore", weightProblem, "does not answer"},
		"no order":       {map[string]string{k3sConfigPath: endpoint(s.url)}, "order", weightWarning, "not ordered after"},
		"order":          {map[string]string{k3sConfigPath: endpoint(s.url), tarnUnitPath: "[Unit]\nWants=tarn.service\nAfter=tarn.service\n"}, "order", weightOK, ""},
		"too close":      {map[string]string{k3sConfigPath: endpoint(s.url), tarnUnitPath: "[Unit]\nBindsTo=tarn.service\nAfter=tarn.service\n"}, "order", weightWarning, "BindsTo"},
		"MySQL":          {map[string]string{k3sConfigPath: endpoint("mysql://u:secret@tcp(db)/k3s")}, "datastore", weightNote, "mysql://u:…@tcp(db)/k3s"},
		"SQLite":         {map[string]string{k3sDBPath + "state.db": "x"}, "datastore", weightNote, "a database of its own"},
		"embedded etcd":  {map[string]string{k3sConfigPath: endpoint(s.url), k3sDBPath + "etcd/member/wal/": ""}, "datastore", weightProblem, "embedded etcd"},
		"agent":          {map[string]string{k3sUnitPath: strings.Replace(testK3sUnit, "server", "agent", 1)}, "role", weightNote, "agent"},
		"a wrong suffix": {map[string]string{k3sConfigPath: endpoint(s.url), "etc/rancher/k3s/config.yaml.d/x.conf": "a: b\n"}, "/etc/rancher/k3s/config.yaml.d/x.conf", weightWarning, ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{k3sUnitPath: testK3sUnit}
			maps.Copy(files, c.files)
			o := doctorOf(t, "v1.36.2+k3s1", files)
			o.server.endpoint = mustURLs(t, s.url)[0]
			f := &findings{area: "k3s"}
			o.lookAtK3s(t.Context(), f)
			wantFinding(t, f.all(), "k3s", c.what, c.weight, c.want)
		})
	}
}

func TestDoctorOfKubelet(t *testing.T) {
	f := &findings{area: "kubelet"}
	judgeKubelet(f, kubeletCheckReport{Layout: eviction.LayoutK3s, Critical: 1, Warnings: 1,
		Unseen: []nodeconf.Note{{Kind: nodeconf.Unreadable, File: "/etc/x", Text: "it can not be read", Fix: "be root"}},
		Findings: []eviction.Finding{
			{ID: "a", Severity: eviction.Critical, Subject: "tank/k3s", What: "Pods are evicted.", Fix: "Do\nthis."},
			{ID: "b", Severity: eviction.Warning, What: "Percent.", Fix: "That."}, {ID: "c", Severity: eviction.Notice, What: "Lines."},
		}})
	all := f.all()
	wantFinding(t, all, "kubelet", "a (tank/k3s)", weightProblem, "Pods are evicted.")
	wantFinding(t, all, "kubelet", "b", weightWarning, "Percent.")
	wantFinding(t, all, "kubelet", "c", weightNote, "Lines.")
	wantFinding(t, all, "kubelet", "/etc/x", weightUnknown, "can not be read")
	if len(all) != 4 || all[1].Do != "Do this." {
		t.Errorf("%+v", all)
	}
	// A whole machine.
	o := doctorOf(t, "v1.36.2+k3s1", map[string]string{k3sUnitPath: testK3sUnit})
	o.kubelet.gather = func(context.Context, eviction.Options) (*eviction.Facts, error) {
		return zfsFacts(900*gib, 40*gib), nil
	}
	f = &findings{area: "kubelet"}
	o.lookAtKubelet(t.Context(), f)
	if countWeight(f.all(), weightProblem) == 0 {
		t.Errorf("the capacity is wrong, and there is no problem: %+v", f.all())
	}
}

// forbidden is a file system in which one file may not be read.
type forbidden struct {
	fs.FS
	name string
}

func (f forbidden) Open(name string) (fs.File, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.FS.Open(name)
}

// What may not be read is not taken for missing.
func TestK3sConfigurationOfRoot(t *testing.T) {
	o := doctorOf(t, "v1.36.2+k3s1", map[string]string{k3sUnitPath: testK3sUnit, k3sConfigPath: "datastore-endpoint: http://127.0.0.1:1\n"})
	o.machine.Root = forbidden{o.machine.Root, k3sConfigPath}
	f := &findings{area: "k3s"}
	o.lookAtK3s(t.Context(), f)
	wantFinding(t, f.all(), "k3s", "datastore", weightUnknown, "can not be read by this user")
	wantFinding(t, f.all(), "k3s", "/"+k3sConfigPath, weightUnknown, "")
	if len(f.all()) != 2 {
		t.Errorf("%+v", f.all())
	}
	f = &findings{area: "k3s"}
	setup := defaultK3sSetupOptions()
	setup.machine = o.machine
	judgeK3sAfter(f, setup.after([]setupFile{{Path: "/" + tarnFilePath, Content: "datastore-endpoint: http://127.0.0.1:2\n"}}), "http://127.0.0.1:2", "/"+tarnFilePath, false)
	wantFinding(t, f.all(), "k3s", "override", weightUnknown, "is not known")
}
