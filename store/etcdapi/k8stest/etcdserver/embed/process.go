package embed

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	startTimeout = 60 * time.Second // from the start of the process to its first answer
	stopTimeout  = 30 * time.Second // from SIGTERM to the end
)

// process is one server process. Its log is beside its data.
type process struct {
	client   url.URL
	log      string
	cmd      *exec.Cmd
	asked    atomic.Bool   // the process was asked to end
	finished chan struct{} // closed when the process has ended
	err      error         // how it ended; read after finished
}

// startProcess runs the server and returns when it is ready.
func startProcess(c *Config) (*process, error) {
	bin, isEtcd, err := binary()
	if err != nil {
		return nil, err
	}
	client, err := freeURL(c)
	if err != nil {
		return nil, err
	}
	p := &process{client: client, log: filepath.Join(c.Dir, "server.log"), finished: make(chan struct{})}
	args := tarnArguments(c, client)
	if isEtcd {
		peer, err := freeURL(&Config{})
		if err != nil {
			return nil, err
		}
		args = etcdArguments(c, client, peer)
	}
	if err := p.start(bin, args); err != nil {
		return nil, fmt.Errorf("start %s: %w", bin, err)
	}
	if err := p.waitReady(c); err != nil {
		// The reason it did not start counts more than how it ends now.
		_ = p.end()
		return nil, fmt.Errorf("%s is not ready: %w", bin, err)
	}
	return p, nil
}

func (p *process) start(bin string, args []string) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.Command(bin, args...)
	p.cmd.Env = serverEnvironment()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go p.wait()
	return nil
}

// wait notes how the process ends. etcd answers SIGTERM by raising it again
// after its clean-up.
func (p *process) wait() {
	defer close(p.finished)
	err := p.cmd.Wait()
	asked := p.asked.Load()
	status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if asked && (err == nil || status.Signaled() && status.Signal() == syscall.SIGTERM) {
		return
	}
	p.err = fmt.Errorf("server ended with %s, asked to end: %t\nlog ends with:\n%s", p.cmd.ProcessState, asked, p.logTail())
}

// waitReady asks the server until it says that it is ready.
func (p *process) waitReady(c *Config) error {
	var conf *tls.Config
	if !c.ClientTLSInfo.Empty() {
		var err error
		if conf, err = c.ClientTLSInfo.ClientConfig(); err != nil {
			return err
		}
	}
	transport := &http.Transport{TLSClientConfig: conf}
	defer transport.CloseIdleConnections()
	asker := http.Client{Transport: transport, Timeout: startTimeout}
	target := p.client
	target.Path = "/readyz"
	for end := time.Now().Add(startTimeout); ; {
		resp, err := asker.Get(target.String())
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(resp.Status)
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %s: %w\nlog ends with:\n%s", startTimeout, err, p.logTail())
		}
		select {
		case <-p.finished:
			return p.err
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// end asks the process to end, waits for it and returns how it ended; nil is
// returned when it ended as asked. It may be called more than once.
func (p *process) end() error {
	p.asked.Store(true)
	// The process may have ended by itself: wait has noted how.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.finished:
		return p.err
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.finished
		return fmt.Errorf("server did not end within %s after SIGTERM\nlog ends with:\n%s", stopTimeout, p.logTail())
	}
}

// logTail returns the last 4,000 bytes of the server's log.
func (p *process) logTail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4000):])
}
