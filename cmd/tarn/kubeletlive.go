package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

// liveKubelet is what a cluster says of one of its kubelets.
type liveKubelet struct {
	node    string
	version string
	// config is what the kubelet has in force, nil if it was not told.
	config *eviction.Config
	eviction.Live
}

// kubeNode is a node of a cluster, as far as it is needed here.
type kubeNode struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Status struct {
		NodeInfo struct {
			KubeletVersion string `json:"kubeletVersion"`
		} `json:"nodeInfo"`
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// kubeFS is a file system in the kubelet's summary.
type kubeFS struct {
	AvailableBytes *uint64 `json:"availableBytes"`
	CapacityBytes  *uint64 `json:"capacityBytes"`
	Inodes         *uint64 `json:"inodes"`
	InodesFree     *uint64 `json:"inodesFree"`
}

func (f *kubeFS) stats() *eviction.Stats {
	if f == nil {
		return nil
	}
	return &eviction.Stats{Capacity: f.CapacityBytes, Available: f.AvailableBytes, Inodes: f.Inodes, InodesFree: f.InodesFree}
}

// askKubelet asks for the configuration and the file systems of the kubelet on a node; name "" is the node
// that is this machine. What it got until an error comes with the error.
func askKubelet(ctx context.Context, c *kubeClient, name string) (*liveKubelet, error) {
	node, err := findKubeNode(ctx, c, name)
	if err != nil {
		return nil, err
	}
	l := &liveKubelet{node: node.Metadata.Name, version: node.Status.NodeInfo.KubeletVersion}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "DiskPressure" {
			l.DiskPressure = condition.Status == "True"
		}
	}
	var config struct {
		Config liveConfig `json:"kubeletconfig"`
	}
	proxy := "/api/v1/nodes/" + url.PathEscape(l.node) + "/proxy"
	configErr := c.get(ctx, proxy+"/configz", &config)
	if configErr == nil {
		l.Hard, l.MinimumReclaim = orEmpty(config.Config.Hard), orEmpty(config.Config.MinimumReclaim)
		l.config = config.Config.settings("the running kubelet on " + l.node)
	}
	var summary struct {
		Node struct {
			FS      *kubeFS `json:"fs"`
			Runtime *struct {
				ImageFS     *kubeFS `json:"imageFs"`
				ContainerFS *kubeFS `json:"containerFs"`
			} `json:"runtime"`
		} `json:"node"`
	}
	summaryErr := c.get(ctx, proxy+"/stats/summary", &summary)
	if summaryErr == nil {
		l.Summary, l.NodeFS = true, summary.Node.FS.stats()
		if r := summary.Node.Runtime; r != nil {
			l.ImageFS, l.ContainerFS = r.ImageFS.stats(), r.ContainerFS.stats()
		}
	}
	return l, errors.Join(configErr, summaryErr)
}

// liveConfig is the part of a running kubelet's configuration that matters here.
type liveConfig struct {
	Hard              map[string]string `json:"evictionHard"`
	Soft              map[string]string `json:"evictionSoft"`
	SoftGracePeriod   map[string]string `json:"evictionSoftGracePeriod"`
	MinimumReclaim    map[string]string `json:"evictionMinimumReclaim"`
	ImageGCHigh       *int              `json:"imageGCHighThresholdPercent"`
	ImageGCLow        *int              `json:"imageGCLowThresholdPercent"`
	ImageMaximumGCAge string            `json:"imageMaximumGCAge"`
}

// settings is the configuration in the form in which that of files is.
func (c *liveConfig) settings(source string) *eviction.Config {
	setting := func(value string) eviction.Setting {
		return eviction.Setting{Value: value, Origin: eviction.OriginLive, Source: source}
	}
	signals := func(values map[string]string) map[string]eviction.Setting {
		if values == nil {
			return nil
		}
		m := map[string]eviction.Setting{}
		for signal, value := range values {
			m[signal] = setting(value)
		}
		return m
	}
	percent := func(n *int) eviction.Setting {
		if n == nil {
			return eviction.Setting{}
		}
		return setting(strconv.Itoa(*n))
	}
	settings := &eviction.Config{
		Hard: signals(c.Hard), Soft: signals(c.Soft), SoftGracePeriod: signals(c.SoftGracePeriod), MinimumReclaim: signals(c.MinimumReclaim),
		ImageGCHighPercent: percent(c.ImageGCHigh), ImageGCLowPercent: percent(c.ImageGCLow),
	}
	if c.ImageMaximumGCAge != "" {
		settings.ImageMaximumGCAge = setting(c.ImageMaximumGCAge)
	}
	return settings
}

// orEmpty keeps "it has none" apart from "it was not asked".
func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// findKubeNode finds the node called name, or the one that is this machine.
func findKubeNode(ctx context.Context, c *kubeClient, name string) (*kubeNode, error) {
	if name != "" {
		var node kubeNode
		err := c.get(ctx, "/api/v1/nodes/"+url.PathEscape(name), &node)
		return &node, err
	}
	var nodes struct {
		Items []kubeNode `json:"items"`
	}
	if err := c.get(ctx, "/api/v1/nodes", &nodes); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	host = strings.ToLower(host)
	var names []string
	for _, n := range nodes.Items {
		if n.Metadata.Name == host || n.Metadata.Labels["kubernetes.io/hostname"] == host {
			return &n, nil
		}
		names = append(names, n.Metadata.Name)
	}
	return nil, fmt.Errorf("the cluster has no node called %s, as this machine is; name one with --node (%s)", host, someOf(names))
}
