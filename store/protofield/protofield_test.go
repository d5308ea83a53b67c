package protofield

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

func TestEach(t *testing.T) {
	b := protowire.AppendTag(nil, 1, protowire.BytesType)
	b = protowire.AppendString(b, "text")
	b = protowire.AppendTag(b, 2, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, 7)
	b = protowire.AppendTag(b, 3, protowire.VarintType)
	b = protowire.AppendVarint(b, 300)

	var got []string
	err := Each(b, func(num protowire.Number, v []byte, n uint64) error {
		got = append(got, fmt.Sprintf("%d %q %d", num, v, n))
		return nil
	})
	if want := []string{`1 "text" 0`, `3 "" 300`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("fields %q, %v; want %q", got, err, want)
	}

	whole := map[int]bool{0: true, 6: true, 15: true, len(b): true}
	for n := range len(b) + 1 {
		err := Each(b[:n], func(protowire.Number, []byte, uint64) error { return nil })
		if wholeFields := err == nil; wholeFields != whole[n] || err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}

	stop := errors.New("stop")
	if err := Each(b, func(protowire.Number, []byte, uint64) error { return stop }); err != stop {
		t.Errorf("a failed call ends the walk with %v", err)
	}
}
