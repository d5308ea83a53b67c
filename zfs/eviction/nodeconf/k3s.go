package nodeconf

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// Where k3s has its things unless told otherwise.
const (
	K3sConfigFile     = "/etc/rancher/k3s/config.yaml"
	K3sDataDir        = "/var/lib/rancher/k3s"
	k3sRootlessSubdir = ".rancher/k3s" // of the home directory
)

// k3sUnits are the services that run k3s on a machine, a server first.
var k3sUnits = []string{"k3s.service", "k3s-agent.service"}

const k3sRootlessUnit = "k3s-rootless.service"

// k3sVariables are variables that stand for flags of k3s where the flag is given neither in a file nor on the command line.
var k3sVariables = map[string]string{
	"data-dir":                   "K3S_DATA_DIR",
	"datastore-endpoint":         "K3S_DATASTORE_ENDPOINT",
	"datastore-cafile":           "K3S_DATASTORE_CAFILE",
	"datastore-certfile":         "K3S_DATASTORE_CERTFILE",
	"datastore-keyfile":          "K3S_DATASTORE_KEYFILE",
	"server":                     "K3S_URL",
	"token":                      "K3S_TOKEN",
	"token-file":                 "K3S_TOKEN_FILE",
	"cluster-init":               "K3S_CLUSTER_INIT",
	"node-name":                  "K3S_NODE_NAME",
	"write-kubeconfig":           "K3S_KUBECONFIG_OUTPUT",
	"container-runtime-endpoint": "K3S_CONTAINER_RUNTIME_ENDPOINT",
}

// k3sShort are short flags of k3s.
var k3sShort = map[string]string{"c": "config", "d": "data-dir", "t": "token", "s": "server", "o": "write-kubeconfig"}

// K3s is the configuration of k3s on a node as k3s itself puts it together: its configuration file, the
// files in the directory beside it, its command line, its environment. It is not changed after it was read.
type K3s struct {
	// Unit is the service that runs k3s, nil if there is none.
	Unit *Unit
	// Command is server or agent; "" if no unit tells.
	Command string
	// Rootless tells that it runs without root.
	Rootless bool
	// ConfigFile is the path of the configuration file; its drop-ins are in ConfigFile.d.
	ConfigFile string
	// Files are those that were read, in the order in which they count.
	Files []string

	home   string
	values map[string][]Given
}

// ReadK3s reads how k3s is configured on a machine. ok is false if nothing of k3s is there: then k is what
// it would be like after an installation with its defaults. rootless asks for the k3s in the home directory.
func ReadK3s(m Machine, rootless bool) (k *K3s, notes []Note, ok bool) {
	r := &reader{Machine: m}
	k = r.k3s(rootless)
	return k, r.notes, k.installed(m)
}

func (k *K3s) installed(m Machine) bool {
	// Files of Tarn are also written before k3s is there.
	others := func(file string) bool { return !strings.Contains(path.Base(file), "-tarn") }
	return k.Unit != nil || slices.ContainsFunc(k.Files, others) || !k.Rootless && m.there("/usr/local/bin/k3s") || k.hasRun(m)
}

// hasRun tells whether k3s was started once: its directory holds more than the kubelet's drop-ins of others.
func (k *K3s) hasRun(m Machine) bool {
	agent := path.Join(k.DataDir().Value, "agent")
	for _, at := range []struct{ dir, ignore string }{{agent, "etc"}, {path.Join(agent, "etc"), path.Base(k.KubeletConfDir())}} {
		entries, err := fs.ReadDir(m.Root, inside(at.dir))
		switch {
		case errors.Is(err, fs.ErrPermission):
			return true // it may be there
		case slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != at.ignore }):
			return true
		}
	}
	return m.there(path.Join(k.KubeletConfDir(), k3sDefaultsFile))
}

