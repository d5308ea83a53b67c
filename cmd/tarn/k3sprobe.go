package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/store/etcdapi"
)

// Keys of k3s and kube-apiserver.
const (
	bootstrapPrefix = "/bootstrap"
	compactClock    = "compact_rev_key"
	// masterLeases is a prefix that kube-apiserver lists every ten seconds, with one key for each of it.
	masterLeases = "/registry/masterleases/"
)

// datastoreProbe asks a server what k3s and kube-apiserver will ask it, over the wire as they do.
type datastoreProbe struct {
	c       *client
	explain func(error) error
	// wait is how long each question may take.
	wait time.Duration
	// write also tries what k3s writes at its start, on a key of the probe's own.
	write bool
	of    asked
}

// probeContact is what the first answer tells; the other questions need it.
type probeContact struct {
	version  string
	revision int64
	tarn     bool // it is Tarn, and no other server of the same API
}

// run asks everything and reports it to f. Without an answer to the first question it asks no more, and is
// false. The context must have the user's token, if one is needed.
func (p *datastoreProbe) run(ctx context.Context, f *findings) bool {
	contact, err := p.contact(ctx)
	if err != nil {
		p.of.noAnswer(f, err, p.explain(err))
		return false
	}
	judgeVersion(f, contact.version)
	p.judgeServer(f, contact)
	for _, ask := range []func(context.Context, *findings, probeContact){
		p.askRoundTrip, p.askProgress, p.askStream, p.askCompaction, p.askBootstrap,
	} {
		if ctx.Err() != nil {
			f.unknown("answer", "look at the server's log and the disk", "it did not answer everything in time")
			return true
		}
		ask(ctx, f, contact)
	}
	return true
}

func (p *datastoreProbe) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, p.wait)
}

func (p *datastoreProbe) contact(ctx context.Context) (probeContact, error) {
	ctx, cancel := p.limited(ctx)
	defer cancel()
	var header metadata.MD
	status, err := etcdserverpb.NewMaintenanceClient(p.c).Status(ctx, &etcdserverpb.StatusRequest{}, grpc.Header(&header))
	contact := probeContact{version: status.GetVersion(), revision: status.GetHeader().GetRevision(), tarn: len(header.Get(etcdapi.InstanceHeader)) > 0}
	if err != nil {
		return contact, err
	}
	// The status is told to everybody also where there are users.
	_, err = etcdserverpb.NewKVClient(p.c).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(masterLeases), Limit: 1})
	if isStatus(err, rpctypes.ErrGRPCUserEmpty) {
		return contact, err
	}
	return contact, nil
}

// judgeServer says so where something else than Tarn answers.
func (p *datastoreProbe) judgeServer(f *findings, contact probeContact) {
	const found = "what answers is not Tarn, but another server with the API of etcd (version %s)"
	switch {
	case contact.tarn:
	case p.of.asK3s:
		f.warning("server", "if Tarn is meant, name its URL with --endpoint; k3s works with the other one as well, without what Tarn does", found, contact.version)
	default:
		f.note("server", found+": what only Tarn tells is not known", contact.version)
	}
}

// judgeVersion is kube-apiserver's rule: for some versions it does not ask for progress, and lists from the
// store what it could have from its cache.
func judgeVersion(f *findings, version string) {
	v, ok := parseVersion(version)
	const do = "k3s works with it, at a higher price; use a newer version of the server"
	switch {
	case !ok:
		f.problem("version", do, "kube-apiserver can not read the version %q, and then reads lists from the store instead of its cache", version)
	case slices.Compare(v[:], []int{3, 4, 31}) < 0, v[0] == 3 && v[1] == 5 && v[2] < 13:
		f.problem("version", do, "with version %s kube-apiserver asks for no progress of watches (it wants 3.4.31, or 3.5.13 and later), "+
			"and reads lists from the store instead of its cache", version)
	default:
		f.ok("version", "%s: kube-apiserver uses the progress of watches", version)
	}
}

// parseVersion reads three numbers with dots, and what may follow them in a semantic version.
func parseVersion(text string) (v [3]int, ok bool) {
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "v"), "+")
	text, _, _ = strings.Cut(text, "-")
	parts := strings.Split(text, ".")
	if len(parts) != len(v) {
		return v, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return v, false
		}
		v[i] = int(n)
	}
	return v, true
}

// roundTrips are how many reads are timed.
const roundTrips = 9

