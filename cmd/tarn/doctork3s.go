package main

import (
	"context"
	"path"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tarn-kv/tarn/store/etcdapi"
)

const runSetup = "tarn k3s setup shows and writes what is needed"

// lookAtK3s looks whether the k3s of this machine uses the server.
func (o *doctorOptions) lookAtK3s(ctx context.Context, f *findings) {
	facts := readK3sFacts(ctx, o.machine, false)
	if !facts.installed {
		f.note("k3s", "it is not on this machine")
		return
	}
	if facts.isAgent() {
		f.note("role", "this node is an agent of another server, and has no datastore")
		return
	}
	for _, n := range facts.notes {
		judgeK3sNote(f, n)
	}
	has, given := facts.config.Value("datastore-endpoint")
	if facts.unseen != nil {
		f.unknown("data of k3s", "run tarn doctor as root (sudo)", "what k3s has in %s is not known: %v", facts.dbDir(), facts.unseen)
	}
	switch etcd := path.Join(facts.dbDir(), "etcd"); {
	case given && facts.embeddedEtcd:
		f.problem("datastore", "take its data over (docs/migration.md), and mv "+etcd+" to another place", "k3s uses the embedded etcd in %s, whatever datastore-endpoint in %s says", etcd, has.Where())
		return
	case !given && facts.hidden():
		f.unknown("datastore", "run tarn doctor as root (sudo)", "what k3s uses is in a file that can not be read by this user")
		return
	case !given:
		f.note("datastore", "k3s uses a database of its own and not Tarn; %s", runSetup)
		return
	}
	if !o.judgeDatastore(ctx, f, facts, has.Value) {
		return
	}
	judgeK3sElections(f, facts, has.Value)
	judgeK3sOrder(f, facts)
}

// judgeDatastore looks whether what k3s uses is the server that this is about. It is false if it is not Tarn.
func (o *doctorOptions) judgeDatastore(ctx context.Context, f *findings, facts k3sFacts, url string) bool {
	u, err := etcdapi.ParseListenURL(url)
	if err != nil {
		f.note("datastore", "k3s uses %s and not Tarn; %s", withoutPassword(url), runSetup)
		return false
	}
	if isSocket(u) && facts.version.Known() && !facts.takesSocket() {
		f.problem("datastore", runSetup, "k3s %s is not known to take a unix socket for its datastore (%s)", facts.versionText(), url)
	}
	if u == o.server.endpoint {
		f.ok("datastore", "k3s uses %s", url)
		return true
	}
	theirs := clientOptions{endpoint: u, user: o.server.user}
	for key, to := range map[string]*string{"datastore-cafile": &theirs.caFile, "datastore-certfile": &theirs.certFile, "datastore-keyfile": &theirs.keyFile} {
		g, _ := facts.config.Value(key)
		*to = g.Value
	}
	name, err := theirs.instance(ctx)
	if err != nil {
		f.problem("datastore", "start the server, or see "+runSetup, "the datastore of k3s, %s, does not answer: %v", url, theirs.explain(context.WithoutCancel(ctx), err))
		return true
	}
	switch ours, err := o.server.instance(ctx); {
	case err != nil:
		f.note("datastore", "k3s uses %s, which answers", url)
	case ours == name:
		f.ok("datastore", "k3s uses %s, which is the same server", url)
	default:
		f.warning("datastore", "name it with --endpoint to look at it", "k3s uses %s, which is another server than the one at %s", url, o.server.endpoint)
	}
	return true
}

// instance names the running server at the endpoint: by its instance where it tells one, else by its store.
func (o *clientOptions) instance(ctx context.Context) (string, error) {
	c, err := o.dial()
	if err != nil {
		return "", err
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	if ctx, err = o.login(ctx, c); err != nil {
		return "", err
	}
	var header metadata.MD
	status, err := etcdserverpb.NewMaintenanceClient(c).Status(ctx, &etcdserverpb.StatusRequest{}, grpc.Header(&header))
	if err != nil {
		return "", err
	}
	if told := header.Get(etcdapi.InstanceHeader); len(told) == 1 {
		return told[0], nil
	}
	return status.GetHeader().String(), nil
}

func judgeK3sElections(f *findings, facts k3sFacts, url string) {
	u, err := etcdapi.ParseListenURL(url)
	if err != nil || exposed(u) {
		return // there can be several servers
	}
	on := slices.DeleteFunc(slices.Clone(k3sComponents), func(c string) bool { return electsNobody(facts.config.Values(c + "-arg")) })
	if len(on) == 0 {
		f.ok("elections", "off, since only this machine can reach %s", url)
		return
	}
	f.warning("elections", runSetup, "%s elect(s) a leader among one server: a write each 2 s, and k3s ends when the store is away for 10 s", strings.Join(on, ", "))
}

// judgeK3sOrder looks whether systemd starts k3s after Tarn.
func judgeK3sOrder(f *findings, facts k3sFacts) {
	unit := facts.config.Unit
	if unit == nil {
		return
	}
	names := func(key string) (all []string) {
		for _, l := range unit.Values("Unit", key) {
			all = append(all, strings.Fields(l.Value)...)
		}
		return all
	}
	for _, key := range []string{"Requires", "BindsTo", "Requisite"} {
		if slices.Contains(names(key), "tarn.service") {
			f.warning("order", "write Wants= in its place", "%s has %s=tarn.service: an upgrade of Tarn stops k3s", unit.Name, key)
			return
		}
	}
	if !slices.Contains(names("After"), "tarn.service") {
		f.warning("order", runSetup, "%s is not ordered after tarn.service: at boot k3s waits longer than needed, and at shutdown Tarn can end first", unit.Name)
		return
	}
	f.ok("order", "%s starts after Tarn", unit.Name)
}
