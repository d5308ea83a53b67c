package difftest

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// absent is printed for a fact that only the other side has.
const absent = "absent"

// Fact is one comparable detail of an answer, for example
// {"msg[0].kvs[1].lease", "7"}. A path that starts with "!" is something that
// must not happen: if etcd has it, the step itself is wrong.
type Fact struct{ Path, Value string }

// Facts is everything a step learned from one server, in a fixed order.
type Facts []Fact

func (f *Facts) add(path string, value any) {
	*f = append(*f, Fact{path, fmt.Sprint(value)})
}

// status adds code and text of a finished call.
func (f *Facts) status(s *Session, err error) {
	st := status.Convert(err)
	f.add("code", st.Code())
	if st.Message() != "" {
		f.add("text", s.ownIDs(st.Message()))
	}
}

// message adds every set field of m below path.
func (f *Facts) message(s *Session, path string, m proto.Message) {
	f.reflect(s, path, m.ProtoReflect())
}

func (f *Facts) reflect(s *Session, path string, m protoreflect.Message) {
	f.add(path, "present")
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if !m.Has(fd) {
			continue
		}
		at := path + "." + string(fd.Name())
		if mask, ok := maskFor(m.Descriptor().Name(), fd.Name()); ok {
			f.add(at, mask.apply(s, m, m.Get(fd)))
			continue
		}
		f.field(s, at, fd, m.Get(fd))
	}
	if u := m.GetUnknown(); len(u) > 0 {
		f.add(path+".unknown_fields", fmt.Sprintf("%x", []byte(u)))
	}
}

func (f *Facts) field(s *Session, at string, fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	if fd.IsMap() {
		entries := map[string]protoreflect.Value{}
		v.Map().Range(func(k protoreflect.MapKey, e protoreflect.Value) bool {
			entries[k.String()] = e
			return true
		})
		for _, k := range sortedKeys(entries) {
			f.value(s, fmt.Sprintf("%s[%q]", at, k), fd.MapValue(), entries[k])
		}
		return
	}
	if !fd.IsList() {
		f.value(s, at, fd, v)
		return
	}
	l := v.List()
	f.add(at+".len", l.Len())
	for i := range l.Len() {
		f.value(s, at+"["+strconv.Itoa(i)+"]", fd, l.Get(i))
	}
}

func (f *Facts) value(s *Session, at string, fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		f.reflect(s, at, v.Message())
	case protoreflect.EnumKind:
		if ev := fd.Enum().Values().ByNumber(v.Enum()); ev != nil {
			f.add(at, ev.Name())
			return
		}
		f.add(at, v.Enum())
	case protoreflect.BytesKind:
		f.add(at, shortBytes(v.Bytes()))
	case protoreflect.StringKind:
		f.add(at, strconv.Quote(s.ownIDs(v.String())))
	case protoreflect.Int64Kind:
		if strings.HasSuffix(string(fd.Name()), "revision") {
			f.add(at, s.revision(v.Int()))
			return
		}
		f.add(at, v.Int())
	default:
		f.add(at, v.Interface())
	}
}

// shortBytes prints bytes so that equal text means equal bytes, without
// filling the screen.
func shortBytes(b []byte) string {
	if len(b) <= 80 {
		return strconv.Quote(string(b))
	}
	return fmt.Sprintf("%q… (%d bytes, crc32 %08x)", b[:16], len(b), crc32.ChecksumIEEE(b))
}

// Diff returns one readable line per fact that differs, sorted by path as the
// facts of want are, those only got has at the end.
func Diff(wantName string, want Facts, gotName string, got Facts) []string {
	gotBy, wantBy := got.byPath(), want.byPath()
	var lines []string
	line := func(path, w, g string) {
		lines = append(lines, fmt.Sprintf("%s: %s=%s %s=%s", path, wantName, w, gotName, g))
	}
	for _, w := range want {
		if g, ok := gotBy[w.Path]; !ok {
			line(w.Path, w.Value, absent)
		} else if g != w.Value {
			line(w.Path, w.Value, g)
		}
	}
	for _, g := range got {
		if _, ok := wantBy[g.Path]; !ok {
			line(g.Path, absent, g.Value)
		}
	}
	return lines
}

func (f Facts) byPath() map[string]string {
	by := make(map[string]string, len(f))
	for _, x := range f {
		by[x.Path] = x.Value
	}
	return by
}

// without drops the facts at the given paths.
func (f Facts) without(paths []string) Facts {
	return slices.DeleteFunc(f, func(x Fact) bool { return slices.Contains(paths, x.Path) })
}

// lines prints one line per fact.
func (f Facts) lines() []string {
	lines := make([]string, len(f))
	for i, x := range f {
		lines[i] = x.Path + ": " + x.Value
	}
	return lines
}