func (r *reader) k3s(rootless bool) *K3s {
	k := &K3s{Rootless: rootless, home: r.Home, values: map[string][]Given{}}
	if rootless {
		k.Unit, _ = r.unit(k3sRootlessUnit, []string{path.Join(r.Home, ".config/systemd/user"), "/etc/systemd/user", "/usr/local/lib/systemd/user", "/usr/lib/systemd/user"})
	} else {
		for _, name := range k3sUnits {
			if u, ok := r.unit(name, unitDirs); ok {
				k.Unit = u
				break
			}
		}
	}
	var command []Arg
	if k.Unit != nil && len(k.Unit.Command) > 0 {
		var rest []string
		command, rest = parseArgs(k.Unit.Command[1:], Given{Place: PlaceCommand, File: k.Unit.CommandFile})
		if len(rest) > 0 {
			k.Command = rest[0]
		}
	}
	for i, a := range command {
		if long, ok := k3sShort[a.Name]; ok {
			command[i].Name = long
		}
	}
	k.ConfigFile = K3sConfigFile
	if g, ok := lastArg(command, "config"); ok {
		k.ConfigFile = g.Value
	}
	if g, ok := k.variable("K3S_CONFIG_FILE"); ok {
		k.ConfigFile = g.Value // it wins over the flag
	}
	r.readK3sFiles(k)
	for _, a := range command {
		k.values[a.Name] = append(k.values[a.Name], a.Given)
	}
	if g, ok := k.Value("rootless"); ok && g.Value != "false" {
		k.Rootless = true
	}
	return k
}

// readK3sFiles reads the configuration file and its drop-ins: a later file replaces a key, lists too,
// unless the key ends in "+".
func (r *reader) readK3sFiles(k *K3s) {
	files := []string{k.ConfigFile}
	dir := k.ConfigFile + ".d"
	entries, _ := r.dir(dir)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch ext := strings.ToLower(path.Ext(e.Name())); {
		case e.IsDir():
		case ext == ".yaml" || ext == ".yml":
			files = append(files, name)
		default:
			r.note(Note{Kind: Ignored, File: name, Text: "k3s reads only names that end in .yaml or .yml there", Fix: "rename it, or remove it"})
		}
	}
	for _, file := range files {
		text, ok := r.k3sFile(file)
		if !ok {
			continue
		}
		o, err := parseYAML(text, eviction.Setting{Source: file})
		if err != nil {
			r.note(Note{Kind: Refused, File: file, Text: "it is not valid YAML, and k3s does not start with it: " + err.Error(), Fix: "correct it"})
			continue
		}
		k.Files = append(k.Files, file)
		for _, key := range o.order {
			r.addK3sKey(k, key, o.fields[key], file)
		}
	}
}

// k3sFile reads a file of k3s, which does not start if there is one that it can not read.
func (r *reader) k3sFile(name string) ([]byte, bool) {
	text, err := fs.ReadFile(r.Root, inside(name))
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		r.unreadable(name, err)
	case err != nil:
		r.note(Note{Kind: Refused, File: name, Text: "it can not be read: " + reason(err) + "; k3s is not expected to start with it", Fix: "see what is at that place, and put a file there or remove it"})
	}
	return text, err == nil
}

func (r *reader) addK3sKey(k *K3s, key string, field *object, file string) {
	name, adds := strings.CutSuffix(key, "+")
	if long, ok := k3sShort[name]; ok {
		name = long
	}
	before := k.values[name]
	if !adds {
		if len(before) > 0 && strings.HasSuffix(name, "-arg") {
			r.note(Note{Kind: Dropped, File: file, Key: key, Text: "it replaces the whole list of " + before[0].File + ", so those values have no effect: " + joinValues(before),
				Fix: "write " + name + "+: in " + file + " if both are meant"})
		}
		before = nil
	}
	for _, text := range field.texts() {
		before = append(before, Given{text, PlaceFile, file})
	}
	if field.null && !strings.HasSuffix(name, "-arg") {
		before = []Given{{"", PlaceFile, file}} // k3s takes it for the empty text
	}
	k.values[name] = before
}

