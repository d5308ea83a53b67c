package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/tarn-kv/tarn/store/etcdapi"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

const (
	// installedSocket is where the unit tarn.socket listens.
	installedSocket = "/run/tarn/tarn.sock"
	k3sFileName     = "50-tarn.yaml"
	k3sDropInName   = "10-tarn.conf"
)

// k3sPlan is what a setup would do.
type k3sPlan struct {
	endpoint string
	files    []setupFile
	kubelet  []setupFile // those of tarn kubelet config
	found    *findings
	// unread tells that not all of what is there could be looked at.
	unread bool
}

// plan looks at everything and changes nothing, but for the key with which the server is tried.
func (o *k3sSetupOptions) plan(ctx context.Context, facts k3sFacts) k3sPlan {
	p := k3sPlan{found: &findings{area: "k3s"}}
	config, dropIn := o.paths(facts)
	if o.undo {
		p.addFile(o.machine.Root, config, "")
		p.addFile(o.machine.Root, dropIn, "")
		p.unread = p.anyUnseen()
		p.found.note("undo", "without these files k3s begins with a database of its own, and does not see what is in Tarn. The kubelet keeps its file: tarn kubelet config --undo")
		return p
	}
	u := o.chooseEndpoint(p.found, facts)
	p.endpoint = u.String()
	off := o.electionsOff(u)
	p.addFile(o.machine.Root, config, o.k3sConfig(u, off))
	if !facts.config.Rootless {
		p.addFile(o.machine.Root, dropIn, o.k3sDropIn(facts))
	}
	judgeK3sBefore(p.found, facts, p.endpoint, config)
	after := o.after(p.files)
	judgeK3sAfter(p.found, after, p.endpoint, config, off)
	p.unread = p.anyUnseen() || facts.unseen != nil || facts.hidden() || after.hidden()
	o.probe(ctx, p.found, u)
	o.planKubelet(ctx, &p, facts)
	return p
}

// anyUnseen tells whether one of the files can not be read.
func (p *k3sPlan) anyUnseen() bool {
	return slices.ContainsFunc(p.files, func(f setupFile) bool { return f.State == fileUnseen })
}

// planKubelet plans what tarn kubelet config does, which is nothing without ZFS. What is in its way keeps the
// rest from nothing.
func (o *k3sSetupOptions) planKubelet(ctx context.Context, p *k3sPlan, facts k3sFacts) {
	if o.skipKubelet {
		return
	}
	if !facts.installed {
		p.found.note("kubelet", "when k3s is installed, tarn kubelet config writes what protects the node if it is on ZFS")
		return
	}
	c := kubeletConfigOptions{kubeletOptions: o.kubelet, root: o.root}
	c.machine, c.timeout, c.version = o.machine, o.timeout, facts.versionText()
	c.k3s = !facts.config.Rootless
	r, err := c.plan(ctx)
	switch {
	case err != nil:
		p.found.warning("kubelet", "tarn kubelet config says more", "%v", err)
	case r.Refused != "":
		p.found.warning("kubelet", "tarn kubelet config says more", "its files are left out: %s", r.Refused)
	case r.Plan != nil:
		p.kubelet = r.Files
		p.found.ok("kubelet", "it is on ZFS: the file of tarn kubelet config, which has the reasons, is a part of this (--skip-kubelet leaves it out)")
	}
}

func (p *k3sPlan) addFile(root fs.FS, file, text string) {
	f, err := compareFile(root, file, text)
	switch {
	case errors.Is(err, fs.ErrPermission):
		p.found.unknown("files", nodeconf.MayReadAdvice(), "whether there is a file %s is not known: this user may not look", file)
	case err != nil:
		p.found.problem("files", "see what is at that place", "%v", err)
	}
	p.files = append(p.files, f.takeOver())
}

// paths are those of k3s' configuration and of the drop-in of its unit.
func (o *k3sSetupOptions) paths(facts k3sFacts) (config, dropIn string) {
	return path.Join(facts.config.ConfigFile+".d", k3sFileName), path.Join("/etc/systemd/system", facts.unit()+".d", k3sDropInName)
}

// chooseEndpoint is what was asked for, else the socket of an installed Tarn where k3s can use it, else this
// machine's port.
func (o *k3sSetupOptions) chooseEndpoint(f *findings, facts k3sFacts) etcdapi.ListenURL {
	if o.endpointGiven {
		u := o.server.endpoint
		if isSocket(u) && !facts.takesSocket() {
			f.problem("endpoint", "use a newer k3s, or --endpoint http://127.0.0.1:2379",
				"k3s %s is not known to take unix:// for a datastore: 1.34.9, 1.35.5, 1.36.0 and later do", orUnknown(facts.versionText()))
		}
		return u
	}
	_, err := os.Stat(o.socket)
	switch {
	case facts.takesSocket() && err == nil:
		return etcdapi.ListenURL{Scheme: "unix", Addr: o.socket}
	case err == nil && facts.version.Known():
		f.note("endpoint", "k3s %s is not known to take a unix socket for a datastore (1.34.9, 1.35.5, 1.36.0 and later do), so it gets the port of this machine", facts.versionText())
	case err == nil:
		f.note("endpoint", "the version of k3s is not known, so it gets the port of this machine, which each one can use; with k3s installed, or --k3s-version, it can be the socket")
	}
	return o.server.endpoint
}

