package nodeconf

import (
	"slices"
	"strings"
)

// Names of settings of the kubelet.
const (
	keyHard           = "evictionHard"
	keySoft           = "evictionSoft"
	keyGrace          = "evictionSoftGracePeriod"
	keyReclaim        = "evictionMinimumReclaim"
	keyMergeDefaults  = "mergeDefaultEvictionSettings"
	keyImageGCHigh    = "imageGCHighThresholdPercent"
	keyImageGCLow     = "imageGCLowThresholdPercent"
	keyImageMaxAge    = "imageMaximumGCAge"
	kubeletAPIVersion = "kubelet.config.k8s.io/v1beta1"
	kubeletKind       = "KubeletConfiguration"
)

// knownKeys are the top-level fields of a KubeletConfiguration of Kubernetes 1.37, and those that versions from
// 1.28 on had before.
var knownKeys = strings.Fields(`apiVersion kind
	enableServer staticPodPath podLogsDir syncFrequency fileCheckFrequency httpCheckFrequency staticPodURL staticPodURLHeader
	address port readOnlyPort tlsCertFile tlsPrivateKeyFile tlsCipherSuites tlsCurvePreferences tlsMinVersion rotateCertificates
	serverTLSBootstrap authentication authorization registryPullQPS registryBurst imagePullCredentialsVerificationPolicy
	preloadedImagesVerificationAllowlist eventRecordQPS eventBurst enableDebuggingHandlers enableContentionProfiling healthzPort
	healthzBindAddress oomScoreAdj clusterDomain clusterDNS streamingConnectionIdleTimeout nodeStatusUpdateFrequency
	nodeStatusReportFrequency nodeLeaseDurationSeconds imageMinimumGCAge imageMaximumGCAge imageGCHighThresholdPercent
	imageGCLowThresholdPercent volumeStatsAggPeriod kubeletCgroups systemCgroups cgroupRoot cgroupsPerQOS cgroupDriver
	cpuManagerPolicy singleProcessOOMKill cpuManagerPolicyOptions cpuManagerReconcilePeriod memoryManagerPolicy
	topologyManagerPolicy topologyManagerScope topologyManagerPolicyOptions qosReserved runtimeRequestTimeout hairpinMode maxPods
	podCIDR podPidsLimit resolvConf runOnce cpuCFSQuota cpuCFSQuotaPeriod nodeStatusMaxImages maxOpenFiles contentType kubeAPIQPS
	kubeAPIBurst serializeImagePulls maxParallelImagePulls evictionHard evictionSoft evictionSoftGracePeriod
	evictionPressureTransitionPeriod evictionMaxPodGracePeriod evictionMinimumReclaim mergeDefaultEvictionSettings podsPerCore
	enableControllerAttachDetach protectKernelDefaults makeIPTablesUtilChains iptablesMasqueradeBit iptablesDropBit featureGates
	failSwapOn memorySwap containerLogMaxSize containerLogMaxFiles containerLogMaxWorkers containerLogMonitorInterval
	configMapAndSecretChangeDetectionStrategy systemReserved kubeReserved reservedSystemCPUs showHiddenMetricsForVersion
	systemReservedCgroup kubeReservedCgroup enforceNodeAllocatable allowedUnsafeSysctls defaultPodSysctls volumePluginDir
	providerID kernelMemcgNotification logging enableSystemLogHandler enableSystemLogQuery shutdownGracePeriod
	shutdownGracePeriodCriticalPods shutdownGracePeriodByPodPriority crashLoopBackOff reservedMemory enableProfilingHandler
	enableDebugFlagsHandler seccompDefault memoryThrottlingFactor memoryReservationPolicy registerWithTaints registerNode tracing
	localStorageCapacityIsolation containerRuntimeEndpoint imageServiceEndpoint failCgroupV1 userNamespaces`)

// meantKey is what a misspelled key looks like, or "".
func meantKey(key string) string {
	best, bestDistance := "", max(2, len(key)/4)+1
	for _, k := range knownKeys {
		if d := distance(strings.ToLower(key), strings.ToLower(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

func isKnownKey(key string) bool { return slices.Contains(knownKeys, key) }

// foldedKey is the known key that differs from key in nothing but upper and lower case.
func foldedKey(key string) (known string, ok bool) {
	for _, k := range knownKeys {
		if strings.EqualFold(k, key) {
			return k, true
		}
	}
	return "", false
}

// distance is how many characters must be put in, taken out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			step := diagonal
			if a[i] != b[j] {
				step++
			}
			diagonal = row[j+1]
			row[j+1] = min(step, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
