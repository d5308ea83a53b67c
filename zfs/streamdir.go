package zfs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A directory with stream files holds one chain: the first file is a full stream,
// each other begins where the one before ends. zfs receive takes the files as they
// are, in the order of their names. What they are is in the manifest, one JSON
// object a line. A file is complete when its line is in the manifest.
const (
	manifestName = "manifest.jsonl"
	// partialSuffix ends the name of a file that is being written.
	partialSuffix = ".partial"
	streamFormat  = 1
)

// ErrNoBackup is returned when there is no backup in a directory.
var ErrNoBackup = errors.New("there is no backup")

// StreamFile is one line of the manifest.
type StreamFile struct {
	Format   int       `json:"format"` // 1
	File     string    `json:"file"`   // without the directory
	SHA256   string    `json:"sha256"` // hex
	Size     int64     `json:"size"`   // bytes
	Dataset  string    `json:"dataset"`
	Raw      bool      `json:"raw"`            // of an encrypted dataset, as it is on disk
	From     string    `json:"from,omitempty"` // snapshot, "" for a full stream
	FromGUID string    `json:"fromGUID,omitempty"`
	Snapshot string    `json:"snapshot"`
	GUID     string    `json:"guid"`
	Created  time.Time `json:"created"` // the snapshot
	// Properties are those of the snapshot, which streams do not carry.
	Properties map[string]string `json:"properties"`
}

// streamFileName is a name that sorts in the order of the chain.
func streamFileName(n int, from, to string) string {
	if from == "" {
		from = "full"
	}
	return fmt.Sprintf("%04d-%s-%s.zfs", n, from, to)
}

// snapshot is what the manifest tells of the snapshot at the end of a stream.
func (f *StreamFile) snapshot() (Snapshot, error) {
	revision, err := strconv.ParseInt(f.Properties[PropRevision], 10, 64)
	if err != nil {
		return Snapshot{}, fmt.Errorf("%s: %w: the manifest has the revision %q", f.File, ErrDamaged, f.Properties[PropRevision])
	}
	return Snapshot{
		Name: f.Snapshot, GUID: f.GUID, Created: f.Created, Revision: revision, SizeBytes: f.Size,
		StoreID: f.Properties[PropStoreID], Version: f.Properties[PropVersion], Label: f.Properties[PropLabel],
	}, nil
}

// isStreamFile tells files that a push has written, complete or not.
func isStreamFile(name string) bool {
	name = strings.TrimSuffix(name, partialSuffix)
	number, _, ok := strings.Cut(name, "-")
	_, err := strconv.ParseUint(number, 10, 32)
	return ok && err == nil && strings.HasSuffix(name, ".zfs")
}
