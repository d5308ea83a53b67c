package zfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// state is a snapshot or bookmark of a dataset.
type state struct {
	name     string // without the dataset
	guid     string // the same wherever the state was sent, and for a bookmark of it
	order    uint64 // rises from state to state of one dataset
	ivset    string // of an encrypted dataset: two copies of a state with the same are interchangeable for raw streams
	bookmark bool
	ours     *Snapshot // nil for a bookmark and for a snapshot that is not ours
}

// history is what can be sent or received: the states of one dataset, and what
// matters for it of the dataset itself.
type history struct {
	host
	dataset   string
	exists    bool    // the rest is empty if not
	snapshots []state // all, the oldest first
	bookmarks []state // the same

	encrypted  bool
	mountpoint string // "" if it is not mounted
	canmount   string
	readonly   bool
	token      string // of a receive that was interrupted
	lastPush   string
}

// full is the name with the dataset.
func (h *history) full(s state) string {
	if s.bookmark {
		return h.dataset + "#" + s.name
	}
	return h.dataset + "@" + s.name
}

func readHistory(ctx context.Context, on host, dataset string) (history, error) {
	h := history{host: on, dataset: dataset}
	props, err := on.properties(ctx, dataset, "type", "mounted", "mountpoint", "canmount", "readonly",
		"encryption", "receive_resume_token", PropLastPush)
	if errors.Is(err, ErrNotFound) {
		return h, nil
	}
	if err != nil {
		return h, err
	}
	if kind := props["type"].Value; kind != "filesystem" {
		return h, fmt.Errorf("%s on %s is a %s; name a file system", dataset, on, kind)
	}
	h.exists = true
	if props["mounted"].Value == "yes" {
		h.mountpoint = props["mountpoint"].Value
	}
	h.canmount = props["canmount"].Value
	h.readonly = props["readonly"].Value == "on"
	h.encrypted = props["encryption"].Value != "" && props["encryption"].Value != "off"
	h.token = props["receive_resume_token"].Value
	h.lastPush = props[PropLastPush].own()
	return h, h.readStates(ctx)
}

func (h *history) readStates(ctx context.Context) error {
	lines, err := h.output(ctx, "zfs", "get", "-Hp", "-d", "1", "-t", "snapshot,bookmark", "-o", "name,property,value,source",
		strings.Join(append([]string{"ivsetguid"}, listed...), ","), h.dataset)
	if err != nil {
		return err
	}
	props := map[string]map[string]Property{}
	for _, f := range lines {
		// A property of somebody else's snapshot can hold anything, line breaks too.
		if rest, ok := strings.CutPrefix(f[0], h.dataset); len(f) != 4 || !ok || !strings.HasPrefix(rest, "@") && !strings.HasPrefix(rest, "#") {
			continue
		}
		if props[f[0]] == nil {
			props[f[0]] = map[string]Property{}
		}
		props[f[0]][f[1]] = newProperty(f[2], f[3])
	}
	for full, p := range props {
		sep, name := full[len(h.dataset):][:1], full[len(h.dataset)+1:]
		order, err := strconv.ParseUint(p["createtxg"].Value, 10, 64)
		if err != nil {
			return fmt.Errorf("read the snapshots of %s: %s has the createtxg %q", h.dataset, full, p["createtxg"].Value)
		}
		s := state{name: name, guid: p["guid"].Value, order: order, ivset: p["ivsetguid"].Value, bookmark: sep == "#"}
		if s.bookmark {
			h.bookmarks = append(h.bookmarks, s)
			continue
		}
		if _, named := ParseName(name); named {
			if snap, ok := newSnapshot(name, p); ok {
				s.ours = &snap
			}
		}
		h.snapshots = append(h.snapshots, s)
	}
	for _, states := range [][]state{h.snapshots, h.bookmarks} {
		slices.SortFunc(states, func(a, b state) int {
			return cmp.Or(cmp.Compare(a.order, b.order), strings.Compare(a.name, b.name))
		})
	}
	return nil
}

// ours are our snapshots, the oldest first.
func (h *history) ours() []state {
	var ours []state
	for _, s := range h.snapshots {
		if s.ours != nil {
			ours = append(ours, s)
		}
	}
	return ours
}

// byGUID finds a state that a stream can begin from. A snapshot is better than a
// bookmark: it can be read without knowing when each block was written.
func (h *history) byGUID(guid string) (state, bool) {
	for _, states := range [][]state{h.snapshots, h.bookmarks} {
		if i := slices.IndexFunc(states, func(s state) bool { return s.guid == guid }); i >= 0 {
			return states[i], true
		}
	}
	return state{}, false
}

// writtenSince is how many bytes were written to the dataset after one of its snapshots.
func (h *history) writtenSince(ctx context.Context, s state) (int64, error) {
	prop := "written@" + s.name
	props, err := h.properties(ctx, h.dataset, prop)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(props[prop].Value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s on %s has the property %s = %q, which should be a number", h.dataset, h.host, prop, props[prop].Value)
	}
	return n, nil
}

// isOurBookmark tells our bookmarks: they have the name of the snapshot.
func isOurBookmark(name string) bool {
	_, ok := ParseName(name)
	return ok
}

// snapshotProperties are those that travel with a snapshot. What was verified is
// not among them: that was the other copy.
func (s *Snapshot) snapshotProperties() map[string]string {
	props := map[string]string{PropRevision: strconv.FormatInt(s.Revision, 10)}
	for name, value := range map[string]string{PropStoreID: s.StoreID, PropVersion: s.Version, PropLabel: s.Label} {
		if value != "" {
			props[name] = value
		}
	}
	return props
}
