package tree

import (
	"context"
	"errors"
	"strings"

	bolt "go.etcd.io/bbolt"
)

// Check looks for damage in the whole file and calls finding with a text for
// each one, in one goroutine. No finding means a good file. The error only says
// that the check itself could not be done, or that ctx ended. Apply waits meanwhile.
//
// It goes through the pages, then the records, and leaves bbolt's own check for
// the end: what would crash that one is found before, and ends the check.
func (t *Tree) Check(ctx context.Context, finding func(string)) error {
	t.write.Lock()
	defer t.write.Unlock()
	tx, err := t.read()
	if err != nil {
		return err
	}
	defer t.endRead(tx)

	found := 0
	c := checker{ctx: ctx, finding: finding}
	err = guard("check", t.opts.Path, func() error {
		if err := checkPages(ctx, tx.handle.file, func(s string) { found++; finding(s) }); err != nil || found > 0 {
			return err
		}
		return c.run(tx.Tx)
	})
	switch {
	case errors.Is(err, ErrDamaged):
		finding(err.Error())
		return nil
	case err != nil || found > 0:
		return err
	}
	return checkTree(ctx, tx.Tx, finding)
}

// checkTree runs bbolt's own check: the order of keys, pages that are
// reachable twice, or free and in use, or neither.
func checkTree(ctx context.Context, tx *bolt.Tx, finding func(string)) error {
	for err := range tx.Check() { // drained to the end: its goroutine uses tx
		if ctx.Err() == nil {
			finding("pages: " + plainFinding(err))
		}
	}
	return ctx.Err()
}

// plainFinding says what bbolt found, without how it stumbled over it.
func plainFinding(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "panic: "), assertion)
}

// assertion begins what bbolt says of a page that is not what it must be.
const assertion = "assertion failed: "
