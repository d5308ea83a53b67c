//go:build zfs

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// crashJournal keeps a history in a file outside the machine that loses its power. Each
// line is written in one call before anything follows from it: a request is in the file
// before it is sent, an answer before the client goes on. The machine with the file goes on
// running, so nothing has to be synced; the folder must be shared write-through.
type crashJournal struct {
	t    *testing.T
	mu   sync.Mutex
	file *os.File
}

// journalLine is a crashRecord, or with Events what a watch of everything was shown.
type journalLine struct {
	What    crashWhat       `json:"what,omitempty"`
	Attempt int64           `json:"attempt,omitempty"`
	Rev     int64           `json:"rev,omitempty"`
	Lease   int64           `json:"lease,omitempty"`
	TTL     int64           `json:"ttl,omitempty"`
	Renewed time.Time       `json:"renewed,omitzero"`
	Changes []journalChange `json:"changes,omitempty"`
	Events  [][]byte        `json:"events,omitempty"`
}

type journalChange struct {
	Key   string `json:"key"`
	Mod   int64  `json:"mod,omitempty"`
	Del   bool   `json:"del,omitempty"`
	Size  int    `json:"size,omitempty"`
	Lease int64  `json:"lease,omitempty"`
}

// openCrashJournal reads what a journal has, or begins one. The history and the watch that
// it returns go on writing to it.
func openCrashJournal(t *testing.T, path string) (*crashHistory, *crashWatch) {
	t.Helper()
	h, w := newCrashHistory(), newCrashWatch("everything", "\x00", "\x00")
	good, err := readCrashJournal(path, h, w)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Truncate(good) // the cut may have split the last line
	}
	if err == nil {
		_, err = f.Seek(good, io.SeekStart)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	j := &crashJournal{t: t, file: f}
	h.journal, w.journal = j.record, j.seen
	return h, w
}

func (j *crashJournal) record(r crashRecord) {
	line := journalLine{What: r.what, Rev: r.rev}
	if a := r.attempt; a != nil {
		line.Attempt = a.id
		switch r.what {
		case crashBegun:
			line.Lease = a.lease
			for _, c := range a.changes {
				line.Changes = append(line.Changes, journalChange{c.key, c.mod, c.del, c.size, c.lease})
			}
		case crashAcknowledged:
			line.Rev = a.rev
		}
	}
	if l := r.lease; l != nil {
		line.Lease, line.TTL, line.Renewed = l.id, l.ttl, l.renewed
	}
	j.write(line)
}

func (j *crashJournal) seen(events []*mvccpb.Event) {
	var line journalLine
	for _, e := range events {
		b, err := proto.Marshal(e)
		if err != nil {
			j.t.Error(err)
		}
		line.Events = append(line.Events, b)
	}
	if len(events) > 0 {
		j.write(line)
	}
}

func (j *crashJournal) write(line journalLine) {
	b, err := json.Marshal(line)
	if err != nil {
		j.t.Error(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(b, '\n')); err != nil {
		j.t.Errorf("write the journal: %v", err)
	}
}

// readCrashJournal tells a new history and watch what a journal says, and returns the
// length of its whole lines.
func readCrashJournal(path string, h *crashHistory, w *crashWatch) (good int64, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	defer f.Close()
	attempts := make(map[int64]*attempt)
	for r := bufio.NewReaderSize(f, 1<<20); ; {
		text, err := r.ReadBytes('\n')
		if err == io.EOF {
			return good, nil
		} else if err != nil {
			return 0, err
		}
		var line journalLine
		if err := json.Unmarshal(bytes.TrimSuffix(text, []byte("\n")), &line); err != nil {
			return 0, fmt.Errorf("line at byte %d: %w", good, err)
		}
		if err := line.tell(h, w, attempts); err != nil {
			return 0, fmt.Errorf("line at byte %d: %w", good, err)
		}
		good += int64(len(text))
	}
}

func (l *journalLine) tell(h *crashHistory, w *crashWatch, attempts map[int64]*attempt) error {
	for _, b := range l.Events {
		e := &mvccpb.Event{}
		if err := proto.Unmarshal(b, e); err != nil {
			return err
		}
		w.events, w.seen = append(w.events, e), e.Kv.ModRevision
	}
	switch l.What {
	case crashBegun:
		var changes []crashChange
		for _, c := range l.Changes {
			changes = append(changes, crashChange{c.Key, c.Mod, c.Del, c.Size, c.Lease})
		}
		a := h.begin(l.Lease, changes...)
		if attempts[a.id] = a; a.id != l.Attempt {
			return fmt.Errorf("write %d follows write %d", l.Attempt, a.id-1)
		}
	case crashAcknowledged:
		h.acknowledge(attempts[l.Attempt], l.Rev)
	case crashRefused:
		h.refuse(attempts[l.Attempt], l.Rev)
	case crashGranted:
		h.granted(&crashLease{id: l.Lease, ttl: l.TTL, renewed: l.Renewed})
	case crashRenewed:
		h.renewed(h.leases[l.Lease], l.Renewed)
	case crashCompacting:
		h.compacting(l.Rev)
	case crashCompacted:
		h.compactedTo(l.Rev)
	}
	return nil
}
