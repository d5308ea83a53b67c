package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tarn-kv/tarn/store/etcdapi"
	"github.com/tarn-kv/tarn/zfs/eviction/nodeconf"
)

// probeWait is how long one question of the probe may take, of the time for all of them.
func probeWait(timeout time.Duration) time.Duration { return timeout / 5 }

// asked is what is known of a server that is asked, to say what to do where it does not answer.
type asked struct {
	endpoint etcdapi.ListenURL
	socket   string // where an installed Tarn listens; "" if that is of no interest
	asK3s    bool   // it is asked as k3s asks it, which can not log in
}

// logOfTarn has the reason why an installed Tarn does not answer.
const logOfTarn = "journalctl -u tarn tells why; is data-dir set in /etc/tarn/tarn.yaml?"

// noAnswer reports that the first questions were not answered. err is the error of gRPC, and why what it means.
func (a asked) noAnswer(f *findings, err, why error) {
	local := isSocket(a.endpoint) || !exposed(a.endpoint)
	code := grpcstatus.Code(err)
	switch refused := errors.Is(why, syscall.ECONNREFUSED); {
	case errors.Is(why, fs.ErrPermission):
		f.unknown("answer", nodeconf.MayReadAdvice()+", or as a member of the group that the socket is for (tarn)", "%v", why)
	case isStatus(err, rpctypes.ErrGRPCUserEmpty) && a.asK3s:
		f.problem("answer", "switch the users off (etcdctl auth disable), or give k3s a certificate whose common name is a user: https:// in --endpoint, with --cacert, --cert and --key",
			"the server has users and asks who k3s is, and k3s can not log in with a name and a password")
	case isStatus(err, rpctypes.ErrGRPCUserEmpty):
		f.problem("answer", "give a user of the server with the role root, with --user or TARN_USER", "%v", why)
	case errors.Is(why, fs.ErrNotExist):
		f.problem("answer", "systemctl enable --now tarn.socket makes it, where Tarn is installed; or give the server's URL with --endpoint", "%v", why)
	case refused && isSocket(a.endpoint):
		f.problem("answer", logOfTarn+" Then systemctl restart tarn.socket", "%v", why)
	case refused && local && a.socketAnswers() && a.asK3s:
		f.problem("answer", "switch TCP on: systemctl edit tarn.socket, with ListenStream=127.0.0.1:2379 below [Socket] (a drop-in unix-only.conf takes it away); or use a k3s that takes the socket: 1.34.9, 1.35.5, 1.36.0 and later",
			"TCP is off: Tarn is at the socket %s only, and this k3s needs %s (%v)", a.socket, a.endpoint, why)
	case refused && local && a.socketAnswers():
		f.problem("answer", "name the socket: --endpoint unix://"+a.socket, "TCP is off: Tarn is at the socket %s only (%v)", a.socket, why)
	case refused && local:
		f.problem("answer", startServer, "%v", why)
	case refused:
		f.problem("answer", "start the server on that machine, or correct --endpoint", "%v", why)
	case local && (code == codes.DeadlineExceeded || code == codes.Unavailable):
		f.problem("answer", "look at the server's log: "+logOfTarn, "%v", why)
	default:
		f.problem("answer", "see what it says, and the log of the server", "%v", why)
	}
}

// socketAnswers tells whether somebody listens at the socket of an installed Tarn.
func (a asked) socketAnswers() bool { return a.socket != "" && listens(a.socket) }

func listens(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return errors.Is(err, fs.ErrPermission) // it is there, and for others
	}
	conn.Close()
	return true
}

// findServer takes another endpoint, where none was asked for and nobody listens at the default: the socket of an
// installed Tarn, or what k3s uses.
func (o *doctorOptions) findServer(ctx context.Context, f *findings) {
	if o.endpointGiven || o.connects(ctx, o.server.endpoint) {
		return
	}
	was := o.server.endpoint
	if listens(o.socket) {
		o.server.endpoint = etcdapi.ListenURL{Scheme: "unix", Addr: o.socket}
	} else {
		k3s, _, _ := nodeconf.ReadK3s(o.machine.Machine, false)
		has, given := k3s.Value("datastore-endpoint")
		u, err := etcdapi.ParseListenURL(has.Value)
		if !given || err != nil || u.Secure() || !o.connects(ctx, u) {
			return
		}
		o.server.endpoint = u
	}
	f.note("endpoint", "nobody listens at %s, so %s is looked at; --endpoint names another one", was, o.server.endpoint)
}

func (o *doctorOptions) connects(ctx context.Context, u etcdapi.ListenURL) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := dialURL(ctx, u)
	if err == nil {
		conn.Close()
	}
	return err == nil
}
