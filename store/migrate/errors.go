package migrate

import "errors"

var (
	// ErrSource is returned when the file can not be imported: it is damaged, was cut off, or is of
	// a version that is not known. Nothing was written.
	ErrSource = errors.New("not a snapshot that can be imported")

	// ErrTarget is returned when the data directory can not take an import: it holds a store, or is
	// in use. Nothing was written.
	ErrTarget = errors.New("the data directory can not take the import")
)
