package main

import (
	"testing"

	"github.com/tarn-kv/tarn/store/wal"
)

func TestCutLog(t *testing.T) {
	o := wal.Options{Dir: t.TempDir(), StoreID: [16]byte{1}}
	log, err := wal.Open(o, func(uint64, []byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	const frames = 30
	for n := range frames {
		if _, err := log.AppendFrame(make([]byte, wal.FrameHeader+n*7)); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cutLog(o.Dir, 12); err != nil {
		t.Fatal(err)
	}
	r, err := wal.Check(o, nil)
	if err != nil || len(r.Problems) > 0 || r.Frames != frames-12 || r.TornBytes != 0 {
		t.Errorf("after the cut: %+v, %v", r, err)
	}
	if err := cutLog(o.Dir, frames-12); err == nil {
		t.Error("all frames were cut off")
	}
}
