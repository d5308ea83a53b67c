package main

import (
	"context"
	"errors"

	"github.com/tarn-kv/tarn/store/vfs"
)

// judgeOwner looks whether the server that answers is the one that has the data directory. That one does not
// answer is said elsewhere.
func (o *doctorOptions) judgeOwner(ctx context.Context, f *findings) {
	holder, running := vfs.HolderOf(o.dataDir)
	if !running {
		return // it is on another machine, not running, or not readable
	}
	c, err := o.server.dial()
	if err != nil {
		return
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, probeWait(o.timeout))
	defer cancel()
	if ctx, err = o.server.login(ctx, c); err != nil {
		return
	}
	facts, err := c.askFacts(ctx, holder)
	switch {
	case errors.Is(err, errOtherServer):
		f.warning("owner", "name the right one with --endpoint, or the right directory with --data-dir",
			"the server at %s is not the one that has %s, which is %s", o.server.endpoint, o.dataDir, holder.Who)
	case err == nil && facts.compared:
		f.ok("owner", "the server at %s has %s", o.server.endpoint, o.dataDir)
	}
}
