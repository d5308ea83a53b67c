package tree

import "golang.org/x/sys/unix"

// LetGo takes the mapped pages of the file out of the process's resident memory. They stay in
// the kernel's cache, and come back one by one when they are read. It is for
// the time after a walk over the whole file, which would otherwise leave all of it resident.
func (t *Tree) LetGo() {
	tx, err := t.read()
	if err != nil {
		return
	}
	defer t.endRead(tx)
	// Only a hint: an error leaves the pages where they are.
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, tx.handle.db.Info().Data, uintptr(tx.Size()), unix.MADV_DONTNEED)
}
