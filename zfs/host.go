package zfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// ErrSSH is returned when a command on another host could not be started, or
// the connection broke.
var ErrSSH = errors.New("ssh failed")

// host is where commands are run. The zero value is this machine.
type host struct{ user, name, port string }

func (h host) String() string {
	if h.name == "" {
		return "this host"
	}
	return h.name
}

// command is what to run here so that args run there. ssh never asks for anything,
// and notices within two minutes when nobody is there any more.
func (h host) command(args []string) []string {
	if h.name == "" {
		return args
	}
	line := []string{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30",
		"-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=8"}
	if h.port != "" {
		line = append(line, "-p", h.port)
	}
	if h.user != "" {
		line = append(line, "-l", h.user)
	}
	// A shell that is not a login shell often has no sbin on its path. The quotes
	// are for the shell there.
	line = append(line, "--", h.name, "env", `"PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin"`, "LC_ALL=C")
	for _, a := range args {
		line = append(line, shellQuote(a))
	}
	return line
}

const plainChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@,+%"

// shellQuote makes one word of s for any usual shell.
func shellQuote(s string) string {
	if s != "" && strings.Trim(s, plainChars) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func (h host) run(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	return h.explain(run(ctx, stdin, stdout, h.command(args)...))
}

func (h host) output(ctx context.Context, args ...string) ([][]string, error) {
	lines, err := output(ctx, h.command(args)...)
	return lines, h.explain(err)
}

// properties reads properties of a dataset, snapshot or bookmark.
func (h host) properties(ctx context.Context, of string, names ...string) (map[string]Property, error) {
	lines, err := h.output(ctx, "zfs", "get", "-Hp", "-o", "property,value,source", strings.Join(names, ","), of)
	if err != nil {
		return nil, err
	}
	props := map[string]Property{}
	for _, f := range lines {
		if len(f) == 3 {
			props[f[0]] = newProperty(f[1], f[2])
		}
	}
	return props, nil
}

// explain says of an error whether ssh is to blame, or else on which host it was.
func (h host) explain(err error) error {
	var c *CommandError
	if h.name == "" || !errors.As(err, &c) {
		return err
	}
	if why, step := h.blameSSH(c); why != "" {
		return fmt.Errorf("ssh to %s: %w: %s; %s", h.name, ErrSSH, why, step)
	}
	return fmt.Errorf("on %s: %w", h.name, err)
}

// sshSayings are what ssh prints, in lower case, and what to do then. %s is the host.
var sshSayings = []struct{ text, step string }{
	{"host key verification failed", "log in once by hand as the user that runs this (ssh %s), and accept the host's key if it is the right one; " +
		"if it has changed, find out why before you remove the old one (ssh-keygen -R %s)"},
	{"no matching host key type", "see ssh -v %s"},
	{"permission denied (", "ssh must get in without a password: put the public key of the user that runs this into authorized_keys on %s"},
	{"too many authentication failures", "name the key with IdentityFile and IdentitiesOnly in the ssh configuration for %s"},
	{"could not resolve hostname", "is %s the right name?"},
	{"connection refused", "does sshd run on %s, and on that port?"},
	{"connection timed out", "is %s up and can it be reached from here?"},
	{"no route to host", "is %s up and can it be reached from here?"},
	{"network is unreachable", "is the network up? %s can not be reached from here"},
	{"timeout, server", "%s stopped answering; run it again, it goes on where it was"},
	{"connection closed", "%s closed the connection; run it again, it goes on where it was"},
	{"connection reset", "the connection to %s broke; run it again, it goes on where it was"},
	{"broken pipe", "the connection to %s broke; run it again, it goes on where it was"},
}

// blameSSH returns what failed and what to do if it was not the command on the
// other host that failed.
func (h host) blameSSH(c *CommandError) (why, step string) {
	why = oneLine(c.Stderr)
	if errors.Is(c.Err, exec.ErrNotFound) {
		return "there is no program ssh here", "install it (openssh-client)"
	}
	var exit *exec.ExitError
	if !errors.As(c.Err, &exit) {
		return "", ""
	}
	switch exit.ExitCode() {
	case 127:
		return why, "zfs is not found there: install it on " + h.name
	case 255: // of ssh, but zfs send has it as well
		text := strings.ToLower(c.Stderr)
		for _, s := range sshSayings {
			if strings.Contains(text, s.text) {
				return why, strings.ReplaceAll(s.step, "%s", h.name)
			}
		}
		if !strings.Contains(text, "cannot ") {
			if why == "" {
				why = "it ended without a word"
			}
			return why, "try it by hand: ssh " + h.name + " zfs version"
		}
	}
	return "", ""
}
