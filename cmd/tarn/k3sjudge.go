package main

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/tarn-kv/tarn/store/etcdapi"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

// judgeK3sBefore looks at what is there of k3s. config is the path of our file.
func judgeK3sBefore(f *findings, facts k3sFacts, endpoint, config string) {
	if !facts.installed {
		f.note("k3s", "it is not installed yet; it will find the files when it is (https://docs.k3s.io has the command)")
	} else if v := facts.versionText(); v == "" {
		f.unknown("version of k3s", "give it with --k3s-version", "it is not known, so what every version can do is used")
	}
	if facts.isAgent() {
		f.problem("role", "run tarn k3s setup on the server", "this node is an agent of another server: an agent has no datastore")
	} else if joins, ok := facts.config.Value("server"); ok {
		f.problem("role", "take server out of "+joins.Where()+": servers with an external datastore find each other in it", "k3s is to join %s", joins.Value)
	}
	has, given := facts.config.Value("datastore-endpoint")
	uses := given && sameEndpoint(has.Value, endpoint)
	switch {
	case facts.unseen != nil:
		f.unknown("data of k3s", nodeconf.MayReadAdvice(), "whether k3s has an embedded etcd or SQLite in %s is not known: %v", facts.dbDir(), facts.unseen)
	case facts.embeddedEtcd:
		f.problem("data of k3s", "take them over (docs/migration.md: k3s etcd-snapshot save, stop k3s, tarn import etcd), then mv "+path.Join(facts.dbDir(), "etcd")+" to another place",
			"there is an embedded etcd in %s: k3s uses it whatever the endpoint says", path.Join(facts.dbDir(), "etcd"))
	case facts.sqlite && !uses:
		f.warning("data of k3s", "to take them over, stop k3s and see tarn import --help; else the cluster begins empty",
			"there is a database of SQLite, %s: k3s ignores it from now on", path.Join(facts.dbDir(), "state.db"))
	}
	if given && !uses && has.File != config {
		f.problem("datastore", "take its data over first (docs/migration.md), or remove the line in "+has.Where()+" if it has none",
			"k3s uses the datastore %s now: with Tarn it begins with what is there", withoutPassword(has.Value))
	}
	if g, ok := facts.config.Value("cluster-init"); ok && g.Value != "false" {
		f.warning("cluster-init", "take it out of "+g.Where(), "it has no effect with an endpoint, and makes an etcd of its own should the endpoint get lost")
	}
	for _, n := range facts.notes {
		judgeK3sNote(f, n)
	}
}

// judgeK3sNote passes on what the reader of the configuration noticed.
func judgeK3sNote(f *findings, n nodeconf.Note) {
	what := strings.TrimSpace(n.File + " " + n.Key)
	switch n.Kind {
	case nodeconf.Unreadable:
		f.unknown(what, n.Fix, "%s", n.Text)
	case nodeconf.Refused:
		f.problem(what, n.Fix, "%s", n.Text)
	default:
		f.warning(what, n.Fix, "%s", n.Text)
	}
}

// judgeK3sAfter looks whether k3s, reading its configuration with our file in it, does what the file says.
func judgeK3sAfter(f *findings, after k3sFacts, endpoint, config string, electionsOff bool) {
	has, given := after.config.Value("datastore-endpoint")
	unseen := after.hidden() && !slices.Contains(after.config.Files, config) // what is beside it can not be listed
	switch {
	case unseen:
		f.unknown("override", nodeconf.MayReadAdvice(), "whether something wins over %s is not known: not everything can be read", config)
	case !given:
		f.problem("override", "remove datastore-endpoint there", "%s has an empty datastore-endpoint, and wins over %s", has.Where(), config)
	case has.File != config && !sameEndpoint(has.Value, endpoint):
		f.problem("override", "remove datastore-endpoint there", "%s has the datastore %s, and wins over %s", has.Where(), withoutPassword(has.Value), config)
	case has.File != config:
		f.note("override", "%s gives the same datastore once more", has.Where())
	case after.hidden():
		f.unknown("override", nodeconf.MayReadAdvice(), "whether something wins over %s is not known: not everything can be read", config)
	default:
		f.ok("override", "no other file, variable or argument wins over %s", config)
	}
	if electionsOff && !unseen {
		judgeElectionsAfter(f, after, config)
	}
}

// judgeElectionsAfter looks whether leader election is off as our file says, and what is in the way.
func judgeElectionsAfter(f *findings, after k3sFacts, config string) {
	for _, c := range k3sComponents {
		key := c + "-arg"
		args := after.config.Values(key)
		if electsNobody(args) {
			continue
		}
		if g, ok := leaderElect(args); ok {
			f.warning("elections", "take leader-elect out of "+key+" there", "leader election stays on: %s, which comes after %s, adds %s to %s", g.Where(), config, g.Value, key)
			continue
		}
		by := "something"
		if len(args) > 0 {
			by = args[0].Where()
		}
		f.warning("elections", `write the key with a plus there ("`+key+`+:"), so that it adds to the list`, "leader election stays on: %s, which comes after %s, replaces %s", by, config, key)
	}
}

// leaderElect is the argument of a component about leader election that counts.
func leaderElect(args []nodeconf.Given) (nodeconf.Given, bool) {
	for _, g := range slices.Backward(args) {
		if name, _, _ := strings.Cut(strings.TrimLeft(g.Value, "-"), "="); name == "leader-elect" {
			return g, true
		}
	}
	return nodeconf.Given{}, false
}

// electsNobody tells whether the arguments of a component switch leader election off.
func electsNobody(args []nodeconf.Given) bool {
	g, ok := leaderElect(args)
	return ok && strings.HasSuffix(g.Value, "=false")
}

// sameEndpoint compares two endpoints as k3s takes them.
func sameEndpoint(a, b string) bool {
	x, errX := etcdapi.ParseListenURL(a)
	y, errY := etcdapi.ParseListenURL(b)
	if errX != nil || errY != nil {
		return a == b
	}
	return x == y
}

// withoutPassword leaves the password out of the URL of a database.
func withoutPassword(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	at := strings.LastIndexByte(rest, '@')
	if !ok || at < 0 {
		return url
	}
	user, _, _ := strings.Cut(rest[:at], ":")
	return scheme + "://" + user + ":…" + rest[at:]
}

// judgeAccess says who else can use the endpoint.
func judgeAccess(f *findings, u etcdapi.ListenURL) {
	switch {
	case isSocket(u):
		info, err := os.Stat(u.Addr)
		if err == nil && info.Mode().Perm()&0o002 != 0 { // to write is what connecting needs
			f.warning("access", "chmod o-w "+u.Addr+", and look who made it so", "everybody on this machine can use the socket %s (mode %o), and read all Secrets", u.Addr, info.Mode().Perm())
		}
	case !exposed(u):
		f.note("access", "everybody on this machine can use %s, and read all Secrets; a unix socket keeps others out", u)
	case !u.Secure():
		f.warning("access", "use https:// with client certificates", "%s is without TLS, and carries all Secrets", u)
	}
}
