package embed

import "net/url"

// Etcd is a running server process. Its methods may be called concurrently.
type Etcd struct {
	Server *Server
	errs   chan error
}

// Server is what a test asks of a running server.
type Server struct{ process *process }

// Cluster names the addresses of the one member.
type Cluster struct{ client url.URL }

// StartEtcd starts a server process and returns when it serves. An error with
// the end of the server's log is returned when it does not.
func StartEtcd(c *Config) (*Etcd, error) {
	p, err := startProcess(c)
	if err != nil {
		return nil, err
	}
	e := &Etcd{Server: &Server{p}, errs: make(chan error, 1)}
	go e.watch()
	return e, nil
}

// watch reports a process that ended in any other way than it was asked to.
func (e *Etcd) watch() {
	<-e.Server.process.finished
	if err := e.Server.process.err; err != nil {
		e.errs <- err
	}
	close(e.errs)
}

// Close ends the process and waits for it.
func (e *Etcd) Close() { e.Server.Stop() }

// Err returns the channel that gets an error when the process fails, and is
// closed when the process has ended.
func (e *Etcd) Err() <-chan error { return e.errs }

// ReadyNotify returns a closed channel: the server serves.
func (s *Server) ReadyNotify() <-chan struct{} {
	ready := make(chan struct{})
	close(ready)
	return ready
}

// Stop ends the process and waits for it. Err reports how it ended.
func (s *Server) Stop() { _ = s.process.end() }

// Cluster returns the one member that there is.
func (s *Server) Cluster() Cluster { return Cluster{s.process.client} }

// ClientURLs returns the address at which clients are served.
func (c Cluster) ClientURLs() []string { return []string{c.client.String()} }
