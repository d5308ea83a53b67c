package etcdapi

import (
	"context"
	"log/slog"

	"github.com/tarn-kv/tarn/store"
)

// logProgress logs a progress response after it was sent. kube-apiserver asks for
// progress about once a second, hence the level; the store counts requests and answers.
func (w *watchStream) logProgress(m store.WatchMessage) {
	ctx := w.grpc.Context()
	if !w.s.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	text := "progress sent"
	if m.ID == store.ProgressID {
		text = "progress answered"
	}
	w.s.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelDebug, text,
		slog.Int64("revision", m.Revision), slog.Int64("watch_id", m.ID))
}
