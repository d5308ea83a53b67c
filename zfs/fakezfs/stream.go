package fakezfs

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A pretended stream begins and ends with records as a real one, between which are as
// many bytes as the snapshot has. The files of a snapshot are not in it: whoever
// receives it is in the same world and finds them there.
const (
	recordSize = 312
	beginMagic = 0x2F5bacbac
	recordEnd  = 5
)

// partial is a stream that was received in part.
type partial struct {
	GUID, From uint64
	Name       string // full name of the snapshot where it was sent
	Bytes      []byte
	Made       bool // the dataset with it
}

// token is what zfs send -t wants.
func (d *dataset) token() string {
	if d.Partial == nil {
		return "-"
	}
	p := d.Partial
	return fmt.Sprintf("1-%x-%x-%x-%s", p.GUID, p.From, len(p.Bytes), hex.EncodeToString([]byte(p.Name)))
}

// stream makes the stream of a snapshot.
func (s *state) stream(full string, from uint64) []byte {
	guid := s.Snapshots[full].GUID
	begin := make([]byte, recordSize)
	binary.LittleEndian.PutUint64(begin[8:], beginMagic)
	binary.LittleEndian.PutUint64(begin[40:], guid)
	binary.LittleEndian.PutUint64(begin[48:], from)
	copy(begin[56:], full)
	end := make([]byte, recordSize)
	binary.LittleEndian.PutUint32(end, recordEnd)
	binary.LittleEndian.PutUint64(end[40:], guid)
	size := sizeOf(s.content(guid))
	if from != 0 {
		size /= 2
	}
	body := bytes.Repeat([]byte{byte(guid)}, int(size))
	return append(append(begin, body...), end...)
}

func (c *command) send() error {
	full, from, skip := "", uint64(0), 0
	said := ""
	if c.has("t") {
		f := strings.Split(c.value("t", ""), "-")
		if len(f) != 5 {
			return sayf("cannot resume send: resume token is corrupt")
		}
		name, err := hex.DecodeString(f[4])
		if err != nil {
			return sayf("cannot resume send: resume token is corrupt")
		}
		full = string(name)
		guid, _ := strconv.ParseUint(f[1], 16, 64)
		from, _ = strconv.ParseUint(f[2], 16, 64)
		n, _ := strconv.ParseUint(f[3], 16, 32)
		skip = int(n)
		said = fmt.Sprintf("resume token contents:\nnvlist version: 0\n\ttoguid = 0x%x\n\ttoname = %s\n", guid, full)
		if snap := c.Snapshots[full]; snap == nil || snap.GUID != guid {
			if c.has("n") {
				c.out.WriteString(said)
			}
			return sayf("cannot resume send: '%s' used in the initial send no longer exists", full)
		}
	} else {
		if len(c.args) != 1 || c.Snapshots[c.args[0]] == nil {
			return sayf("cannot open '%s': dataset does not exist", strings.Join(c.args, " "))
		}
		full = c.args[0]
		if i := c.value("i", ""); i != "" {
			switch {
			case c.Snapshots[i] != nil:
				from = c.Snapshots[i].GUID
			case c.Bookmarks[i] != nil:
				from = c.Bookmarks[i].GUID
			default:
				return sayf("warning: cannot send '%s': incremental source (%s) does not exist", full, i)
			}
		}
	}
	stream := c.stream(full, from)
	if c.has("n") {
		fmt.Fprintf(c.out, "%sfull\t%s\t%d\nsize\t%d\n", said, full, len(stream)-skip, len(stream)-skip)
		return nil
	}
	if skip > 0 { // a resumed stream begins with a record of its own
		c.out.Write(stream[:recordSize])
	}
	c.out.Write(stream[skip:])
	return nil
}