func joinValues(all []Given) string {
	var texts []string
	for _, g := range all {
		texts = append(texts, g.Value)
	}
	return strings.Join(texts, ", ")
}

// variable is the value of a variable in the unit's environment.
func (k *K3s) variable(name string) (Given, bool) {
	if k.Unit == nil {
		return Given{}, false
	}
	g, ok := k.Unit.Environment[name]
	return g, ok && g.Value != ""
}

// Values are all values of a key that can be given more than once: those of the files, then those of the
// command line. The key is a flag's long name, such as kubelet-arg.
func (k *K3s) Values(key string) []Given { return k.values[key] }

// Value is the value of a key that counts: of the command line, else of the files, else of the
// environment. ok is false if it is given nowhere or empty, so that k3s' default counts; g then tells where it
// is empty.
func (k *K3s) Value(key string) (g Given, ok bool) {
	if all := k.values[key]; len(all) > 0 {
		g = all[len(all)-1]
		return g, g.Value != ""
	}
	if name := k3sVariables[key]; name != "" {
		return k.variable(name)
	}
	return Given{}, false
}

// DataDir is the data directory of k3s, an absolute path.
func (k *K3s) DataDir() Given {
	if g, ok := k.Value("data-dir"); ok {
		if rest, below := strings.CutPrefix(g.Value, "~/"); below {
			g.Value = path.Join(k.home, rest)
		}
		return g
	}
	if k.Rootless {
		return Given{path.Join(k.home, k3sRootlessSubdir), PlaceDefault, ""}
	}
	return Given{K3sDataDir, PlaceDefault, ""}
}

// KubeletConfDir is the directory that k3s 1.32 and later gives the kubelet as --config-dir.
func (k *K3s) KubeletConfDir() string {
	return path.Join(k.DataDir().Value, "agent/etc/kubelet.conf.d")
}

// KubeletArgs are the arguments that kubelet-arg adds, in order. A name can end in + or -, see k3s: the value is added behind
// or before what k3s gives by itself.
func (k *K3s) KubeletArgs() []Arg {
	var args []Arg
	for _, g := range k.Values("kubelet-arg") {
		name, value, has := strings.Cut(strings.TrimPrefix(g.Value, "--"), "=")
		if !has {
			value = "true"
		}
		args = append(args, Arg{name, Given{value, g.Place, g.File}})
	}
	return args
}

// mergeK3sArgs puts together what k3s gives the kubelet by itself and what kubelet-arg adds: an argument of the
// same name replaces k3s' own.
func mergeK3sArgs(own, extra []Arg) (args []Arg) {
	named := func(name string) (found []Arg) {
		for _, a := range own {
			if flagName(a.Name) == name {
				found = append(found, a)
			}
		}
		return found
	}
	byName := map[string][]Arg{}
	var order []string
	for _, a := range extra {
		name := flagName(strings.TrimRight(a.Name, "-+"))
		has, seen := byName[name]
		if !seen {
			order = append(order, name)
		}
		add := Arg{name, a.Given}
		switch {
		case strings.HasSuffix(a.Name, "+") && !seen:
			has = append(named(name), add)
		case strings.HasSuffix(a.Name, "-") && !seen:
			has = append([]Arg{add}, named(name)...)
		case strings.HasSuffix(a.Name, "-"):
			has = append([]Arg{add}, has...)
		default:
			has = append(has, add)
		}
		byName[name] = has
	}
	for _, a := range own {
		if _, replaced := byName[flagName(a.Name)]; !replaced {
			args = append(args, a)
		}
	}
	for _, name := range order {
		args = append(args, byName[name]...)
	}
	return args
}

// k3sConfigDirSince is the first version of k3s that gives the kubelet a directory of drop-ins.
func k3sHasConfigDir(v eviction.Version) bool {
	return !v.Known() || v.Major > 1 || v.Major == 1 && v.Minor >= 32
}
