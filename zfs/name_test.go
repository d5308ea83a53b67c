package zfs

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestNames(t *testing.T) {
	for want, n := range map[string]Name{
		"tarn-20261130T210507Z-r17":                  {someTime, 17, 1},
		"tarn-20261130T210507Z-r0":                   {someTime, 0, 1},
		"tarn-20261130T210507Z-r17-2":                {someTime, 17, 2},
		"tarn-20261130T210507Z-r17-123":              {someTime, 17, 123},
		"tarn-20261130T210507Z-r9223372036854775807": {someTime, math.MaxInt64, 1},
		"tarn-00010101T000000Z-r1":                   {time.Time{}, 1, 1},
	} {
		if n.String() != want {
			t.Errorf("%+v is called %q, want %q", n, n, want)
		}
		if got, ok := ParseName(want); !ok || got != n {
			t.Errorf("%q is %+v, %v", want, got, ok)
		}
	}
	zone := time.FixedZone("", 3600)
	if got := (Name{Time: someTime.In(zone), Revision: 1}).String(); got != "tarn-20261130T210507Z-r1" {
		t.Errorf("in another time zone it is called %q", got)
	}
	for _, s := range []string{
		"", "tarn", "tarn-", "tarn-20261130T210507Z", "tarn-20261130T210507Z-r", "tarn-20261130T210507Z-r-1", "tarn-20261130T210507Z-r01",
		"tarn-20261130T210507Z-r1-", "tarn-20261130T210507Z-r1-0", "tarn-20261130T210507Z-r1-1", "tarn-20261130T210507Z-r1-02",
		"tarn-20261130T210507Z-r9223372036854775808", "tarn-20261330T210507Z-r1", "tarn-20260230T210507Z-r1", "tarn-20261130T250507Z-r1",
		"tarn-20261130T210507Z-r1 ", " tarn-20261130T210507Z-r1", "tarn-20261130T210507Z-r1\n", "xtarn-20261130T210507Z-r1",
		"TARN-20261130T210507Z-r1", "tarn-20261130T210507-r1", "tarn-20261130t210507z-r1", "tank@tarn-20261130T210507Z-r1",
		"tarn-20261130T210507Z-r1%", "tarn-20261130T210507Z-r1,x", "tarn-20261130T210507Z-r1/x", "tarn-20261130T210507Z-r٣",
	} {
		if n, ok := ParseName(s); ok {
			t.Errorf("%q is taken for %+v", s, n)
		}
	}
}

func TestRandomNames(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		n := Name{Time: time.Unix(r.Int64N(250_000_000_000), 0).UTC(), Revision: r.Int64(), Nth: 1 + r.IntN(maxNth)}
		if got, ok := ParseName(n.String()); !ok || got != n {
			t.Fatalf("seed %d: %q is read as %+v, %v", seed, n, got, ok)
		}
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("tarn-20261130T210507Z-r17-2")
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := ParseName(s); ok && n.String() != s {
			t.Errorf("%q is read as %+v, which is written %q", s, n, n)
		}
	})
}

func TestVerification(t *testing.T) {
	v := Verification{Time: someTime, Revision: 12, Hash: 0xab}
	if got := v.String(); got != "2026-11-30T21:05:07Z 12 000000ab" {
		t.Errorf("written %q", got)
	}
	if got, ok := ParseVerification(v.String()); !ok || got != v {
		t.Errorf("read %+v, %v", got, ok)
	}
	for _, s := range []string{"", "x", "2026-11-30T21:05:07Z 12", "2026-11-30T21:05:07Z 12 ab", "2026-11-30T21:05:07Z x 000000ab",
		"yesterday 12 000000ab", "2026-11-30T21:05:07Z 12 000000ab more", "2026-11-30T21:05:07Z 12 1000000ab"} {
		if got, ok := ParseVerification(s); ok {
			t.Errorf("%q is read as %+v", s, got)
		}
	}
}
