// Package harness runs the kubelet's own code on given numbers: its decoder and
// validation of a KubeletConfiguration, its parser of thresholds, its eviction manager
// and its collection of images. It compiles with Kubernetes 1.35 to 1.37.
package harness
