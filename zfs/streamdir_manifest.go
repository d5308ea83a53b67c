package zfs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// manifest is what the lines of a manifest say.
type manifest struct {
	path  string
	files []StreamFile // of the lines that can be read
	good  int64        // bytes of the whole lines
	// problems name the lines that are damaged; each is an ErrDamaged.
	problems []error
	sound    int // files before the first problem
}

// scanManifest reads a manifest, also one with damaged lines. A last line without an
// end is what a crash leaves, and is left out: its file is written again. ErrNoBackup
// is returned if there is no manifest.
func scanManifest(dir string) (manifest, error) {
	m := manifest{path: filepath.Join(dir, manifestName)}
	text, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s: %w: it has no %s", dir, ErrNoBackup, manifestName)
	}
	if err != nil {
		return m, err
	}
	number, gap := 0, false
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		number++
		m.good += int64(len(line))
		var f StreamFile
		wrong := f.read(line)
		switch {
		case wrong == nil && f.Format != streamFormat:
			return m, fmt.Errorf("%s, line %d: it has format %d, and this version of tarn knows %d; use the newer tarn that wrote it", m.path, number, f.Format, streamFormat)
		case wrong != nil:
			m.problem(number, "", wrong)
			gap = true
			continue
		}
		if wrong := m.follows(&f, gap); wrong != nil {
			m.problem(number, f.File, wrong)
		}
		gap = false
		m.files = append(m.files, f)
	}
	if len(m.problems) == 0 {
		m.sound = len(m.files)
	}
	return m, nil
}

func (m *manifest) problem(number int, file string, wrong error) {
	if len(m.problems) == 0 {
		m.sound = len(m.files)
	}
	where := fmt.Sprintf("%s, line %d", m.path, number)
	if file != "" {
		where += " (" + file + ")"
	}
	m.problems = append(m.problems, fmt.Errorf("%s: %w: %w", where, ErrDamaged, wrong))
}

// follows makes sure that a stream begins where the one before ends. After a gap, a
// line that can not be read, that is not known.
func (m *manifest) follows(f *StreamFile, gap bool) error {
	n := len(m.files)
	switch {
	case n > 0 && f.Raw != m.files[0].Raw:
		return errors.New("raw and other streams are mixed")
	case gap:
	case n == 0 && f.FromGUID != "":
		return errors.New("the first stream is not a full one")
	case n > 0 && f.FromGUID != m.files[n-1].GUID:
		return errors.New("it does not begin at " + m.files[n-1].Snapshot + ", where the stream before ends")
	}
	return nil
}

// read reads one line. Of a newer format it looks at nothing else.
func (f *StreamFile) read(line []byte) error {
	err := json.Unmarshal(line, f)
	switch {
	case err != nil:
		return err
	case f.Format < 1:
		return errors.New("it has no format")
	case f.Format != streamFormat:
	case f.File != filepath.Base(f.File) || f.File == "." || f.File == "..":
		return fmt.Errorf("%q is no name of a file here", f.File)
	case f.Snapshot == "" || f.GUID == "":
		return fmt.Errorf("no snapshot is named for %s", f.File)
	}
	return nil
}

// readManifest reads a manifest, and how many bytes of it are whole lines. If a line
// is damaged, the files before it are returned with the error.
func readManifest(dir string) (files []StreamFile, good int64, err error) {
	m, err := scanManifest(dir)
	if err == nil && len(m.problems) > 0 {
		err = m.problems[0]
	}
	return m.files[:m.sound], m.good, err
}
