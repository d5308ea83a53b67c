package main

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/report"
)

func TestCheckPrevKV(t *testing.T) {
	compaction := porcupine.Operation{Call: 100, Return: 200, Input: compact(5), Output: model.MaybeEtcdResponse{}}
	update := model.WatchEvent{PersistedEvent: model.PersistedEvent{Revision: 5}}
	create := update
	create.IsCreate = true
	with := update
	with.PrevValue = &model.ValueRevision{ModRevision: 4}
	newer := update
	newer.Revision = 6
	for name, c := range map[string]struct {
		event  model.WatchEvent
		wanted bool
		time   time.Duration
		good   bool
	}{
		"there":                        {with, true, 50, true},
		"there, not asked for":         {with, false, 50, false},
		"missing":                      {update, true, 50, false},
		"missing, not asked for":       {update, false, 50, true},
		"missing, as it is the first":  {create, true, 50, true},
		"missing after a compaction":   {update, true, 150, true},
		"missing above the compaction": {newer, true, 150, false},
	} {
		clients := []report.ClientReport{{KeyValue: []porcupine.Operation{compaction}, Watch: []model.WatchOperation{{
			Request:   model.WatchRequest{WithPrevKV: c.wanted},
			Responses: []model.WatchResponse{{Time: c.time, Events: []model.WatchEvent{c.event}}},
		}}}}
		if err := checkPrevKV(clients); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
