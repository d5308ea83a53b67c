package zfs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Target is where backups are: a dataset, here or on another host, or a directory
// with stream files.
type Target struct {
	User, Host, Port string // "" for Host: this machine
	Dataset          string
	Dir              string // absolute; "" if it is a dataset
}

// TargetForms are the forms of a target, for help texts and errors.
const TargetForms = "POOL/DATASET, ssh://[USER@]HOST[:PORT]/POOL/DATASET, or dir:PATH"

var (
	hostPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	userPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
)

// ParseTarget reads a target as a person writes it.
func ParseTarget(s string) (Target, error) {
	t, err := parseTarget(s)
	if err != nil {
		return Target{}, fmt.Errorf("backup target %q: %w; a target is %s", s, err, TargetForms)
	}
	return t, nil
}

func parseTarget(s string) (Target, error) {
	if strings.HasPrefix(s, "ssh://") {
		return parseSSHTarget(s)
	}
	dir, isDir := strings.CutPrefix(s, "dir:")
	switch {
	case isDir && dir == "", s == "":
		return Target{}, fmt.Errorf("it is empty")
	case isDir, filepath.IsAbs(s):
		abs, err := filepath.Abs(dir)
		return Target{Dir: abs}, err
	case strings.HasPrefix(s, "."):
		return Target{}, fmt.Errorf("is it a directory? Then write dir:%s", s)
	}
	return Target{Dataset: s}, validBackupDataset(s)
}

func parseSSHTarget(s string) (Target, error) {
	u, err := url.Parse(s)
	if err != nil {
		return Target{}, fmt.Errorf("it is no URL: %w", err)
	}
	t := Target{Host: u.Hostname(), Port: u.Port(), User: u.User.Username(), Dataset: strings.TrimPrefix(u.Path, "/")}
	_, hasPassword := u.User.Password()
	port, portErr := strconv.ParseUint(t.Port, 10, 16)
	switch {
	case hasPassword:
		return Target{}, fmt.Errorf("a password has no place in it: ssh must get in with a key")
	case u.RawQuery != "" || u.Fragment != "":
		return Target{}, fmt.Errorf("there is a ? or # in it")
	case !hostPattern.MatchString(t.Host) && net.ParseIP(t.Host) == nil:
		return Target{}, fmt.Errorf("%q is no name of a host", t.Host)
	case u.User != nil && !userPattern.MatchString(t.User):
		return Target{}, fmt.Errorf("%q is no name of a user", t.User)
	case t.Port != "" && (portErr != nil || port == 0):
		return Target{}, fmt.Errorf("%q is no port", t.Port)
	}
	return t, validBackupDataset(t.Dataset)
}

// validBackupDataset refuses a pool by itself too: its own dataset exists from the
// start, so nothing can be received into it.
func validBackupDataset(name string) error {
	if err := ValidDataset(name); err != nil {
		return err
	}
	if !strings.Contains(name, "/") {
		return fmt.Errorf("%s is a pool; name a dataset in it, such as %s/tarn-backup", name, name)
	}
	return nil
}

// IsDir tells whether the target is a directory with stream files.
func (t Target) IsDir() bool { return t.Dir != "" }

// String is the target in the form that ParseTarget reads. It is always the same
// for the same target.
func (t Target) String() string {
	if t.IsDir() {
		return "dir:" + t.Dir
	}
	if t.Host == "" {
		return t.Dataset
	}
	u := url.URL{Scheme: "ssh", Host: t.Host, Path: "/" + t.Dataset}
	if strings.Contains(t.Host, ":") {
		u.Host = "[" + t.Host + "]"
	}
	if t.Port != "" {
		u.Host += ":" + t.Port
	}
	if t.User != "" {
		u.User = url.User(t.User)
	}
	return u.String()
}

// id tells targets apart where their names are too long or have forbidden characters.
func (t Target) id() string {
	sum := sha256.Sum256([]byte(t.String()))
	return hex.EncodeToString(sum[:4])
}

// HoldTag is the tag with which the newest snapshot at the target is held at the source.
func (t Target) HoldTag() string { return "tarn-push-" + t.id() }

func (t Target) host() host { return host{user: t.User, name: t.Host, port: t.Port} }
