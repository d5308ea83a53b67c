package main

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kubeAPI is an API server with one node, behind TLS and a token.
func kubeAPI(t *testing.T, node string, answers map[string]string) (kubeconfigFile string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		switch {
		case r.Header.Get("Authorization") != "Bearer secret":
			http.Error(w, `{"message":"Unauthorized"}`, http.StatusUnauthorized)
		case !known:
			http.Error(w, `{"kind":"Status","message":"nodes is forbidden"}`, http.StatusForbidden)
		default:
			fmt.Fprint(w, answer)
		}
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "k3s.yaml")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- {name: other, cluster: {server: "https://127.0.0.1:1"}}
- {name: default, cluster: {server: %q, certificate-authority-data: %s}}
contexts: [{name: here, context: {cluster: default, user: me}}]
current-context: here
users: [{name: me, user: {tokenFile: token}}]
`, server.URL, base64.StdEncoding.EncodeToString(ca))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func nodeJSON(name, version, pressure string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"status":{"nodeInfo":{"kubeletVersion":%q},"conditions":[{"type":"Ready","status":"True"},{"type":"DiskPressure","status":%q}]}}`,
		name, version, pressure)
}

const (
	configz = `{"kubeletconfig":{"evictionHard":{"nodefs.available":"5%","imagefs.available":"5%"},"evictionMinimumReclaim":{"nodefs.available":"10%","imagefs.available":"10%"}}}`
	summary = `{"node":{"fs":{"availableBytes":10,"capacityBytes":20,"inodes":5,"inodesFree":4},"runtime":{"imageFs":{"availableBytes":11,"capacityBytes":21}}}}`
)

func TestKubeletCheckLive(t *testing.T) {
	r := newKubeletRig(t, k3sMachine)
	r.facts, r.version = zfsFacts(0, 80*gib), ""
	file := kubeAPI(t, "n1", map[string]string{
		"/api/v1/nodes/n1":                     nodeJSON("n1", "v1.36.1+k3s1", "True"),
		"/api/v1/nodes/n1/proxy/configz":       configz,
		"/api/v1/nodes/n1/proxy/stats/summary": summary,
	})
	ask := func(o *kubeletOptions) { o.kubeconfig, o.node = file, "n1" }
	code, page := r.check(t, ask)
	if code != exitProblems || !strings.Contains(page, "v1.36.1+k3s1 (the node n1)") || !strings.Contains(page, "condition DiskPressure") || strings.Contains(page, "another evictionHard") {
		t.Errorf("exit code %d:\n%s", code, page)
	}
	// What was written and not yet restarted for.
	r.write(t, tarnDropIn, kubeletHeader+"evictionHard:\n  nodefs.available: 2Gi\n")
	if _, page := r.check(t, ask); !strings.Contains(page, "another evictionHard") {
		t.Errorf("a restart is due:\n%s", page)
	}
	// On a machine with nothing else, what the cluster tells is told.
	bare := newKubeletRig(t)
	bare.facts = zfsFacts(0, 80*gib)
	if code, page := bare.check(t, ask); code != exitProblems || !strings.Contains(page, "n1, asked") || !strings.Contains(page, "the running kubelet on n1") || !strings.Contains(page, "imagefs.available       5%, +12 GiB") {
		t.Errorf("no kubelet here: exit code %d:\n%s", code, page)
	}
}

func TestAskKubeletByHostName(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host = strings.ToLower(host)
	list := func(nodes ...string) map[string]string {
		return map[string]string{"/api/v1/nodes": `{"items":[` + strings.Join(nodes, ",") + `]}`,
			"/api/v1/nodes/" + host + "/proxy/configz": configz, "/api/v1/nodes/" + host + "/proxy/stats/summary": summary}
	}
	c, err := newKubeClient(kubeAPI(t, host, list(nodeJSON("other", "v1.2.3", "True"), nodeJSON(host, "v1.37.2", "False"))))
	if err != nil {
		t.Fatal(err)
	}
	l, err := askKubelet(t.Context(), c, "")
	if err != nil {
		t.Fatal(err)
	}
	if l.node != host || l.version != "v1.37.2" || l.DiskPressure || l.Hard["nodefs.available"] != "5%" || !l.Summary || *l.NodeFS.Inodes != 5 || l.ImageFS.Inodes != nil || *l.ImageFS.Available != 11 || l.ContainerFS != nil {
		t.Errorf("%+v", l)
	}
	if c, err = newKubeClient(kubeAPI(t, host, list(nodeJSON("other", "v1.2.3", "True")))); err != nil {
		t.Fatal(err)
	}
	if _, err := askKubelet(t.Context(), c, ""); err == nil || !strings.Contains(err.Error(), "--node (other)") {
		t.Errorf("another cluster: %v", err)
	}
}

// What the cluster does not allow is said, and all else is looked at.
func TestKubeletCheckLiveFails(t *testing.T) {
	r := newKubeletRig(t, k3sMachine, protectedFiles)
	r.facts = zfsFacts(0, 80*gib)
	forbidden := kubeAPI(t, "n1", map[string]string{"/api/v1/nodes/n1": nodeJSON("n1", "v1.36.2+k3s1", "False")})
	noContext := writeFile(t, "kubeconfig", "clusters: []\n")
	exec := writeFile(t, "kubeconfig2", "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: \"https://127.0.0.1:1\"}}]\nusers: [{name: a, user: {exec: {command: aws}}}]\n")
	down := writeFile(t, "kubeconfig3", "current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: \"https://127.0.0.1:1\"}}]\n")
	for file, want := range map[string]string{
		forbidden: "nodes/proxy", noContext: "no current-context", exec: "another program", down: "connection refused", filepath.Join(t.TempDir(), "none"): "no such file",
	} {
		code, page := r.check(t, func(o *kubeletOptions) { o.kubeconfig, o.node = file, "n1" })
		if code != exitNotAllSeen || !strings.Contains(page, want) || !strings.Contains(page, "nodefs.available        2Gi") {
			t.Errorf("%s: exit code %d:\n%s", want, code, page)
		}
	}
}
