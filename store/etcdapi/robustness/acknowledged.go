package main

import (
	"fmt"
	"slices"

	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/report"
)

// checkAcknowledged looks for what the server has acknowledged in its log. The
// check of linearizability would find most that is missing too, but not say it.
func checkAcknowledged(clients []report.ClientReport, p *persisted) error {
	for _, c := range clients {
		for _, op := range c.KeyValue {
			request, response := op.Input.(model.EtcdRequest), op.Output.(model.MaybeEtcdResponse)
			if response.Error != "" || response.ClientError != "" {
				continue
			}
			if err := p.holds(request, response.EtcdResponse); err != nil {
				return err
			}
		}
	}
	return nil
}

// holds tells what of an acknowledged request is missing.
func (p *persisted) holds(request model.EtcdRequest, response model.EtcdResponse) error {
	switch request.Type {
	case model.Txn:
		for _, op := range chosenBranch(request, response) {
			if op.Type == model.PutOperation && !slices.Contains(p.puts[keyOfPut(op)], response.Revision) {
				return fmt.Errorf("acknowledged: a put of %q at revision %d is not in the log", op.Put.Key, response.Revision)
			}
		}
	case model.LeaseGrant:
		if !p.leases[request.LeaseGrant.LeaseID] {
			return fmt.Errorf("acknowledged: the grant of lease %d is not in the log", request.LeaseGrant.LeaseID)
		}
	case model.Compact:
		if !p.compacted[request.Compact.Revision] {
			return fmt.Errorf("acknowledged: the compaction at revision %d is not in the log", request.Compact.Revision)
		}
	}
	return nil
}
