package etcdapi

import (
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/vfs"
)

// fullFS is a file system that others have filled.
type fullFS struct{ vfs.FS }

func (f fullFS) Usage(string) (vfs.Usage, error) { return vfs.Usage{Total: 10 << 30}, nil }

// Whoever asks how the server is hears of a full disk before the first write is refused.
func TestFullDiskIsToldWithoutAWrite(t *testing.T) {
	for name, ask := range map[string]func(t *testing.T, addr string) string{
		"Status": func(t *testing.T, addr string) string {
			st, err := pb.NewMaintenanceClient(dial(t, addr)).Status(testContext(t), &pb.StatusRequest{})
			if err != nil {
				t.Fatal(err)
			}
			return strings.Join(st.Errors, " ")
		},
		"Alarm": func(t *testing.T, addr string) string {
			resp, err := pb.NewMaintenanceClient(dial(t, addr)).Alarm(testContext(t), &pb.AlarmRequest{})
			if err != nil {
				t.Fatal(err)
			}
			return resp.String()
		},
		"health": func(t *testing.T, addr string) string {
			_, body := request(t, "GET", "http://"+addr+"/health", "")
			return body
		},
		"metrics": func(t *testing.T, addr string) string {
			_, body := request(t, "GET", "http://"+addr+"/metrics", "")
			return strings.ReplaceAll(body, "\ntarn_alarm_nospace 1\n", "\nalarm NOSPACE is on\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			st, err := store.Open(store.Options{Dir: t.TempDir(), FS: fullFS{vfs.OS}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { st.Close() })
			_, addr := startServer(t, Config{Store: st})
			if answer := ask(t, addr); !strings.Contains(answer, "NOSPACE") || name == "metrics" && !strings.Contains(answer, "alarm NOSPACE is on") {
				t.Errorf("no alarm: %s", answer)
			}
		})
	}
}
