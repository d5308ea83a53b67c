package store

import "github.com/tarn-kv/tarn/store/tree"

// Revision names one change: Main is the transaction's revision, Sub its
// position among the transaction's changes, from 0.
type Revision = tree.Revision
