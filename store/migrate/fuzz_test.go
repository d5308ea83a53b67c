package migrate

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/tree/harm"
)

const (
	// fuzzHang is how long an import of a damaged file may take: far more than it does on
	// a slow machine.
	fuzzHang = time.Minute
	// fuzzMemory is what it may allocate beside a multiple of the file's size.
	fuzzMemory = 32 << 20
)

// How a file that is imported is made, as bits.
const (
	fuzzHashRight = 1 << iota // the hash is made right after the damage
	fuzzNoHash                // there is none, and it is not asked for
	fuzzBytes                 // the script is the file
)

// FuzzImport imports damaged snapshots and files that are none. Either they are refused, the file is
// as it was, and there is no data directory; or the store in it is good, and what was reported.
func FuzzImport(f *testing.F) {
	db := database(f, testBatch(), nil)
	f.Add(uint8(0), []byte{})
	for _, script := range harm.Seeds() {
		f.Add(uint8(fuzzHashRight), script)
		f.Add(uint8(fuzzNoHash), script)
	}
	f.Add(uint8(fuzzBytes|fuzzNoHash), db[:2*testPage])
	f.Add(uint8(fuzzBytes), bytes.Repeat([]byte("text"), 136))
	f.Fuzz(func(t *testing.T, how uint8, script []byte) {
		content := script
		switch {
		case how&fuzzBytes != 0:
		case how&fuzzNoHash != 0:
			content = harm.Apply(db, testPage, script)
		case how&fuzzHashRight != 0:
			content = withHash(harm.Apply(db, testPage, script))
		default:
			content = harm.Apply(withHash(db), testPage, script)
		}
		hang := time.AfterFunc(fuzzHang, func() { panic("the import does not end") })
		defer hang.Stop()
		before := allocated()
		importHarmed(t, content, how&fuzzNoHash != 0)
		if used := allocated() - before; used > fuzzMemory+uint64(64*len(content)) {
			t.Errorf("%d bytes were allocated for a file of %d", used, len(content))
		}
	})
}

// allocated is the number of bytes that were allocated so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func importHarmed(t *testing.T, content []byte, skip bool) {
	path := writeSnapshot(t, content)
	dir := filepath.Join(t.TempDir(), "data")
	r, err := ImportSnapshot(t.Context(), path, Options{Dir: dir, SkipHashCheck: skip})
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, content) {
		t.Errorf("the file was changed (%v)", err)
	}
	if err != nil {
		if !errors.Is(err, ErrSource) {
			t.Errorf("got %v", err)
		}
		wantNothing(t, dir)
		return
	}
	got, err := store.Check(t.Context(), dir)
	if err != nil || len(got.Findings) > 0 || got.Revision != r.Revision || got.Keys != r.Keys || got.Hash != r.Hash || got.CompactRevision != r.CompactRevision {
		t.Errorf("imported as %+v, but the store is %+v, %v", r, got, err)
	}
	s, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Errorf("the store does not open: %v", err)
		return
	}
	must(t, s.Close())
}
