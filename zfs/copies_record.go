package zfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	recordName = "snapshot.json"
	newSuffix  = ".new" // of a record that is being written
)

// copyRecord is what recordName holds of a copy.
type copyRecord struct {
	Format     int               `json:"format"` // 1
	Name       string            `json:"name"`
	Order      uint64            `json:"order"`
	GUID       string            `json:"guid"`
	Created    time.Time         `json:"created"`
	Properties map[string]string `json:"properties"`
	Holds      []string          `json:"holds,omitempty"`
	Files      []copiedFile      `json:"files,omitempty"` // none in copies of older versions
}

// snapshot is what a record tells of a copy, without its size.
func (r *copyRecord) snapshot() (Snapshot, error) {
	props := map[string]Property{}
	for name, value := range r.Properties {
		props[name] = Property{Value: value, Source: "local"}
	}
	s, ok := newSnapshot(r.Name, props)
	if !ok {
		return Snapshot{}, fmt.Errorf("its %s has no number as %s", recordName, PropRevision)
	}
	s.Created, s.Order, s.GUID, s.Holds = r.Created, r.Order, r.GUID, r.Holds
	return s, nil
}

// record reads the description that a copy must have.
func (c *Copies) record(name string) (*copyRecord, error) {
	r, err := readRecord(c.path(name))
	if err == nil && r.Name != name {
		err = fmt.Errorf("its %s is that of %q", recordName, r.Name)
	}
	return r, err
}

// readRecord reads the description in the directory of a copy.
func readRecord(dir string) (*copyRecord, error) {
	text, err := os.ReadFile(filepath.Join(dir, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("it has no %s", recordName)
	}
	if err != nil {
		return nil, err
	}
	r := &copyRecord{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("its %s can not be read: %w", recordName, err)
	}
	if r.Format != 1 {
		return nil, fmt.Errorf("its %s has format %d, which this version does not know", recordName, r.Format)
	}
	return r, nil
}

// writeRecord replaces the record of a copy in one step.
func writeRecord(dir string, r *copyRecord) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, recordName)
	f, err := os.OpenFile(path+newSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+newSuffix, path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(path+newSuffix))
	}
	return syncDir(dir)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
