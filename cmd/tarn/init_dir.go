package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/tarn-kv/tarn/zfs"
)

// dataDirMode keeps everybody but the server out: Kubernetes secrets are in the files.
const dataDirMode = 0o700

// account is a user of this machine.
type account struct {
	name     string
	uid, gid int
}

func lookupAccount(flag, name string) (account, error) {
	u, err := user.Lookup(name)
	var unknown user.UnknownUserError
	switch {
	case errors.As(err, &unknown):
		return account{}, withExit(exitRefused, fmt.Errorf("--%s: there is no user %s; make it with "+
			"useradd --system --user-group --no-create-home --shell /usr/sbin/nologin %s, or name another one", flag, name, name))
	case err != nil:
		return account{}, fmt.Errorf("--%s: look for the user %s: %w", flag, name, err)
	}
	a := account{name: u.Username}
	if a.uid, err = strconv.Atoi(u.Uid); err == nil {
		a.gid, err = strconv.Atoi(u.Gid)
	}
	return a, err
}

// checkInitDirs makes sure that no files get hidden, and that none of something else
// become the server's.
func checkInitDirs(state zfs.SetupState, has, want string) error {
	if state.Mounted && !state.Done() {
		names, err := dirNames(has)
		switch {
		case err != nil:
			return err
		case len(names) > 0 && !holdsStore(names):
			return fmt.Errorf("the dataset holds files of something else in %s (%s); choose another dataset", has, someOf(names))
		}
	}
	if state.Mounted && has == want {
		return nil
	}
	mounts, err := zfs.ReadMounts(zfs.MountTable)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(mounts, func(m zfs.Mount) bool { return m.Point == want }); i >= 0 {
		return fmt.Errorf("%s %s is mounted at %s; choose another directory with --mountpoint", mounts[i].FSType, mounts[i].Source, want)
	}
	names, err := dirNames(want)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(names) == 0:
		return nil
	case err != nil:
		return err
	case holdsStore(names):
		return fmt.Errorf("%s holds a store, which the mounted dataset would hide; stop the server, mv %s %s.before, "+
			"run this again, and then cp -a %s.before/. %s/", want, want, want, want, want)
	}
	return fmt.Errorf("%s is not empty (%s), and the mounted dataset would hide that; empty it, or choose another directory with --mountpoint", want, someOf(names))
}

func dirNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("%s is a file and not a directory; choose another one with --mountpoint", dir)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, withAdvice(err, "it must be readable by "+whoRuns())
}

func holdsStore(names []string) bool { return slices.Contains(names, treeFile) }

// someOf names a few.
func someOf(names []string) string {
	const few = 5
	if len(names) > few {
		names = append(slices.Clone(names[:few]), "…")
	}
	return strings.Join(names, ", ")
}

// addOwner gives the top directory to the server's user. What is in it is the server's own business.
func (p *initPlan) addOwner(owner account, state zfs.SetupState, reset bool) {
	chown := initStep{zfs.CommandLine([]string{"chown", fmt.Sprintf("%d:%d", owner.uid, owner.gid), p.mountpoint}),
		func(context.Context) error { return os.Lchown(p.mountpoint, owner.uid, owner.gid) }}
	chmod := initStep{zfs.CommandLine([]string{"chmod", fmt.Sprintf("%o", dataDirMode), p.mountpoint}),
		func(context.Context) error { return os.Chmod(p.mountpoint, dataDirMode) }}
	info, err := os.Stat(p.mountpoint)
	if !state.Mounted || err != nil {
		p.steps = append(p.steps, chown, chmod) // of what is going to be mounted there
		return
	}
	set := !state.Done() || reset
	if st, ok := info.Sys().(*syscall.Stat_t); ok && (int(st.Uid) != owner.uid || int(st.Gid) != owner.gid) {
		if set {
			p.steps = append(p.steps, chown)
		} else {
			p.differs = append(p.differs, zfs.Difference{What: "owner of " + p.mountpoint,
				Has: fmt.Sprintf("%d:%d", st.Uid, st.Gid), Want: fmt.Sprintf("%d:%d (%s)", owner.uid, owner.gid, owner.name)})
		}
	}
	if mode := info.Mode().Perm(); mode != dataDirMode {
		if set {
			p.steps = append(p.steps, chmod)
		} else {
			p.differs = append(p.differs, zfs.Difference{What: "mode of " + p.mountpoint,
				Has: fmt.Sprintf("%o", mode), Want: fmt.Sprintf("%o", dataDirMode)})
		}
	}
}
