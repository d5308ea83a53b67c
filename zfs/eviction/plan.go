package eviction

import (
	"errors"
	"fmt"

	"github.com/tarn-kv/tarn/zfs"
)

// Plan is a configuration that protects the node, in absolute bytes, and why each
// number is what it is.
type Plan struct {
	// The lists are in the order in which they are written. Soft only switches off.
	Hard           []Amount `json:"evictionHard"`
	Soft           []Amount `json:"evictionSoft,omitempty"`
	MinimumReclaim []Amount `json:"evictionMinimumReclaim"`
	// ImageGC is nil if the kubelet's own settings do.
	ImageGC *PlannedGC `json:"imageGC,omitempty"`
}

// Amount is one planned value.
type Amount struct {
	Signal string `json:"signal"`
	Value  string `json:"value"` // as it is written: 2Gi, 0%
	// Bytes is the value in bytes, 0 for what is switched off.
	Bytes  uint64 `json:"bytes"`
	Reason string `json:"reason"`
}

// PlannedGC replaces the collection of images by how full the disk is with one by age.
type PlannedGC struct {
	HighPercent int    `json:"imageGCHighThresholdPercent"`
	MaximumAge  string `json:"imageMaximumGCAge"` // a duration: 168h
	Reason      string `json:"reason"`
}

// The rule for sizes. 5% is what k3s has; the bounds keep small disks usable and large
// ones from wasting more than one image or a few logs take.
const (
	gib         = 1 << 30
	shareOfDisk = 20 // a twentieth
	leastNodeFS = 1 * gib
	mostNodeFS  = 10 * gib
	roundTo     = 256 << 20
	memory      = "100Mi"
)

// ErrNoRoom is returned when so little is available that thresholds would fire at
// once, or soon.
var ErrNoRoom = errors.New("too little is available")

// ErrUnknownSize is returned when the size of a file system is not known.
var ErrUnknownSize = errors.New("its size is not known")

// NewPlan works out thresholds for a node. ErrNoRoom is returned when one of them
// would be half of what is available now or more, and ErrUnknownSize when that is not known.
func NewPlan(n Node) (*Plan, error) {
	node, image := &n.Facts.NodeFS, &n.Facts.ImageFS
	nodeBase, imageBase := baseOf(node), baseOf(image)
	for _, f := range []*FS{node, image} {
		if baseOf(f).bytes == 0 {
			return nil, fmt.Errorf("plan thresholds for %s: %w", f.Path, ErrUnknownSize)
		}
	}
	p := &Plan{}
	p.addMemory(n.Config)
	if sharesRoom(node, image) {
		base := nodeBase
		if imageBase.bytes < base.bytes {
			base = imageBase
		}
		nodeBytes := sizeFor(base.bytes)
		imageBytes := nodeBytes + max(gib, nodeBytes/2)
		p.add(NodeFSAvailable, nodeBytes, base.reason())
		p.add(ImageFSAvailable, imageBytes, "more than "+NodeFSAvailable+", since both share "+sharedName(node, image)+
			": unused images go before pods do")
	} else {
		p.add(NodeFSAvailable, sizeFor(nodeBase.bytes), nodeBase.reason())
		p.add(ImageFSAvailable, sizeFor(imageBase.bytes), imageBase.reason())
	}
	if err := p.fits(node, image); err != nil {
		return nil, err
	}
	p.addInodes(node, image, n.Config)
	p.addReclaims(node.OnZFS() || image.OnZFS())
	p.ImageGC = planGC(n)
	return p, nil
}

// base is what a threshold is a share of.
type base struct {
	bytes uint64
	name  string
}

func (b base) reason() string {
	switch sizeFor(b.bytes) {
	case leastNodeFS:
		return "1Gi, the least, for " + b.name
	case mostNodeFS:
		return "10Gi, the most, for " + b.name
	}
	return "5% of " + b.name
}

// baseOf is the smallest quota of a dataset and of those above it, or else the size of
// the pool. The used and available of the dataset itself would shrink as its
// neighbours grow.
func baseOf(f *FS) base {
	d := f.Dataset
	if d == nil {
		return base{f.Statfs.Capacity, fmt.Sprintf("the size of %s (%s)", f.Source, FormatBytes(f.Statfs.Capacity))}
	}
	root := d.Root()
	size := root.Used + root.Available
	b := base{size, fmt.Sprintf("the pool %s (%s)", d.Pool(), FormatBytes(size))}
	limit := func(bytes uint64, what, of string) {
		if bytes > 0 && bytes < b.bytes {
			b = base{bytes, fmt.Sprintf("the %s of %s (%s)", what, of, FormatBytes(bytes))}
		}
	}
	limit(d.Quota, "quota", d.Name)
	limit(d.RefQuota, "refquota", d.Name)
	for _, a := range d.Ancestors {
		limit(a.Quota, "quota", a.Name)
	}
	return b
}

