package nodeconf

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// unitDirs are where systemd looks for units of the system, the most important first.
var unitDirs = []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}

// UnitLine is one assignment of a unit or of one of its drop-ins.
type UnitLine struct {
	Section, Key, Value string
	File                string // absolute
}

// Unit is a systemd service with its drop-ins, as it would be after systemctl daemon-reload.
type Unit struct {
	Name  string // such as k3s.service
	Files []string
	Lines []UnitLine
	// Environment is that of the service: Environment= first, then the files, which win.
	Environment map[string]Given
	// Command is ExecStart with variables replaced. It is empty if the unit has none.
	Command []string
	// CommandFile is the file that ExecStart is in.
	CommandFile string
}

// Values are the values of a key in the order of systemd's reading; an empty value takes all before away,
// as systemd does for lists.
func (u *Unit) Values(section, key string) (values []UnitLine) {
	for _, l := range u.Lines {
		if l.Section != section || l.Key != key {
			continue
		}
		if l.Value == "" {
			values = nil
			continue
		}
		values = append(values, l)
	}
	return values
}

// ReadUnit reads a service of the system. ok is false if there is none of that name.
func ReadUnit(m Machine, name string) (u *Unit, notes []Note, ok bool) {
	r := &reader{Machine: m}
	u, ok = r.unit(name, unitDirs)
	return u, r.notes, ok
}

func (r *reader) unit(name string, dirs []string) (*Unit, bool) {
	u := &Unit{Name: name, Environment: map[string]Given{}}
	for _, dir := range dirs {
		file := path.Join(dir, name)
		if !r.there(file) {
			continue
		}
		text, readable := r.file(file)
		if readable && len(text) == 0 {
			return nil, false // masked
		}
		u.Files = append(u.Files, file)
		u.Lines = append(u.Lines, parseUnit(string(text), file)...)
		break
	}
	if len(u.Files) == 0 {
		return nil, false
	}
	for _, file := range r.unitDropIns(name, dirs) {
		if text, readable := r.file(file); readable {
			u.Files = append(u.Files, file)
			u.Lines = append(u.Lines, parseUnit(string(text), file)...)
		}
	}
	r.addEnvironment(u)
	if exec := u.Values("Service", "ExecStart"); len(exec) > 0 {
		last := exec[len(exec)-1]
		u.Command = expand(splitWords(strings.TrimLeft(last.Value, "-@:+!")), u.Environment)
		u.CommandFile = last.File
	}
	return u, true
}

// unitDropIns lists the *.conf files that add to a unit, by name: of one name the most important directory's counts.
func (r *reader) unitDropIns(unit string, dirs []string) (files []string) {
	byName := map[string]string{}
	for _, dir := range slices.Backward(dirs) {
		entries, _ := r.dir(path.Join(dir, unit+".d"))
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".conf") {
				byName[e.Name()] = path.Join(dir, unit+".d", e.Name())
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		files = append(files, byName[name])
	}
	return files
}

func (r *reader) addEnvironment(u *Unit) {
	set := func(assignment, file string) {
		if name, value, ok := strings.Cut(assignment, "="); ok {
			u.Environment[name] = Given{value, PlaceEnv, file}
		}
	}
	for _, l := range u.Values("Service", "Environment") {
		for _, assignment := range splitWords(l.Value) {
			set(assignment, l.File)
		}
	}
	for _, l := range u.Values("Service", "EnvironmentFile") {
		base := strings.TrimSuffix(u.Name, path.Ext(u.Name))
		file := strings.NewReplacer("%N", base, "%p", base, "%n", u.Name, "%%", "%").Replace(strings.TrimPrefix(l.Value, "-"))
		text, _ := r.file(file)
		for _, assignment := range parseEnvFile(string(text)) {
			set(assignment, file)
		}
	}
}

// parseUnit reads the assignments of a unit file. A backslash at the end of a line joins the next one to it.
func parseUnit(text, file string) (lines []UnitLine) {
	section, pending := "", ""
	for raw := range strings.Lines(text + "\n\n") { // a joined line can be the last
		line := strings.TrimSpace(raw)
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue // also within a joined line
		}
		line = pending + line
		if joined, ok := strings.CutSuffix(line, `\`); ok {
			pending = strings.TrimRight(joined, " \t") + " "
			continue
		}
		pending = ""
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
			continue
		}
		if key, value, ok := strings.Cut(line, "="); ok {
			lines = append(lines, UnitLine{section, strings.TrimSpace(key), strings.TrimSpace(value), file})
		}
	}
	return lines
}

// parseEnvFile reads NAME=VALUE lines; quotes around a value are no part of it.
func parseEnvFile(text string) (assignments []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		name = strings.TrimSpace(strings.TrimPrefix(name, "export "))
		assignments = append(assignments, name+"="+unquoted(strings.TrimSpace(value)))
	}
	return assignments
}

func unquoted(value string) string {
	for _, q := range []string{`"`, `'`} {
		if len(value) >= 2 && strings.HasPrefix(value, q) && strings.HasSuffix(value, q) {
			return value[1 : len(value)-1]
		}
	}
	return value
}
