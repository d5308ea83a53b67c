package fakezfs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// dirVariable says where the state is.
const dirVariable = "TARN_FAKEZFS_DIR"

// Main plays zfs or zpool and ends the process, if it was started under such a name by
// a test that has a World. Otherwise it does nothing.
func Main() {
	program := filepath.Base(os.Args[0])
	dir := os.Getenv(dirVariable)
	if dir == "" || (program != "zfs" && program != "zpool") {
		return
	}
	os.Exit(play(dir, program, os.Args[1:]))
}

// World is a pretended machine with ZFS.
type World struct {
	t   testing.TB
	dir string
}

// New makes a world with the pool tank and puts its programs first in PATH for the time
// of the test.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{t: t, dir: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(w.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"zfs", "zpool"} {
		if err := os.Symlink(self, filepath.Join(bin, program)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv(dirVariable, w.dir)
	// With -race each process would wait for a second at its end.
	t.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	w.change(func(s *state) {
		s.TXG = 4
		s.Datasets = map[string]*dataset{"tank": {
			GUID: s.newGUID(), TXG: 1,
			Props: map[string]string{"mountpoint": filepath.Join(w.dir, "mnt")}, Mounted: true,
		}}
	})
	return w
}

// Dataset makes the dataset tank/NAME and returns its name and where it is mounted.
func (w *World) Dataset(name string) (dataset, mountpoint string) {
	w.t.Helper()
	dataset = "tank/" + name
	if code := play(w.dir, "zfs", []string{"create", "-p", dataset}); code != 0 {
		w.t.Fatalf("zfs create %s: exit code %d", dataset, code)
	}
	w.read(func(s *state) { mountpoint = s.mountpoint(dataset) })
	return dataset, mountpoint
}

// Fail makes each command that begins with the words of command, such as "zfs destroy",
// fail with what it prints then, for the next times times.
func (w *World) Fail(command, stderr string, times int) {
	w.change(func(s *state) { s.Failures = append(s.Failures, failure{command, stderr, times}) })
}

// Snapshot makes a snapshot without any properties.
func (w *World) Snapshot(full string) {
	w.t.Helper()
	w.change(func(s *state) {
		c := &command{state: s, out: &strings.Builder{}, args: []string{full}}
		if err := c.snapshot(); err != nil {
			w.t.Fatal(err)
		}
	})
}

// Unmount makes a dataset be not mounted.
func (w *World) Unmount(name string) {
	w.change(func(s *state) { s.Datasets[name].Mounted = false })
}

// SetClock moves the clock that snapshots get their creation time from, in seconds.
func (w *World) SetClock(offset int64) { w.change(func(s *state) { s.ClockOffset = offset }) }

// Commands are the command lines that were run so far.
func (w *World) Commands() (lines []string) {
	w.read(func(s *state) { lines = s.Log })
	return lines
}

// Ran tells whether a command line that begins so was run.
func (w *World) Ran(command string) bool {
	for _, line := range w.Commands() {
		if strings.HasPrefix(line, command) {
			return true
		}
	}
	return false
}

func (w *World) change(f func(*state)) {
	w.t.Helper()
	if err := withState(w.dir, func(s *state) error { f(s); return nil }); err != nil {
		w.t.Fatal(err)
	}
}

func (w *World) read(f func(*state)) { w.change(f) }

// withState lets f change the state of the world, alone among all processes.
func withState(dir string, f func(*state) error) error {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	s := &state{dir: dir}
	file := filepath.Join(dir, "state.json")
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, s)
	} else if os.IsNotExist(err) {
		err = nil
	}
	if err != nil {
		return err
	}
	said := f(s)
	if text, err = json.Marshal(s); err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil {
		return err
	}
	return said
}
