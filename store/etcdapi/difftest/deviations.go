package difftest

import (
	"slices"
)

// Deviation is a difference that tarn makes on purpose. A listed step must
// differ from etcd in just the named way; one that does not differ any more, or
// differs in another way, fails. So the list stays true.
type Deviation struct {
	// Step is the full test name, as go test prints it.
	Step string
	// Tarn has the lines of tarn's answer that etcd's does not have, all of
	// them. more at the end stands for further ones.
	Tarn   []string
	Reason string
}

// more ends a list of lines that is not complete.
const more = "…"

const (
	isLost  = "who waits and whose key is gone learns it at once; etcd waits for the others first (V-20)"
	isNoKey = "a delete to the end of the key space counts in the duplicate check like any other; etcd overlooks it (V-4)"
	notNeg  = "a negative revision means the current one, as in a plain Range (V-5)"
	badCmp  = "an unknown compare is an error; etcd takes it for true (V-11)"
	clears  = "the NOSPACE alarm clears by itself once there is room again"

	duplicate = "text: etcdserver: duplicate key given in txn request"
	badDown   = "text: etcdserver: invalid downgrade target version"
	invalid   = "code: InvalidArgument"
)

var deviations = []Deviation{
	{"TestKVRange/selection/RNG-14_V-2_keys_only_of_a_leased_key", []string{"msg.kvs[0].lease: 7"}, "keys_only keeps the lease, as etcd 3.5 and 3.6 do (V-2)"},
	{"TestKVRange/sort/RNG-10_V-3_VALUE_NONE_limit_2", []string{`msg.kvs[0].key: "x"`, more}, "sorted first, then cut; etcd cuts first here (V-3)"},
	{"TestKVTxn/hole_of_the_duplicate_check/TXN-5_V-4_put_then_delete_from_a_on", []string{invalid, duplicate}, isNoKey},
	{"TestKVTxn/hole_of_the_duplicate_check_the_other_way/TXN-5_V-4_delete_from_a_on_then_put", []string{invalid, duplicate}, isNoKey},
	{"TestKVTxn/checks/TXN-13_V-5_range_revision_-2_before_the_first_compaction", []string{"code: OK", "msg.responses[0].response_range.kvs[0].mod_revision: 3", more}, notNeg},
	{"TestKVTxn/checks/TXN-13_V-5_negative_range_revision_after_a_compaction", []string{"code: OK", "msg.responses[0].response_range.kvs[0].mod_revision: 4", more}, notNeg},
	{"TestGolden/18.1_revisions_and_compaction/TXN-13_V-5_range_-1", []string{"code: OK", "msg.responses[0].response_range.count: 3", more}, notNeg},
	{"TestKVCompare/odd/TXN-25_V-11_unknown_target", []string{invalid, more}, badCmp},
	{"TestKVCompare/odd/TXN-25_V-11_unknown_target_greater", []string{invalid, more}, badCmp},
	{"TestKVCompare/odd/TXN-25_V-11_unknown_result", []string{invalid, more}, badCmp},
	{"TestWatchCreate/id_minus_one/WCH-11_V-6_minus_one", []string{"msg[0].canceled: true", more}, "id -1 is refused: it would collide with answers to progress requests (V-6)"},
	{"TestWatchProgress/requested_with_a_watcher_canceled_by_compaction/WCH-46_V-7_progress", []string{"unasked[0].watch_id: -1", more}, "a watcher canceled by compaction does not hold up progress (V-7)"},
	{"TestGolden/18.6_hash/MNT-5_V-8_negative", []string{"msg.hash: 2902813841", "msg.hash_revision: 12"}, "a negative revision means the current one (V-8)"},
	{"TestMaintenance/defragment_and_hash/MNT-5_V-8_negative", []string{"msg.hash: 3397199720", "msg.hash_revision: 4"}, "a negative revision means the current one (V-8)"},
	{"TestCluster/update_with_nonsense/CLU-8_V-9_update_self", []string{invalid, more}, "the URL is checked (V-9)"},
	{"TestCluster/update_with_nonsense/CLU-8_V-9_update_self_without", []string{invalid, more}, "the URL is checked (V-9)"},
	{"TestCompact/fresh_store_revision_0/CMP-1_V-10_revision_0_again", []string{"code: OK", more}, "compaction to 0 of a fresh store does nothing (V-10)"},
	{"TestCompact/fresh_store_revision_0/end_state", []string{"hash.hash_revision: 1", "hash at 1.compact_revision: -1", more}, "compaction to 0 of a fresh store does nothing (V-10)"},
	{"TestKVStream/compaction_in_the_middle/RS-6_V-14_compact_after_the_first_chunk", []string{"code: OK", "count: 1500", "header revision: 1501"}, "a started stream is served to the end (V-14)"},
	{"TestCluster/members/CLU-6_V-17_remove_self", []string{"code: FailedPrecondition"}, "the code that etcd means (V-17)"},
	{"TestMaintenance/downgrade_enable/MNT-15_enable_3.6", []string{invalid, badDown}, "there is nothing to downgrade"},
	{"TestMaintenance/leader_and_downgrade/MNT-15_enable_nonsense", []string{badDown}, "there is nothing to downgrade"},
	{"TestAlarm/freeing_space/ALM-8_alarm_after_freeing_space", nil, clears},
	{"TestAlarm/freeing_space/ALM-3_disarm", nil, clears},
	{"TestAlarm/write_after_freeing_space/ALM-8_put", []string{"code: OK", more}, clears},
	{"TestKVTxn/hole_between_siblings/TXN-4_put_then_delete", []string{invalid, duplicate}, "siblings that touch one key conflict in either order; etcd overlooks put before delete (V-4)"},
	{"TestKVStream/chunks_of_huge_keys/RS-7_all", []string{"chunk[0].range_response.kvs.len: 5", more}, "a chunk also ends at about 3 MiB, so that memory is bounded"},
	{"TestHTTP/client_port/HTTP-7_options", []string{"header Access-Control-Allow-Methods: GET, HEAD, OPTIONS, POST"}, "a web page must not change the log level, which is a PUT"},
	{"TestHTTP/metrics/9.2_families", nil, "nothing is applied apart from the request; grpc_server_handling_seconds has its time"},
	{"TestServices/unknown/GRPC-17_reflection", []string{invalid, more}, "reflection is served (GRPC-17)"},
	{"TestServices/unknown/GRPC-17_reflection_alpha", []string{invalid, more}, "reflection is served (GRPC-17)"},
	{"TestAuth/management/V-24_role_get_two_changed", []string{"msg.perm.len: 2", "msg.perm[1].permType: WRITE"}, "granting a permission on a range that the role has changes that one; etcd may add another beside it, and the old one stays in force (V-24)"},
	{"TestLock/lease_revoked_while_waiting/V-20_the_call", []string{"code: Unknown", "text: mutex: session is expired"}, isLost},
	{"TestLock/given_up_by_one_of_two_calls/V-20_the_other_call", []string{"code: Unknown", "text: mutex: session is expired"}, isLost},
	{"TestLock/key_made_anew_while_waiting/V-20_the_call", []string{"code: Unknown", "text: mutex: session is expired"}, isLost},
	{"TestLock/key_made_anew_while_waiting/V-19_two_owners", []string{"code: Unknown", "text: mutex: session is expired"}, "the lock is for who is first in the queue (V-19)"},
	{"TestElection/lease_revoked_while_waiting/V-20_the_call", []string{"code: Unknown", "text: election: not leader"}, isLost},
	{"TestElection/lease_revoked_while_waiting/V-19_end", []string{"code: Unknown", "text: election: not leader"}, "a lease that has ended leads nothing (V-19)"},
	{"TestLockAccess/on/V-22_its_key", []string{"msg.header.revision: 6"}, "who gives up leaves no key behind; etcd deletes it with no token, which is refused (V-22)"},
	{"TestLockAccess/on/V-23_v_observes_nothing", []string{"code: Unknown", "text: etcdserver: permission denied"}, "an error is told; etcd ends the stream as if all was well (V-23)"},
	{"TestElection/without_lease/V-21_resign", []string{"leases: 2"}, "resigning grants no lease: nothing would use it (V-21)"},
}

// deviationFor returns the entry of a step.
func deviationFor(step string) (d Deviation, ok bool) {
	for _, d := range deviations {
		if d.Step == step {
			return d, true
		}
	}
	return Deviation{}, false
}

// matches reports whether the difference between the answers is the listed one.
func (d Deviation) matches(etcd, tarn Facts) bool {
	theirs, want := etcd.lines(), slices.Clone(d.Tarn)
	open := len(want) > 0 && want[len(want)-1] == more
	if open {
		want = want[:len(want)-1]
	}
	var only []string
	for _, line := range tarn.lines() {
		if !slices.Contains(theirs, line) {
			only = append(only, line)
		}
	}
	for _, line := range want {
		if !slices.Contains(only, line) {
			return false
		}
	}
	return open || len(only) == len(want)
}
