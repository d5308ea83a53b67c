package main

// knownSkips are the tests that can not run with a server of one member, or that
// show a difference from etcd that is wanted.
var knownSkips = []skip{
	{suite: "common/etcdctl", test: "TestAlarm", reason: "waits for etcdctl to name the alarm that it disarms; tarn's NOSPACE alarm has ended by itself by then (documented); tools/TestAlarms has the commands"},
	{suite: "common/etcdctl", test: "TestEndpointHashKV", reason: listed},
	{suite: "common/etcdctl", test: "TestVerifyHashKVAfterCompact|TestVerifyHashKVAfterTwoCompactsOnTombstone|TestVerifyHashKVAfterCompactOnLastTombstone", reason: listed},
	{suite: "common/etcdctl", test: "TestStatus/Peer.*", reason: listed},
	{suite: "common/etcdctl", test: "Test(Downgrade|MoveLeader|Snapshot)With.*", reason: notWritten},
	{suite: "common/etcdctl", test: "TestKVGetNoQuorum|TestWaitLeader_MemberStop", reason: manyMembers},
	{suite: "common/etcdctl", test: "TestMemberAdd|TestMemberRemove|TestAuthMemberAdd|TestAuthMemberRemove", reason: addsMembers},

	{suite: "common/clientv3", test: "Test(Downgrade|MoveLeader|Snapshot)With.*", reason: notWritten},
	{suite: "common/clientv3", test: "TestAuthority", reason: "records the requests inside the server; common/etcdctl has the test with the server's own log"},
	{suite: "common/clientv3", test: "TestEndpointHashKV|TestMemberList", reason: listed},
	{suite: "common/clientv3", test: "TestVerifyHashKVAfterCompact|TestVerifyHashKVAfterTwoCompactsOnTombstone|TestVerifyHashKVAfterCompactOnLastTombstone", reason: listed},
	{suite: "common/clientv3", test: "TestStatus/Peer.*", reason: listed},
	{suite: "common/clientv3", test: "TestKVGetNoQuorum|TestWaitLeader_MemberStop", reason: manyMembers},
	{suite: "common/clientv3", test: "TestMemberAdd|TestMemberRemove|TestAuthMemberAdd|TestAuthMemberRemove", reason: addsMembers},

	{suite: "e2e", test: "TestConnectionMultiplexing/ServerTLSAndNonTLS", reason: "needs http and https on one port; tarn's addresses have one of them each"},
	{suite: "e2e", test: "TestConnectionMultiplexing/SeparateHTTP/.*", reason: separate},
	{suite: "e2e", test: "TestWatchDelayFor.*/SeparateHTTP.*", reason: separate},
	{suite: "e2e", test: "TestEtcdCorruptHash|TestPeriodicCheckDetectsCorruption|TestCompactHashCheckDetectCorruption.*", reason: etcdFiles},
	{suite: "e2e", test: "TestHTTPHealthHandler/network_partitioned", reason: manyMembers},
	{suite: "e2e", test: "TestHTTPLivezReadyzHandler/network_partitioned", reason: manyMembers},
	{suite: "e2e", test: "TestHTTPLivezReadyzHandler/corrupt", reason: etcdFiles},
	{suite: "e2e", test: "TestCtlV3DefragOffline|TestBreakConsistentIndexNewerThanSnapshot|TestEtctlutlMigrate", reason: etcdFiles},
	{suite: "e2e", test: "TestRestoreCompactionRevBump", reason: etcdFiles + "; tools/TestSnapshotRestoreBumped restores with a raised revision"},
	{suite: "e2e", test: "TestCtlV3GetFormat", reason: "has the cluster and member ID that etcd makes from its settings written down; tarn makes them from the store's ID (documented)"},
	{suite: "e2e", test: "TestCtlV3GetRevokedCRL|TestCtlV3GetRevokedCRLGRPCOnly", reason: noFlag + "--client-crl-file"},
	{suite: "e2e", test: "TestEtcdTLSVersion", reason: noFlag + "--tls-max-version"},
	{suite: "e2e", test: "TestAuthCluster|TestMemberReplace|TestMemberReplaceWithLearner|TestCtlV3MemberListSerializable|TestCtlV3MemberAdd|TestCtlV3MemberAddAsLearner.*|" +
		"TestCtlV3MemberPromoteWithAuth.*|TestCtlV3ConsistentMemberList|TestIssue6361|TestGrpcProxyAutoSync|TestForceNewCluster.*|TestReproduce20340|" +
		"TestV3LearnerMetric.*|TestRuntimeReconfigGrowClusterSize|TestRuntimeReconfigRollingUpgrade|TestCurlV3ClusterOperations|TestClusterUpgradeAfterPromotingMembers", reason: addsMembers},
	{suite: "e2e", test: "TestCtlV3MoveLeaderScenarios|TestTxnRangeConsistency|TestLeaseRevoke_.*|TestFailoverOnDefrag", reason: manyMembers},
	{suite: "e2e", test: "Test.*UsingV3Discovery_.*", reason: discovery},
	{suite: "e2e", test: "TestEtcdMultiPeer|TestEtcdPeer.*Auth|TestEtcdPeerLocalAddr|TestEtcdUnixPeers", reason: peers},
	{suite: "e2e", test: "TestEtcdExampleConfig", reason: "reads a file of etcd's repository that is not in the module of its tests"},
	{suite: "e2e", test: "TestEtcdListenMetricsURLsWithMissingClientTLSInfo", reason: "expects etcd's words of an error at start; tarn ends with one too"},
	{suite: "e2e", test: "TestEtcdDeprecatedFlags|TestV2Deprecation.*", reason: deprecation},
	{suite: "e2e", test: "TestBootstrapDefragFlag|TestSnapshotCatchupEntriesFlag|TestWarningApplyDuration|TestConnectionRejectMessage|TestServerJsonLogging", reason: etcdLog},
	{suite: "e2e", test: "TestNoMetricsMissing", reason: "wants all of etcd's metrics, those of its raft, backend, caches and proxy too; tarn has those that have a meaning here (documented)"},

	{suite: "grpc", test: "TestV3StorageQuotaApply|TestV3CorruptAlarm.*", reason: etcdFiles},
	{suite: "grpc", test: "TestFailover|TestV3PutRestart|TestGRPCRequireLeader|TestGRPCStreamRequireLeader|TestRevisionMonotonicWith.*|" +
		"TestV3LeasePromote|TestV3LeaseNegativeID|TestV3LeaseKeepAliveForwardingCatchError|TestV3LeaseCheckpoint|TestV3LeaseFailover|" +
		"TestV3LeaseTimeToLiveWithLeaderChanged|TestV3LeaseRevokeFailureOverlap", reason: manyMembers},
	{suite: "grpc", test: "TestMetricsRangeDurationSeconds", reason: "wants a metric of a function inside etcd; tarn has the times of each method of the API with --metrics=extensive"},
	{suite: "grpc", test: "TestMetricDbSizeDefrag", reason: "reads sizes below a million only, of a file that shrinks; tarn's has at least 4 MiB"},
	{suite: "grpc", test: "TestV3AdditionalGRPCOptions", reason: "passes options to a gRPC server in its own process"},
	{suite: "grpc", test: "TestV3RangeRequest/limit.*", reason: "V-3 (documented): tarn sorts before it cuts"},
	{suite: "grpc", test: "TestV3RangeStreamPartialThenCompacted", reason: "V-14 (documented): a compaction does not end a stream of tarn"},

	{suite: "clientv3", test: "TestMemberAdd|TestMemberRemove|TestMemberAddForLearner|TestMemberUpdateLearner|TestMemberPromote|TestKVForLearner|TestBalancerSupportLearner", reason: addsMembers},
	{suite: "clientv3", test: "TestMemberList|TestMemberPromoteMemberNotExist|TestMaintenanceStatus", reason: listed},
	{suite: "clientv3", test: "TestMemberUpdate", reason: "V-9 (documented): an update of the member is checked and changes nothing"},
	{suite: "clientv3", test: "TestKVPutWithRequireLeader|TestMaintenanceMoveLeader|TestDetectKvOrderViolation|TestDetectTxnOrderViolation|" +
		"TestEndpointSwitchResolvesViolation|TestUnresolvableOrderViolation|TestTxnWriteFail", reason: manyMembers},
	{suite: "clientv3", test: "TestMaintenanceSnapshot.*ErrorInflight", reason: etcdFiles},

	{suite: "clientv3/connectivity", test: "TestBalancerUnderNetworkPartition.*|TestSwitchSetEndpoints|TestDropReadUnderNetworkPartition", reason: manyMembers},
	{suite: "clientv3/connectivity", test: "TestBalancerUnderServerShutdown.*|TestBalancerUnderServerStop.*|TestDialSetEndpoints.*", reason: manyMembers},

	{suite: "clientv3/examples", test: "ExampleCluster_member.*", reason: addsMembers},

	{suite: "clientv3/lease", test: "TestLeaseKeepAliveHandleFailure|TestLeaseKeepAliveCloseAfterDisconnectRevoke|TestLeaseRenewLostQuorum|" +
		"TestV3LeaseFailureOverlap|TestLeaseWithRequireLeader|TestLeasingGetSerializable|TestLeasingTxnCancel|TestLeasingReconnectOwnerRevoke.*|TestLeasingTxnOwnerPutBranch|TestLeasingSessionExpire.*", reason: manyMembers},

	{suite: "clientv3/watch", test: "TestV3WatchRestoreSnapshotUnsync|TestWatchResumeCompacted|TestWatchWithRequireLeader", reason: manyMembers},
	{suite: "clientv3/watch", test: "TestWatchFragment.*", reason: "expects ten changes of 1 MiB each in one answer, of fragments or not; tarn begins another answer after each 512 KiB, between revisions, so that a watch takes little memory"},
}