// sizeFor is the threshold for a base, rounded up.
func sizeFor(bytes uint64) uint64 {
	n := min(max(bytes/shareOfDisk, leastNodeFS), mostNodeFS)
	return (n + roundTo - 1) / roundTo * roundTo
}

// sharesRoom tells whether what one file system takes is gone for the other.
func sharesRoom(a, b *FS) bool {
	if a.OnZFS() && b.OnZFS() {
		return zfs.PoolOf(a.Source) == zfs.PoolOf(b.Source)
	}
	return a.Source == b.Source
}

func sharedName(a, b *FS) string {
	if a.Source != b.Source {
		return "the pool " + zfs.PoolOf(a.Source)
	}
	return a.Source
}

func (p *Plan) add(signal string, bytes uint64, reason string) {
	p.Hard = append(p.Hard, Amount{Signal: signal, Value: formatQuantity(bytes), Bytes: bytes, Reason: reason})
}

// addMemory keeps the threshold that somebody chose for memory. A drop-in for k3s
// must bring one, k3s has none.
func (p *Plan) addMemory(c *Config) {
	a := Amount{Signal: MemoryAvailable, Value: memory, Reason: "the kubelet's own default, which is gone where evictionHard is set at all"}
	if c != nil {
		if s, ok := c.Hard[MemoryAvailable]; ok && s.Origin != OriginDefault {
			if t, err := parseThreshold(MemoryAvailable, s); err == nil && !t.off && s.Value != memory {
				a.Value, a.Reason = s.Value, "as it was configured"
			}
		}
	}
	if t, err := parseAmount(a.Value); err == nil && !t.percent {
		a.Bytes = uint64(t.number)
	}
	p.Hard = append(p.Hard, a)
}

// fits refuses thresholds that would fire soon.
func (p *Plan) fits(node, image *FS) error {
	for _, a := range p.Hard {
		f := node
		switch a.Signal {
		case MemoryAvailable:
			continue
		case ImageFSAvailable:
			f = image
		}
		if available := f.available(); 2*a.Bytes >= available {
			return fmt.Errorf("plan thresholds for %s: %w: %s is half of the %s there, or more; "+
				"make room or raise the quota, or give it a larger disk", f.Path, ErrNoRoom, a.Value, FormatBytes(available))
		}
	}
	return nil
}

func (f *FS) available() uint64 {
	if f.Dataset != nil {
		return f.Dataset.Available
	}
	return f.Statfs.Available
}

func (p *Plan) addReclaims(wrong bool) {
	reason := "a quarter of the threshold"
	if wrong {
		reason += "; it replaces a percentage in a file below, which would count from the wrong capacity"
	}
	none := Amount{Signal: MemoryAvailable, Value: "0Mi", Reason: "as without any"}
	p.MinimumReclaim = append(p.MinimumReclaim, none)
	for _, a := range p.Hard {
		if isDiskBytes(a.Signal) && a.Bytes > 0 {
			p.MinimumReclaim = append(p.MinimumReclaim, Amount{
				Signal: a.Signal, Value: formatQuantity(a.Bytes / 4), Bytes: a.Bytes / 4,
				Reason: reason,
			})
		}
	}
}

// planGC takes the collection of images away from a wrong capacity: where it runs
// although there is room, or would not reach its goal if it removed every image. It
// counts with the kubelet's own percentages, so that the plan stays the same once it is
// in force.
func planGC(n Node) *PlannedGC {
	b := BehaviourOf(n.Version)
	v := b.view(n.Facts.Host, &n.Facts.ImageFS)
	d := n.Facts.ImageFS.Dataset
	if !v.grows || d == nil {
		return nil
	}
	age := ""
	if c := n.Config; c != nil {
		if imageGC(c, v).Off {
			return nil // somebody wants it so
		}
		age = maximumAge(c)
	}
	empty := *d
	empty.Used -= min(d.UsedByDataset, d.Used)
	empty.Available, empty.UsedByDataset, empty.Referenced = d.Available+d.UsedByDataset, 0, 0
	bare := n.Facts.ImageFS
	bare.Dataset = &empty
	now, atBest := imageGC(&Config{}, v), imageGC(&Config{}, b.view(n.Facts.Host, &bare))
	reason := "the kubelet counts from a wrong capacity and removes images although there is room"
	switch {
	case atBest.UsedPercent >= atBest.LowPercent:
		reason = "snapshots and datasets below " + d.Name + " count as used, so removing every image would not be enough for the kubelet"
	case !now.Runs || now.RealPercent >= now.HighPercent:
		return nil
	}
	return &PlannedGC{HighPercent: 100, MaximumAge: orText(age, "168h"),
		Reason: "by age and no longer by how full the disk is: " + reason}
}
