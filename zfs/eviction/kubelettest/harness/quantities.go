package harness

import (
	"math/rand/v2"
	"testing"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// quantities holds the reading of single values against the kubelet's, on words of the
// characters that values are made of.
func quantities(t *testing.T, v eviction.Version) {
	r := rand.New(rand.NewPCG(seed(t), 0))
	const characters = "0123456789012345678901234567890....+-eEinumkKMGTPi%% "
	fs := dataset("tank/k8s", kubeletDir, space{own: 20 * gib, available: 80 * gib})
	valid := 0
	for range 20000 {
		word := ""
		for range 1 + r.IntN(6) {
			word += string(characters[r.IntN(len(characters))])
		}
		n := one(v, fs)
		n.Config = &eviction.Config{Hard: settings(map[string]string{"nodefs.available": word})}
		report := eviction.Examine(n)
		got, err := nodeFSOf(n.Config, FS(report.NodeFS.Stats))
		if (err != nil) != (report.StartError != "") {
			t.Fatalf("%q: foretold is %q, and it was %v", word, report.StartError, err)
		}
		if err != nil {
			continue
		}
		valid++
		for _, s := range report.Signals {
			if s.Name == eviction.NodeFSAvailable && !s.Off && int64(*s.Threshold) != max(0, got) {
				t.Fatalf("%q: foretold is %d, and it was %d", word, *s.Threshold, got)
			}
		}
	}
	t.Logf("%d of 20000 words are values", valid)
	if valid < 1000 {
		t.Error("too few words are values to show anything")
	}
}

// nodeFSOf is what the kubelet makes of nodefs.available, 0 if it drops it.
func nodeFSOf(c *eviction.Config, fs FS) (int64, error) {
	list, err := quantitiesOf(Settings{Hard: values(c.Hard)}, fs, fs, false)
	for _, threshold := range list {
		if threshold.Signal == eviction.NodeFSAvailable {
			return threshold.Quantity, nil
		}
	}
	return 0, err
}
