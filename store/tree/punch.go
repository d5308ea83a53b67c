package tree

import "golang.org/x/sys/unix"

// punchTail gives back the blocks behind the last page in use, which a write that ran out of
// space has filled: the log may need them to record what makes room.
// Not every file system can do it; the blocks are then used by the next write.
func (h *handle) punchTail() {
	tx, err := h.db.Begin(false)
	if err != nil {
		return
	}
	used := tx.Size()
	_ = tx.Rollback() // only fails for a transaction that has ended
	info, err := h.file.Stat()
	if err != nil || info.Size() <= used {
		return
	}
	_ = unix.Fallocate(int(h.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, used, info.Size()-used)
}
