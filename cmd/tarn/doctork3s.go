package main

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/store/etcdapi"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

const (
	setupCommand = "tarn k3s setup"
	runSetup     = setupCommand + " shows and writes what is needed"
)

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
		f.unknown("data of k3s", nodeconf.MayReadAdvice(), "what k3s has in %s is not known: %v", facts.dbDir(), facts.unseen)
	}
	switch etcd := path.Join(facts.dbDir(), "etcd"); {
	case given && facts.embeddedEtcd:
		f.problem("datastore", "take its data over (docs/migration.md), and mv "+etcd+" to another place", "k3s uses the embedded etcd in %s, whatever datastore-endpoint in %s says", etcd, has.Where())
		return
	case !given && facts.hidden():
		f.unknown("datastore", nodeconf.MayReadAdvice(), "what k3s uses is in a file that can not be read by this user")
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
	theirs := clientOptions{endpoint: u}
	for key, to := range map[string]*string{"datastore-cafile": &theirs.caFile, "datastore-certfile": &theirs.certFile, "datastore-keyfile": &theirs.keyFile} {
		g, _ := facts.config.Value(key)
		*to = g.Value
	}
	name, err := theirs.instance(ctx, probeWait(o.timeout))
	switch {
	case err != nil:
		why := theirs.explain(context.WithoutCancel(ctx), err)
		if u == o.server.endpoint && grpcstatus.Code(err) == codes.Unavailable && !errors.Is(why, fs.ErrPermission) {
			f.note("datastore", "k3s uses %s, which does not answer: see answer", url)
		} else {
			judgeNoDatastore(f, url, err, why)
		}
		return true
	case u == o.server.endpoint:
		f.ok("datastore", "k3s uses %s", url)
		return true
	}
	switch ours, err := o.server.instance(ctx, probeWait(o.timeout)); {
	case err != nil:
		f.note("datastore", "k3s uses %s, which answers", url)
	case ours == name:
		f.ok("datastore", "k3s uses %s, which is the same server", url)
	default:
		f.warning("datastore", "name it with --endpoint to look at it", "k3s uses %s, which is another server than the one at %s", url, o.server.endpoint)
	}
	return true
}

// judgeNoDatastore reports that k3s' datastore does not answer as k3s asks it. err is the error of gRPC, and why what
// it means.
func judgeNoDatastore(f *findings, url string, err, why error) {
	switch {
	case errors.Is(why, fs.ErrPermission):
		f.unknown("datastore", nodeconf.MayReadAdvice(), "whether the datastore of k3s, %s, answers is not known: %v", url, why)
	case isStatus(err, rpctypes.ErrGRPCUserEmpty):
		f.problem("datastore", "switch the users off (etcdctl auth disable), or give k3s a certificate whose common name is a user",
			"k3s uses %s, which has users, and k3s can not log in with a name and a password", url)
	default:
		f.problem("datastore", "start that server; or see what "+setupCommand+" shows, if k3s is to use another one", "the datastore of k3s, %s, does not answer: %v", url, why)
	}
}

// instance names the running server at the endpoint: by its instance where it tells one, else by its store. wait is
// how long it may take.
func (o *clientOptions) instance(ctx context.Context, wait time.Duration) (string, error) {
	c, err := o.dial()
	if err != nil {
		return "", err
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if ctx, err = o.login(ctx, c); err != nil {
		return "", err
	}
	var header metadata.MD
	status, err := etcdserverpb.NewMaintenanceClient(c).Status(ctx, &etcdserverpb.StatusRequest{}, grpc.Header(&header))
	if err != nil {
		return "", err
	}
	// The status is told to everybody also where there are users.
	if _, err := etcdserverpb.NewKVClient(c).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(masterLeases), Limit: 1}); isStatus(err, rpctypes.ErrGRPCUserEmpty) {
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
