package eviction

import (
	"math"
	"testing"
)

func TestParseQuantity(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "+7": 7, "-1Gi": -gib, "1k": 1000, "1Ki": 1024, "100Mi": 100 << 20, "2Gi": 2 * gib, "1.5Gi": 3 * gib / 2,
		".5Ki": 512, "1.": 1, "1e9": 1e9, "1E3": 1000, "12e-1": 2, "500m": 1, "1500m": 2, "1n": 1, "-1500m": -2, ".": 0, "+": 0, "Gi": 0, "007": 7, "1Ei": 1 << 60, "9000E": math.MaxInt64,
	} {
		if got, err := parseQuantity(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1 Gi", " 1", "1GB", "1K", "0x10", "1.5.5", "--1", "5%", "1e", "nan"} {
		if got, err := parseQuantity(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestFormatQuantity(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 1023: "1023", 1024: "1Ki", 2 * gib: "2Gi", 3 * gib / 2: "1536Mi", 1 << 60: "1Ei"} {
		if got := formatQuantity(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
		if back, err := parseQuantity(want); err != nil || uint64(back) != n {
			t.Errorf("%s: %d, %v", want, back, err)
		}
	}
	for n, want := range map[uint64]string{0: "0 bytes", 1023: "1023 bytes", 1536: "1.5 KiB", 2 * gib: "2 GiB", 1 << 50: "1 PiB", math.MaxUint64: "16 EiB"} {
		if got := FormatBytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