func (c *command) receive() error {
	if len(c.args) != 1 {
		return sayf("missing snapshot argument")
	}
	name := c.args[0]
	d := c.Datasets[name]
	if c.has("A") {
		if d == nil || d.Partial == nil {
			return sayf("'%s' does not have any resumable receive state to abort", name)
		}
		made := d.Partial.Made
		d.Partial = nil
		if made {
			return c.destroyDataset(name)
		}
		return nil
	}
	in := c.stdin
	if len(in) < recordSize || binary.LittleEndian.Uint64(in[8:]) != beginMagic {
		return sayf("cannot receive: failed to read from stream")
	}
	guid, from := binary.LittleEndian.Uint64(in[40:]), binary.LittleEndian.Uint64(in[48:])
	sent := strings.TrimRight(string(in[56:recordSize]), "\x00")
	kind := "new filesystem"
	if from != 0 {
		kind = "incremental"
	}
	p := &partial{GUID: guid, From: from, Name: sent}
	switch {
	case d != nil && d.Partial != nil:
		if p = d.Partial; p.GUID != guid || p.Name != sent {
			return sayf("cannot receive %s stream: destination %s contains partially-complete state from \"zfs receive -s\".", kind, name)
		}
		p.Bytes = append(p.Bytes, in[recordSize:]...)
	case from == 0 && d != nil:
		return sayf("cannot receive new filesystem stream: destination '%s' exists\nmust specify -F to overwrite it", name)
	default:
		if err := c.mayReceive(name, from); err != nil {
			return err
		}
		p.Bytes, p.Made = in, from == 0
	}
	if from == 0 && d == nil {
		props, err := splitProps(c.flags["o"])
		if err != nil {
			return err
		}
		c.TXG++
		d = &dataset{GUID: c.newGUID(), TXG: c.TXG, Props: props}
		c.Datasets[name] = d
	}
	if want := len(c.stream(sent, from)); len(p.Bytes) < want {
		if !c.has("s") {
			if p.Made {
				delete(c.Datasets, name)
			}
			return sayf("cannot receive %s stream: checksum mismatch or incomplete stream", kind)
		}
		d.Partial = p
		return sayf("cannot receive %s stream: checksum mismatch or incomplete stream.\nPartially received snapshot is saved.\nA resuming stream can be generated on the sending system by running:\n    zfs send -t %s", kind, d.token())
	}
	d.Partial = nil
	return c.putReceived(name, sent, guid)
}

// mayReceive refuses what does not fit on top of what is there.
func (c *command) mayReceive(name string, from uint64) error {
	if from == 0 {
		if parent := name[:max(0, strings.LastIndexByte(name, '/'))]; c.Datasets[parent] == nil {
			return sayf("cannot open '%s': dataset does not exist\ncannot receive new filesystem stream: unable to restore to destination", parent)
		}
		return nil
	}
	if c.Datasets[name] == nil {
		return sayf("cannot receive incremental stream: destination '%s' does not exist", name)
	}
	for full, snap := range c.Snapshots {
		if datasetOf(full) == name && snap.GUID == from {
			if c.writtenSince(full) != 0 {
				return sayf("cannot receive incremental stream: destination %s has been modified\nsince most recent snapshot", name)
			}
			return nil
		}
	}
	return sayf("cannot receive incremental stream: most recent snapshot of %s does not\nmatch incremental source", name)
}

// putReceived adds the snapshot, and makes its files the dataset's.
func (c *command) putReceived(name, sent string, guid uint64) error {
	source := c.Snapshots[sent]
	_, short, _ := strings.Cut(sent, "@")
	c.TXG++
	if c.Snapshots == nil {
		c.Snapshots = map[string]*snapshot{}
	}
	c.Snapshots[name+"@"+short] = &snapshot{GUID: guid, TXG: c.TXG, Creation: source.Creation}
	point := c.mountpoint(name)
	if !filepath.IsAbs(point) {
		return nil
	}
	entries, err := os.ReadDir(point)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range entries {
		if e.Name() == ".zfs" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(point, e.Name())); err != nil {
			return err
		}
	}
	dir := filepath.Join(point, ".zfs", "snapshot")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(c.content(guid), filepath.Join(dir, short)); err != nil {
		return err
	}
	return copyFiles(point, c.content(guid))
}

// writtenSince is the size of a dataset if its files are not those of the snapshot.
func (s *state) writtenSince(full string) uint64 {
	point := s.mountpoint(datasetOf(full))
	snap := s.Snapshots[full]
	if !filepath.IsAbs(point) || snap == nil || sameFiles(point, s.content(snap.GUID)) {
		return 0
	}
	return max(1, sizeOf(point))
}

func sameFiles(a, b string) bool {
	read := func(dir string) string {
		var all strings.Builder
		_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err == nil && d.Name() == ".zfs" {
				return filepath.SkipDir
			}
			if err == nil && d.Type().IsRegular() {
				text, _ := os.ReadFile(p)
				fmt.Fprintf(&all, "%s\x00%s\x00", strings.TrimPrefix(p, dir), text)
			}
			return nil
		})
		return all.String()
	}
	return read(a) == read(b)
}
