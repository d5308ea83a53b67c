package fakezfs

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// command is one run of a program.
type command struct {
	*state
	out   *strings.Builder
	stdin []byte
	flags map[string][]string // values by letter, "" for those without
	args  []string
}

// verb is one subcommand: the flags that take a value, and what it does.
type verb struct {
	valued string
	run    func(c *command) error
}

var verbs = map[string]verb{
	"zfs list":     {"dtosS", (*command).list},
	"zfs get":      {"dtos", (*command).get},
	"zfs set":      {"", (*command).set},
	"zfs inherit":  {"", (*command).inherit},
	"zfs create":   {"o", (*command).create},
	"zfs snapshot": {"o", (*command).snapshot},
	"zfs destroy":  {"", (*command).destroy},
	"zfs hold":     {"", (*command).hold},
	"zfs release":  {"", (*command).release},
	"zfs holds":    {"", (*command).holds},
	"zfs bookmark": {"", (*command).bookmark},
	"zfs clone":    {"o", (*command).clone},
	"zfs mount":    {"o", (*command).mount},
	"zfs unmount":  {"", (*command).unmount},
	"zfs send":     {"it", (*command).send},
	"zfs receive":  {"ox", (*command).receive},
	"zpool list":   {"oT", (*command).poolList},
}

// play runs a command line and returns its exit code.
func play(dir, program string, args []string) int {
	line := strings.Join(append([]string{program}, args...), " ")
	var out strings.Builder
	var stdin []byte
	if program == "zfs" && len(args) > 0 && args[0] == "receive" && !slices.Contains(args, "-A") {
		// Before the world is locked: the one who sends needs it, too.
		stdin, _ = io.ReadAll(os.Stdin)
	}
	err := withState(dir, func(s *state) error {
		s.Log = append(s.Log, line)
		for i := range s.Failures {
			f := &s.Failures[i]
			if f.Times > 0 && strings.HasPrefix(line, f.Command) {
				f.Times--
				return saying(f.Stderr)
			}
		}
		if len(args) == 0 {
			return sayf("missing command")
		}
		v, ok := verbs[program+" "+args[0]]
		if !ok {
			return sayf("unrecognized command '%s'", args[0])
		}
		c := &command{state: s, out: &out, stdin: stdin}
		if err := c.parse(v.valued, args[1:]); err != nil {
			return err
		}
		return v.run(c)
	})
	io.WriteString(os.Stdout, out.String())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// parse takes the flags from the front, as getopt does in the real programs.
func (c *command) parse(valued string, args []string) error {
	c.flags = map[string][]string{}
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		group := args[0][1:]
		args = args[1:]
		for i, r := range group {
			letter := string(r)
			if !strings.Contains(valued, letter) {
				c.flags[letter] = append(c.flags[letter], "")
				continue
			}
			value := group[i+1:]
			if value == "" {
				if len(args) == 0 {
					return sayf("missing argument for '%s' option", letter)
				}
				value, args = args[0], args[1:]
			}
			c.flags[letter] = append(c.flags[letter], value)
			break
		}
	}
	c.args = args
	return nil
}

func (c *command) has(letter string) bool { return len(c.flags[letter]) > 0 }

// value is the last value of a flag.
func (c *command) value(letter, otherwise string) string {
	if v := c.flags[letter]; len(v) > 0 {
		return v[len(v)-1]
	}
	return otherwise
}

// targets are the things that list and get are about.
func (c *command) targets(names []string, kinds string) ([]string, error) {
	depth := 0
	if c.has("r") {
		depth = -1
	}
	if d := c.value("d", ""); d != "" {
		fmt.Sscan(d, &depth)
	}
	if len(names) == 0 {
		names, depth = []string{"tank"}, -1
	}
	named := kinds == ""
	if named {
		kinds = "filesystem"
	}
	// The names in the plural, and short, are the same to zfs.
	split := strings.Split(kinds, ",")
	for i, k := range split {
		switch k {
		case "snap", "snapshots":
			split[i] = "snapshot"
		case "bookmarks":
			split[i] = "bookmark"
		case "fs", "filesystems":
			split[i] = "filesystem"
		}
	}
	// Snapshots of a dataset are at the level below it.
	if depth == 0 && (slices.Contains(split, "snapshot") || slices.Contains(split, "bookmark")) {
		depth = 1
	}
	var all []string
	for _, name := range names {
		found, err := c.below(name, split, depth)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// splitProps splits the assignments of -o.
func splitProps(assignments []string) (map[string]string, error) {
	props := map[string]string{}
	for _, a := range assignments {
		name, value, ok := strings.Cut(a, "=")
		if !ok {
			return nil, sayf("missing '=' for property=value argument")
		}
		props[name] = value
	}
	return props, nil
}
