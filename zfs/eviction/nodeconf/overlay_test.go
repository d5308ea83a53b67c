package nodeconf

import (
	"testing"

	"github.com/tarn-kv/tarn/zfs/eviction"
)

func TestWith(t *testing.T) {
	m := machine(k3sNode(map[string]string{
		confDir + "50.conf": header + "evictionHard:\n  nodefs.available: 5Gi\n", confDir + "60.conf": header + "evictionHard:\n  imagefs.available: 6Gi\n"}))
	changed := m.With(map[string][]byte{
		confDir + "50.conf":                      nil,
		confDir + "90-a.conf":                    []byte(header + "evictionHard:\n  memory.available: 9Gi\n"),
		confDir + "95/new/x.conf":                []byte(header + "evictionHard:\n  nodefs.inodesFree: 0%\n"),
		"/etc/rancher/k3s/config.yaml.d/60.yaml": []byte("kubelet-arg+: [image-gc-high-threshold=99]\n"),
	})
	n := Read(t.Context(), changed, Options{})
	want := "imagefs.available=6Gi/drop-in memory.available=9Gi/drop-in nodefs.available=5%/default nodefs.inodesFree=0%/drop-in"
	if got := show(n.Config.Hard); got != want || n.Config.ImageGCHighPercent != (eviction.Setting{Value: "99", Origin: eviction.OriginFlag, Source: "kubelet-arg in /etc/rancher/k3s/config.yaml.d/60.yaml"}) {
		t.Errorf("got %s, %+v; notes %+v", got, n.Config.ImageGCHighPercent, n.Notes)
	}
	if got, want := show(Read(t.Context(), m, Options{}).Config.Hard), "imagefs.available=6Gi/drop-in nodefs.available=5Gi/drop-in"; got != want {
		t.Errorf("the machine itself has changed: %s", got)
	}
}
