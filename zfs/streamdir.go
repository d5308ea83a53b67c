package zfs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// Errors of a directory with stream files. Test with errors.Is.
var (
	// ErrDamaged is returned when a stream file or the manifest is not what it was.
	ErrDamaged = errors.New("the backup is damaged")
	// ErrNoBackup is returned when there is no backup in a directory.
	ErrNoBackup = errors.New("there is no backup")
)

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

// readManifest reads the lines of a manifest, and how long the good part of it
// is. A last line without an end is what a crash leaves, and is left out: its
// file is written again. ErrNoBackup is returned if there is no manifest.
func readManifest(dir string) (files []StreamFile, good int64, err error) {
	path := filepath.Join(dir, manifestName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("%s: %w: it has no %s", dir, ErrNoBackup, manifestName)
	}
	if err != nil {
		return nil, 0, err
	}
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var f StreamFile
		if err := json.Unmarshal(line, &f); err != nil {
			return nil, 0, fmt.Errorf("%s, line %d: %w: %w", path, len(files)+1, ErrDamaged, err)
		}
		if f.Format != streamFormat {
			return nil, 0, fmt.Errorf("%s, line %d: it has format %d, and this version of tarn knows %d; use the newer tarn that wrote it", path, len(files)+1, f.Format, streamFormat)
		}
		if f.File != filepath.Base(f.File) || f.File == "." || f.File == ".." {
			return nil, 0, fmt.Errorf("%s, line %d: %w: %q is no name of a file here", path, len(files)+1, ErrDamaged, f.File)
		}
		good += int64(len(line))
		files = append(files, f)
	}
	return files, good, checkChain(path, files)
}

// checkChain makes sure that each stream begins where the one before ends.
func checkChain(path string, files []StreamFile) error {
	for i, f := range files {
		wrong := ""
		switch {
		case f.Snapshot == "" || f.GUID == "":
			wrong = "no snapshot is named"
		case i == 0 && f.FromGUID != "":
			wrong = "the first stream is not a full one"
		case i > 0 && f.FromGUID != files[i-1].GUID:
			wrong = "it does not begin at " + files[i-1].Snapshot + ", where the stream before ends"
		case i > 0 && f.Raw != files[0].Raw:
			wrong = "raw and other streams are mixed"
		}
		if wrong != "" {
			return fmt.Errorf("%s, line %d (%s): %w: %s", path, i+1, f.File, ErrDamaged, wrong)
		}
	}
	return nil
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
