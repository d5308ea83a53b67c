package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/tarn-kv/tarn/store/vfs"
)

// Names of a restore in a data directory.
const (
	// stagingName is where the new state is made. Before the journal is there it counts for nothing.
	stagingName = "restore-staging"
	// RestoreJournal is there from when the new state is whole until it has taken its place. Until
	// then the directory is no data directory.
	RestoreJournal = "restore-journal.json"
	// asideName begins the name of the directory to which the old state goes.
	asideName = "before-restore-"
)

// journal says what a restore has begun to do. Everything that it does after the journal was written is
// a renaming that can be done again.
type journal struct {
	Snapshot string    `json:"snapshot"`
	Time     time.Time `json:"time"`
	Revision int64     `json:"revision"` // of the new state
	Aside    string    `json:"aside"`    // name in the data directory; "" if it held no store
}

// noRestoreIn returns ErrRestoring if a restore in a directory was cut off while it exchanged the files.
func noRestoreIn(files vfs.FS, dir string) error {
	names, err := files.List(dir)
	if err == nil && slices.Contains(names, RestoreJournal) {
		return restoring(dir)
	}
	return nil // what can not be listed is told by whoever opens it
}

func restoring(dir string) error {
	return fmt.Errorf("%w: %s: run `tarn restore --continue` for it, which ends what was begun", ErrRestoring, dir)
}

func readJournal(dir string) (j journal, err error) {
	name := filepath.Join(dir, RestoreJournal)
	text, err := vfs.ReadFile(name)
	if err != nil {
		return journal{}, err
	}
	err = json.Unmarshal(text, &j)
	if err == nil && (j.Aside != "" && filepath.Base(j.Aside) != j.Aside) {
		err = fmt.Errorf("%q is not a name", j.Aside)
	}
	if err != nil {
		return journal{}, fmt.Errorf("%s is damaged: %w", name, err)
	}
	return j, nil
}

// writeJournal makes the journal durable. From then on the restore can only be finished.
func writeJournal(files vfs.FS, dir string, j journal) (err error) {
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	// Written where it counts for nothing, so that it is whole when it gets its name.
	staged := filepath.Join(dir, RestoreJournal+".new")
	if err := files.Remove(staged); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := files.Create(staged)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(append(text, '\n'), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = files.Rename(staged, filepath.Join(dir, RestoreJournal))
	}
	if err != nil {
		return errors.Join(err, removeIfThere(files, staged))
	}
	return files.SyncDir(dir)
}

func removeIfThere(files vfs.FS, name string) error {
	if err := files.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
