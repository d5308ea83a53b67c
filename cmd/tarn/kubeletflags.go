package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tarn-kv/tarn/zfs/eviction"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

// kubeletFlags are the flags of the kubelet of Kubernetes 1.35 to 1.37, and some that earlier versions had.
var kubeletFlags = strings.Fields(`address allowed-unsafe-sysctls alsologtostderr anonymous-auth application-metrics-count-limit authentication-token-webhook
	authentication-token-webhook-cache-ttl authorization-mode authorization-webhook-cache-authorized-ttl
	authorization-webhook-cache-unauthorized-ttl azure-container-registry-config boot-id-file bootstrap-kubeconfig cert-dir
	cgroup-driver cgroup-root cgroups-per-qos client-ca-file cloud-config cloud-provider cluster-dns cluster-domain config config-dir
	container-hints container-log-max-files container-log-max-size container-runtime container-runtime-endpoint contention-profiling
	cpu-cfs-quota cpu-cfs-quota-period cpu-manager-policy cpu-manager-policy-options cpu-manager-reconcile-period
	enable-controller-attach-detach enable-debugging-handlers enable-load-reader enable-server enforce-node-allocatable event-burst
	event-qps event-storage-age-limit event-storage-event-limit eviction-hard eviction-max-pod-grace-period eviction-minimum-reclaim
	eviction-pressure-transition-period eviction-soft eviction-soft-grace-period exit-on-lock-contention
	experimental-allocatable-ignore-eviction experimental-mounter-path fail-cgroupv1 fail-swap-on feature-gates file-check-frequency
	global-housekeeping-interval hairpin-mode healthz-bind-address healthz-port help hostname-override housekeeping-interval
	http-check-frequency image-credential-provider-bin-dir image-credential-provider-config image-gc-high-threshold
	image-gc-low-threshold image-service-endpoint iptables-drop-bit iptables-masquerade-bit keep-terminated-pod-volumes
	kernel-memcg-notification kube-api-burst kube-api-content-type kube-api-qps kube-reserved kube-reserved-cgroup kubeconfig
	kubelet-cgroups local-storage-capacity-isolation lock-file log-cadvisor-usage log-dir log-file log-flush-frequency
	log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream logging-format logtostderr
	machine-id-file make-iptables-util-chains manifest-url manifest-url-header master-service-namespace max-open-files max-pods
	maximum-dead-containers maximum-dead-containers-per-container memory-manager-policy minimum-container-ttl-duration
	minimum-image-ttl-duration node-ip node-labels node-status-max-images node-status-report-frequency node-status-update-frequency
	oom-score-adj pod-cidr pod-infra-container-image pod-manifest-path pod-max-pids pods-per-core port protect-kernel-defaults
	provider-id qos-reserved read-only-port register-node register-with-taints registry-burst registry-qps reserved-cpus
	reserved-memory resolv-conf root-dir rotate-certificates rotate-server-certificates runonce runtime-cgroups
	runtime-request-timeout seccomp-default serialize-image-pulls stderrthreshold storage-driver-buffer-duration storage-driver-db
	storage-driver-host storage-driver-password storage-driver-secure storage-driver-table storage-driver-user
	streaming-connection-idle-timeout sync-frequency system-cgroups system-reserved system-reserved-cgroup tls-cert-file
	tls-cipher-suites tls-min-version tls-private-key-file topology-manager-policy topology-manager-policy-options
	topology-manager-scope v version vmodule volume-plugin-dir volume-stats-agg-period`)

// unknownFlags are about flags that no kubelet has. They are warnings: this list may be older than the kubelet.
func unknownFlags(args []nodeconf.Arg) (found []eviction.Finding) {
	for _, a := range args {
		name := strings.ReplaceAll(a.Name, "_", "-")
		if slices.Contains(kubeletFlags, name) {
			continue
		}
		found = append(found, eviction.Finding{
			ID: "config-unknown-flag", Severity: eviction.Warning, Subject: "--" + name,
			What: fmt.Sprintf("The kubelet has no flag --%s that is known here (%s).", name, firstText(a.File, string(a.Place))),
			Why:  "With a flag that it does not know it does not start.",
			Fix:  "Remove it" + didYouMean(name, kubeletFlags) + ".",
		})
	}
	return found
}
