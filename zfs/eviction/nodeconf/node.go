package nodeconf

import (
	"context"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// KubeletRoot is the kubelet's --root-dir unless told otherwise.
const KubeletRoot = "/var/lib/kubelet"

const (
	kubeletUnit       = "kubelet.service"
	kubeadmConfig     = "/var/lib/kubelet/config.yaml"
	kubeadmFlags      = "/var/lib/kubelet/kubeadm-flags.env"
	k3sDefaultsFile   = "00-k3s-defaults.conf"
	k3sCLIConfigFile  = "10-cli-config.conf"
	k3sCLIConfigDir   = "20-cli-config-dir"
	runtimeEndpoint   = "container-runtime-endpoint"
	kubeletRuntimeKey = "containerRuntimeEndpoint"
)

// Options are what is told by hand instead of being found. The zero value finds everything.
type Options struct {
	// Layout is eviction.LayoutK3s, LayoutK3sRootless or LayoutKubelet.
	Layout string
	// ConfigFile and ConfigDir are the kubelet's --config and --config-dir. If one is given, no unit is read and
	// Args are the kubelet's only arguments.
	ConfigFile, ConfigDir string
	Args                  []Arg
	// Version is that of the kubelet.
	Version eviction.Version
}

// Node is how the kubelet of a machine is configured.
type Node struct {
	// Layout is one of eviction's; "" if no kubelet was recognised.
	Layout string
	// Config are the settings that count, each with the place that it is from.
	Config eviction.Config
	// K3s is nil without k3s, and Unit without a unit that runs the kubelet.
	K3s  *K3s
	Unit *Unit
	// Args is the kubelet's command line as far as it is known.
	Args []Arg
	// ConfigFile and ConfigDir are the kubelet's --config and --config-dir, "" for none.
	ConfigFile, ConfigDir string
	// RootDir is the kubelet's directory, an absolute path.
	RootDir Given
	// RuntimeEndpoint is the socket of the container runtime; "" for the default of the distribution.
	RuntimeEndpoint string
	// Version is that of the kubelet and VersionFrom what told it; the zero Version is not known.
	Version     eviction.Version
	VersionFrom string
	// Notes are what a person should know and Config has no place for.
	Notes []Note
}

// Read reads how the kubelet of a machine is configured. What can not be found or read is in the Notes; an
// error is never a reason to tell nothing. ctx ends the programs that are run.
func Read(ctx context.Context, m Machine, opts Options) *Node {
	r := &reader{Machine: m}
	n := &Node{Version: opts.Version, VersionFrom: "by hand"}
	r.recognise(n, opts)
	if !n.Version.Known() {
		r.findVersion(ctx, n)
	}
	l := &layers{reader: r, merged: &object{fields: map[string]*object{}}}
	switch {
	case opts.ConfigFile != "" || opts.ConfigDir != "":
		n.Args, n.ConfigFile, n.ConfigDir = opts.Args, opts.ConfigFile, opts.ConfigDir
		l.readKubelet(n)
	case n.K3s != nil:
		l.readK3sKubelet(n)
	case n.Layout != "":
		l.readPlainKubelet(n)
	}
	l.fromFiles()
	n.RuntimeEndpoint = n.runtimeEndpoint(l.merged)
	l.flags(n.Args)
	n.Config = l.config
	n.RootDir = n.rootDir()
	r.describeUnit(ctx, n)
	n.Notes = r.notes
	return n
}

// recognise finds out what runs the kubelet. Notes about a k3s that is not taken are of no interest.
func (r *reader) recognise(n *Node, opts Options) {
	asked := func(layout string) bool { return opts.Layout == "" || opts.Layout == layout }
	take := func(layout string, k *K3s, notes []Note) {
		n.Layout, n.K3s, n.Unit = layout, k, k.Unit
		r.notes = append(r.notes, notes...)
	}
	if asked(eviction.LayoutK3s) {
		look := &reader{Machine: r.Machine}
		k := look.k3s(false)
		certain := k.Unit != nil || k.hasRun(r.Machine)
		if opts.Layout != "" || certain || k.installed(r.Machine) && !r.hasKubelet() {
			take(eviction.LayoutK3s, k, look.notes)
			if k.Rootless {
				n.Layout = eviction.LayoutK3sRootless
			}
			if opts.Layout == "" && r.hasKubelet() {
				r.note(Note{Kind: Ambiguous, Text: "both k3s and another kubelet are installed; k3s is taken", Fix: "use --kubelet for the other one"})
			}
			return
		}
	}
	if asked(eviction.LayoutKubelet) && (opts.Layout != "" || r.hasKubelet()) {
		n.Layout = eviction.LayoutKubelet
		n.Unit, _ = r.unit(kubeletUnit, unitDirs)
		return
	}
	if asked(eviction.LayoutK3sRootless) && r.ownHome() {
		look := &reader{Machine: r.Machine}
		if k := look.k3s(true); opts.Layout != "" || k.Unit != nil || k.hasRun(r.Machine) {
			take(eviction.LayoutK3sRootless, k, look.notes)
			return
		}
	}
	if opts.ConfigFile == "" && opts.ConfigDir == "" {
		r.note(Note{Kind: NotFound, Text: "no kubelet was recognised: there is no k3s.service, k3s-agent.service or kubelet.service, no " + K3sDataDir + " and no " + kubeadmConfig,
			Fix: "name its files with --config and --config-dir, its directory with --root-dir and its version with --kubelet-version"})
	}
}

// ownHome tells whether there is a home directory that this user can look into: a variable can name another's.
func (r *reader) ownHome() bool {
	_, err := fs.ReadDir(r.Root, inside(r.Home))
	return r.Home != "" && err == nil
}

// hasKubelet tells whether there is a kubelet beside k3s.
func (r *reader) hasKubelet() bool {
	return r.there(kubeadmConfig) || slices.ContainsFunc(unitDirs, func(dir string) bool { return r.there(path.Join(dir, kubeletUnit)) })
}

// readPlainKubelet reads a kubelet that a unit of its own runs, as kubeadm sets it up.
func (l *layers) readPlainKubelet(n *Node) {
	switch {
	case n.Unit != nil && len(n.Unit.Command) > 0:
		n.Args, _ = parseArgs(n.Unit.Command[1:], Given{Place: PlaceCommand, File: n.Unit.CommandFile})
	default:
		l.note(Note{Kind: NotFound, File: kubeletUnit, Text: "there is no such unit with an ExecStart that can be read; what kubeadm gives the kubelet is assumed", Fix: "name other files with --config and --config-dir"})
		n.Args = []Arg{{"config", Given{kubeadmConfig, PlaceDefault, ""}}}
		text, _ := l.file(kubeadmFlags)
		for _, assignment := range parseEnvFile(string(text)) {
			_, value, _ := strings.Cut(assignment, "=")
			args, _ := parseArgs(splitWords(value), Given{Place: PlaceEnv, File: kubeadmFlags})
			n.Args = append(n.Args, args...)
		}
	}
	if g, ok := lastArg(n.Args, "config"); ok {
		n.ConfigFile = g.Value
	}
	if g, ok := lastArg(n.Args, "config-dir"); ok {
		n.ConfigDir = g.Value
	}
	l.readKubelet(n)
}

// readKubelet reads the file and the directory that the kubelet is told to read.
func (l *layers) readKubelet(n *Node) {
	if n.ConfigFile != "" {
		l.configFile(n.ConfigFile)
	}
	if n.ConfigDir != "" {
		l.addDropIns(l.walkDropIns(n.ConfigDir))
	}
}

func (n *Node) runtimeEndpoint(merged *object) string {
	if g, ok := lastArg(n.Args, runtimeEndpoint); ok {
		return g.Value
	}
	if n.K3s != nil {
		if g, ok := n.K3s.Value(runtimeEndpoint); ok {
			return g.Value
		}
		return ""
	}
	if o := merged.fields[kubeletRuntimeKey]; o != nil {
		return o.text
	}
	return ""
}

func (n *Node) rootDir() Given {
	if g, ok := lastArg(n.Args, "root-dir"); ok {
		return g
	}
	if n.K3s != nil && n.K3s.Rootless {
		return Given{path.Join(n.K3s.DataDir().Value, "agent/kubelet"), PlaceDefault, ""}
	}
	return Given{KubeletRoot, PlaceDefault, ""}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
