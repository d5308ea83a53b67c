package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/tarn-kv/tarn/store"
	"github.com/tarn-kv/tarn/store/vfs"
	"github.com/tarn-kv/tarn/zfs"
)

// commandPatience is how long a snapshot waits for another command that has the data directory. It is
// a variable for tests, which need not wait as long.
var commandPatience = 30 * time.Second

// commandPause is the time between two looks at whether the other command has ended.
const commandPause = 100 * time.Millisecond

// errCommandHolds is returned while another command than a server has the data directory.
var errCommandHolds = errors.New("another command has the data directory")

// prepareInTurn is prepare that waits for other commands, such as a snapshot that is made at the same
// time: they end by themselves. On ZFS nothing has to wait for them.
func (o *snapshotCreateOptions) prepareInTurn(ctx context.Context, from zfs.Snapshots, create *zfs.CreateOptions, terminal io.Writer) (done func() error, warning, err error) {
	line := newProgressLine(terminal)
	defer line.clear()
	until := time.Now().Add(commandPatience)
	for {
		done, warning, err = o.prepare(ctx, from, create)
		busy := errors.Is(err, errCommandHolds) || errors.Is(err, store.ErrInUse) || errors.Is(err, vfs.ErrLocked)
		if !busy || !time.Now().Before(until) {
			return done, warning, err
		}
		who, _ := vfs.Locked(from.Dir())
		line.show("waiting for "+who, 0, 0)
		select {
		case <-ctx.Done():
			return done, warning, err
		case <-time.After(commandPause):
		}
	}
}