// askRoundTrip does kube-apiserver's most frequent read: one key that does not exist, for the revision in the header.
func (p *datastoreProbe) askRoundTrip(ctx context.Context, f *findings, at probeContact) {
	ctx, cancel := p.limited(ctx)
	defer cancel()
	var times []time.Duration
	for range roundTrips {
		began := time.Now()
		r, err := etcdserverpb.NewKVClient(p.c).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte("/registry/masterleases"), Limit: 1})
		if err != nil {
			f.problem("read", "look at the server's log", "a linearizable read failed: %v", p.explain(err))
			return
		}
		times = append(times, time.Since(began))
		if got := r.GetHeader().GetRevision(); got < at.revision || got < 1 {
			f.problem("read", "kube-apiserver can not work with it", "the answer to a read has revision %d, and that to a question before had %d", got, at.revision)
			return
		}
	}
	slices.Sort(times)
	median := times[len(times)/2]
	if median > 50*time.Millisecond {
		f.warning("read", "look what the machine is busy with, or at the network if the server is on another one", "a read takes %s (the median of %d)", roundTime(median), roundTrips)
		return
	}
	f.ok("read", "%s for a read (the median of %d)", roundTime(median), roundTrips)
}

// roundTime leaves two digits or so.
func roundTime(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// askStream lists as kube-apiserver 1.37 does.
func (p *datastoreProbe) askStream(ctx context.Context, f *findings, at probeContact) {
	ctx, cancel := p.limited(ctx)
	defer cancel()
	kv := etcdserverpb.NewKVClient(p.c)
	list := func() *etcdserverpb.RangeRequest {
		return &etcdserverpb.RangeRequest{Key: []byte(masterLeases), RangeEnd: prefixEnd([]byte(masterLeases))}
	}
	count := list()
	count.CountOnly = true
	want, err := kv.Range(ctx, count)
	if err != nil {
		f.problem("stream", "look at the server's log", "a count failed: %v", p.explain(err))
		return
	}
	pinned := list()
	pinned.Revision = want.GetHeader().GetRevision()
	keys, last, err := readStream(kv.RangeStream(ctx, pinned))
	switch {
	case grpcstatus.Code(err) == codes.Unimplemented:
		f.warning("stream", "k3s works without it; a newer version of the server answers it",
			"RangeStream is not implemented: kube-apiserver 1.37 and later asks for it with each list, pages instead, and tries again every 10 minutes")
	case err != nil:
		f.problem("stream", "look at the server's log", "a list with RangeStream failed: %v", p.explain(err))
	case int64(keys) != want.Count || last.GetCount() != want.Count || last.GetHeader().GetRevision() < at.revision:
		f.problem("stream", "kube-apiserver 1.37 and later can not work with it", "RangeStream sent %d key(s) and a last part with count %d and revision %d; there are %d, at revision %d",
			keys, last.GetCount(), last.GetHeader().GetRevision(), want.Count, want.GetHeader().GetRevision())
	default:
		f.ok("stream", "RangeStream lists what Range counts")
	}
}

type rangeStream interface {
	Recv() (*etcdserverpb.RangeStreamResponse, error)
}

// readStream counts the keys of a stream and returns its last part.
func readStream(stream rangeStream, err error) (keys int, last *etcdserverpb.RangeResponse, _ error) {
	for err == nil {
		var part *etcdserverpb.RangeStreamResponse
		if part, err = stream.Recv(); err == nil {
			last = part.GetRangeResponse()
			keys += len(last.GetKvs())
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return keys, last, err
}

// askCompaction looks at the key that kube-apiserver keeps the time of its compactions with.
func (p *datastoreProbe) askCompaction(ctx context.Context, f *findings, _ probeContact) {
	ctx, cancel := p.limited(ctx)
	defer cancel()
	r, err := etcdserverpb.NewKVClient(p.c).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(compactClock)})
	switch {
	case err != nil:
		f.problem("compaction", "look at the server's log", "the key %s can not be read: %v", compactClock, p.explain(err))
	case len(r.Kvs) == 0:
		f.note("compaction", "no kube-apiserver has compacted yet: the key %s is not there. It comes five minutes after kube-apiserver's first start", compactClock)
	default:
		behind := r.GetHeader().GetRevision() - r.Kvs[0].ModRevision
		f.ok("compaction", "kube-apiserver asks for it: its %s was written %d revision(s) ago, the %s time", compactClock, behind, ordinal(r.Kvs[0].Version))
	}
}

func ordinal(n int64) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}

// scratchKey is a key of nobody, and not below /bootstrap: k3s takes all keys there for its own.
func scratchKey() string {
	var id [8]byte
	rand.Read(id[:])
	return "/tarn-probe/bootstrap/" + hex.EncodeToString(id[:])
}