func orUnknown(text string) string {
	if text == "" {
		return "of unknown version"
	}
	return text
}

// electionsOff tells whether leader election is switched off. An endpoint that only this machine can reach
// has no second server.
func (o *k3sSetupOptions) electionsOff(u etcdapi.ListenURL) bool {
	switch o.elect {
	case electionsOn:
		return false
	case electionsOff:
		return true
	}
	return !exposed(u)
}

// k3sComponents are those that elect a leader and can be told not to.
var k3sComponents = []string{"kube-controller-manager", "kube-scheduler", "kube-cloud-controller-manager"}

// k3sConfig is the file for k3s.
func (o *k3sSetupOptions) k3sConfig(u etcdapi.ListenURL, off bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Where k3s keeps the cluster's data.\ndatastore-endpoint: %q\n", u.String())
	for _, file := range []struct{ key, path string }{
		{"datastore-cafile", o.server.caFile}, {"datastore-certfile", o.server.certFile}, {"datastore-keyfile", o.server.keyFile},
	} {
		if file.path != "" && u.Secure() {
			fmt.Fprintf(&b, "%s: %q\n", file.key, file.path)
		}
	}
	if !off {
		b.WriteString(`
# Leader election is on, as k3s has it with each external datastore: several servers need it.
`)
		return b.String()
	}
	why := "Only this machine can reach the endpoint, so there is one server"
	if exposed(u) {
		why = "This is meant to be the only server"
	}
	fmt.Fprintf(&b, `
# With an external datastore k3s switches leader election on, and each of the three then renews a lease
# every two seconds. %s and nobody else to
# be elected: they would be writes for nothing, and a pause of the datastore of 10 seconds would end k3s.
# With several servers take the lines out (tarn k3s setup --leader-election on).
`, why)
	for _, c := range k3sComponents {
		fmt.Fprintf(&b, "%s-arg+: [\"leader-elect=false\"]\n", c)
	}
	return b.String()
}

// k3sDropIn is the drop-in for the unit of k3s.
func (o *k3sSetupOptions) k3sDropIn(facts k3sFacts) string {
	text := fmt.Sprintf(`[Unit]
# Wants and not Requires: a restart or upgrade of Tarn must not stop k3s, which waits for it.
Wants=tarn.socket tarn.service
After=tarn.socket tarn.service
# The kubelet reads the mounts once, at its start.
After=zfs-mount.service
RequiresMountsFor=%s %s
`, facts.imageDir(), facts.kubeletDir())
	if o.slowLease {
		text += `
[Service]
# k3s' own lease, which can not be switched off: renewed every 30 s and not every 2 s.
Environment=CATTLE_ELECTION_LEASE_DURATION=5m CATTLE_ELECTION_RENEW_DEADLINE=4m CATTLE_ELECTION_RETRY_PERIOD=30s
`
	}
	return text
}

// after is how k3s would be configured with the files.
func (o *k3sSetupOptions) after(files []setupFile) k3sFacts {
	m := o.machine
	changed := map[string][]byte{}
	for _, f := range files {
		changed[f.Path] = []byte(f.Content) // none of them is one to remove
	}
	m.Machine = m.With(changed)
	m.Run = nil
	return readK3sFacts(context.Background(), m, o.rootless)
}

// probe asks the server at the endpoint what k3s will ask, as k3s will: without a user, which it can not be told.
func (o *k3sSetupOptions) probe(ctx context.Context, f *findings, u etcdapi.ListenURL) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	server := o.server
	server.endpoint = u
	if server.user.name != "" {
		server.user = userPassword{}
		f.note("user", "--user is left out: k3s can not log in with a name and a password, and is tried as it will ask")
	}
	judgeAccess(f, u)
	c, err := server.dial()
	if err != nil {
		f.problem("answer", "give valid settings for the connection", "%v", err)
		return
	}
	defer c.close()
	explain := func(err error) error { return server.explain(context.WithoutCancel(ctx), err) }
	(&datastoreProbe{c: c, explain: explain, wait: probeWait(o.timeout), write: !o.dryRun, of: asked{u, o.socket, true}}).run(ctx, f)
}
