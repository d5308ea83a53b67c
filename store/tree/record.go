package tree

import (
	"errors"
	"fmt"
	"math"
)

// maxMain is the largest main revision that a file can have: far from what can be counted to, with
// room to go on.
const maxMain = math.MaxInt64 - 1<<32

// CheckRecord tells what is wrong with a record of bucket "key" by itself, or nil. kv is
// what its value says, which has size bytes. An empty value is right: it marks a
// revision that was moved forward (DSK-17).
func CheckRecord(rev Revision, dead bool, kv KV, size int) error {
	fresh := kv.Create == rev.Main // created by this transaction, perhaps by an earlier change of it
	switch {
	case rev.Main < 1 || rev.Sub < 0:
		return errors.New("revisions start at 1")
	case rev.Main > maxMain || rev.Sub > math.MaxInt32 || size > math.MaxInt32:
		return fmt.Errorf("with %d bytes, it is too large", size)
	case size == 0:
		return nil
	case len(kv.Key) == 0:
		return errors.New("it has no key")
	case dead:
		if size != KVSize(len(kv.Key), 0, 0, 0, 0, 0) {
			return fmt.Errorf("a tombstone of %q has more than a key", kv.Key)
		}
	case kv.Mod != rev.Main:
		return fmt.Errorf("mod_revision of %q is %d", kv.Key, kv.Mod)
	case kv.Version < 1 || kv.Create < 1 || kv.Create > rev.Main || kv.Version == 1 && !fresh || kv.Version > 1 && fresh && rev.Sub == 0:
		return fmt.Errorf("%q can not have version %d and create_revision %d", kv.Key, kv.Version, kv.Create)
	}
	return nil
}
