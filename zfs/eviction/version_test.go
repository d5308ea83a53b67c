package eviction

import (
	"encoding/json"
	"testing"
)

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]Version{
		"k3s version v1.36.1+k3s1 (abc1234)\ngo version go1.25.1": {1, 36, 1, "", "v1.36.1+k3s1"},
		"Kubernetes v1.37.2":  {1, 37, 2, "", "v1.37.2"},
		"1.35.4":              {1, 35, 4, "", "1.35.4"},
		"v1.37.0-rc.1+k3s1":   {1, 37, 0, "rc.1", "v1.37.0-rc.1+k3s1"},
		"v1.33.13-eks-abcdef": {1, 33, 13, "eks-abcdef", "v1.33.13-eks-abcdef"},
	} {
		if got, err := ParseVersion(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "v1.37", "latest", "version one"} {
		if v, err := ParseVersion(text); err == nil || v.Known() {
			t.Errorf("%q: %+v", text, v)
		}
	}
}

func TestBehaviourOf(t *testing.T) {
	for text, want := range map[string]Behaviour{
		"v1.30.0":      {Capacity: CapacityStatfs},
		"v1.33.0":      {Capacity: CapacityStatfs, Known: true},
		"v1.35.99":     {Capacity: CapacityStatfs, Known: true},
		"v1.36.0":      {Capacity: CapacityInflated, NoPlugin: true, Known: true},
		"v1.36.0-rc.1": {Capacity: CapacityInflated, NoPlugin: true, Known: true},
		"v1.36.1":      {Capacity: CapacityInflated, RunsZFS: true, Known: true},
		"v1.36.3+k3s1": {Capacity: CapacityInflated, RunsZFS: true, Known: true},
		"v1.36.4":      {Capacity: CapacityInflated, RunsZFS: true},
		"v1.37.0":      {Capacity: CapacityInflated, RunsZFS: true, Known: true},
		"v1.37.2":      {Capacity: CapacityInflated, RunsZFS: true, Known: true},
		"v1.37.3":      {Capacity: CapacityInflated, RunsZFS: true},
		"v1.38.0":      {Capacity: CapacityInflated, RunsZFS: true},
		"v2.0.0":       {Capacity: CapacityInflated, RunsZFS: true},
	} {
		got := BehaviourOf(mustVersion(text))
		if got.Note == "" {
			t.Errorf("%s: no note", text)
		}
		got.Note = ""
		if got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	if b := BehaviourOf(Version{}); b.Known || !b.RunsZFS {
		t.Errorf("no version: %+v", b)
	}
}

func TestReadsDropIns(t *testing.T) {
	for _, c := range []struct {
		version Version
		k3s     bool
		want    bool
	}{
		{mustVersion("v1.31.9+k3s1"), true, false}, {mustVersion("v1.32.0+k3s1"), true, true},
		{mustVersion("v1.29.0"), false, false}, {mustVersion("v1.31.0"), false, true}, {Version{}, true, false},
	} {
		if got := ReadsDropIns(c.version, c.k3s); got != c.want {
			t.Errorf("%s, k3s %t: %t", c.version, c.k3s, got)
		}
	}
}

func TestVersionJSON(t *testing.T) {
	for _, v := range []Version{{}, {Major: 1, Minor: 37, Patch: 2, Text: "v1.37.2+k3s1"}} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		read := Version{Minor: 9}
		if err := json.Unmarshal(text, &read); err != nil || read != v {
			t.Errorf("%s is read as %+v, %v", text, read, err)
		}
	}
	if err := json.Unmarshal([]byte(`"one"`), new(Version)); err == nil {
		t.Error("a version that is none is read")
	}
}
