package main

import (
	"fmt"
	"os"
	"strings"
)

// serverSpec says how to start a server. In the command, {dir} is an empty
// directory, {port} and {port2} are free loopback ports.
type serverSpec struct {
	name    string
	command []string
	floor   bool // does one thing only and stores nothing
	savings map[string]saving
}

// What kube-apiserver's users set, where it is not the default of both: progress
// messages every 5 s, as k3s asks for.
const (
	etcdCommand = "--name default --data-dir {dir}/etcd --log-level error --watch-progress-notify-interval 5s" +
		" --listen-client-urls http://127.0.0.1:{port} --advertise-client-urls http://127.0.0.1:{port}" +
		" --listen-peer-urls http://127.0.0.1:{port2} --initial-advertise-peer-urls http://127.0.0.1:{port2}" +
		" --initial-cluster default=http://127.0.0.1:{port2}"
	tarnCommand = "serve --data-dir {dir}/tarn --log-level error --watch-progress-notify-interval 5s" +
		" --listen-client-urls http://127.0.0.1:{port} --advertise-client-urls http://127.0.0.1:{port}"
)

// defaultServers builds what is not given and returns etcd, the base of all
// ratios, and tarn. With saves they get the commands that save their data.
func defaultServers(dir string, saves bool) ([]serverSpec, error) {
	etcd, err := findBinary(EnvEtcdBin, dir, "etcd", ".", "go.etcd.io/etcd/server/v3")
	if err != nil {
		return nil, err
	}
	tarn, err := findBinary(EnvTarnBin, dir, "tarn", "../../..", "./cmd/tarn")
	if err != nil {
		return nil, err
	}
	servers := []serverSpec{
		{name: "etcd", command: append([]string{etcd}, strings.Fields(etcdCommand)...)},
		{name: "tarn", command: append([]string{tarn}, strings.Fields(tarnCommand)...)},
	}
	if saves {
		etcdctl, err := findBinary(EnvEtcdctlBin, dir, "etcdctl", ".", "go.etcd.io/etcd/etcdctl/v3")
		if err != nil {
			return nil, err
		}
		servers[0].savings = map[string]saving{saveWithEtcdctl: etcdctlSaving(etcdctl)}
		servers[1].savings = map[string]saving{saveWithEtcdctl: etcdctlSaving(etcdctl), saveWithTarn: tarnSaving(tarn)}
	}
	return servers, nil
}

// floorSpec is this program as a floor (floor.go), with keys ready to be listed.
func floorSpec(keys, valueSize int) (serverSpec, error) {
	self, err := os.Executable()
	if err != nil {
		return serverSpec{}, fmt.Errorf("find this program, to run it as the floor: %w", err)
	}
	return serverSpec{name: "floor", floor: true, command: []string{
		self, floorArg, "127.0.0.1:{port}", "{dir}", fmt.Sprint(keys), fmt.Sprint(valueSize),
	}}, nil
}

// serverFlag collects -server name='command {dir} {port}'.
type serverFlag []serverSpec

func (f *serverFlag) String() string { return "" }

func (f *serverFlag) Set(text string) error {
	name, command, ok := strings.Cut(text, "=")
	words := strings.Fields(command)
	if !ok || name == "" || len(words) == 0 || !strings.Contains(command, "{port}") {
		return fmt.Errorf("%q is not of the form name='command {dir} {port}'", text)
	}
	for _, taken := range []string{"etcd", "tarn", "floor"} {
		if name == taken {
			return fmt.Errorf("the name %s is taken: choose another for the further server", name)
		}
	}
	for _, s := range *f {
		if s.name == name {
			return fmt.Errorf("the name %s is given twice", name)
		}
	}
	*f = append(*f, serverSpec{name: name, command: words})
	return nil
}
