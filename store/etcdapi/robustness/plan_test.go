package main

import (
	"fmt"
	"reflect"
	"testing"
)

func TestPlanFollowsFromTheSeed(t *testing.T) {
	for seed := range uint64(100) {
		p := newPlan(seed, 1)
		if again := newPlan(seed, 1); !reflect.DeepEqual(p, again) {
			t.Errorf("seed %d: %v and %v", seed, p, again)
		}
		if _, err := trafficNamed(p.Traffic); err != nil {
			t.Error(err)
		}
		for _, s := range p.Failpoints {
			if _, err := failpointNamed(s.Name); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestPlansCoverEverything: a short run leaves nothing out, whatever its first seed.
func TestPlansCoverEverything(t *testing.T) {
	for first := range uint64(50) {
		missing := map[string]bool{}
		for _, faulty := range []bool{false, true} {
			for _, tr := range traffics {
				missing[fmt.Sprint(tr.name, " ", faulty)] = true
			}
			for _, name := range failpointNames(faulty) {
				missing[fmt.Sprint(name, " ", faulty)] = true
			}
		}
		for n := range uint64(coverage) {
			p := newPlan(first+n, shortPace)
			delete(missing, fmt.Sprint(p.Traffic, " ", p.Faulty))
			for _, s := range p.Failpoints {
				delete(missing, fmt.Sprint(s.Name, " ", p.Faulty))
			}
		}
		if len(missing) > 0 {
			t.Errorf("from seed %d on: missing %v", first, missing)
		}
	}
}
