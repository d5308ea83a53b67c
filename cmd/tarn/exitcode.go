package main

import (
	"errors"
)

// Exit codes. Scripts and service managers depend on them: a number never gets
// another meaning. Each command's help lists those that it uses.
const (
	exitOK     = 0
	exitFailed = 1 // what was asked for did not work
	exitUsage  = 2 // the command line, environment or configuration file is not valid

	// Of tarn serve.
	exitInUse       = 3 // another process has the data directory
	exitRefused     = 4 // the data directory is not the expected one
	exitDamaged     = 5 // the data directory is damaged
	exitStoreFailed = 6 // a write or sync failed for good while serving

	// Of tarn status.
	exitAlarm = 3 // the server answers, and has an alarm

	// Of tarn import.
	exitImportSource = 3 // the source can not be imported
	exitImportTarget = 4 // the data directory holds a store or is in use

	// Of tarn snapshot, and of commands that name a snapshot.
	exitNoSnapshot   = 3 // there is no such snapshot of tarn
	exitSnapshotKept = 4 // it is kept: held, in use, or the origin of a clone

	// Of tarn restore, beside exitNoSnapshot.
	exitRestoreInUse      = 4 // a server has the data directory
	exitRestoreSnapshot   = 5 // the snapshot is damaged or holds no store
	exitRestoreTarget     = 6 // the directory holds another store, or is not empty
	exitRestoreUnfinished = 7 // an earlier restore must be ended with --continue
	exitRestoreExists     = 8 // keys that were to be put back exist

	// Of tarn snapshot verify.
	exitSnapshotDamaged  = 1
	exitSnapshotUnproved = 4 // one could not be checked

	// Of tarn backup, beside exitNoSnapshot, which stands for a missing backup too.
	exitBackupRefused     = 4 // the target, or what it holds, is not fit: a person must decide
	exitBackupInterrupted = 5 // it broke off midway, or another is under way: running it again goes on
	exitBackupDamaged     = 6
	exitBackupNoZFS       = 7 // the data directory is not on ZFS

	// Of tarn doctor.
	exitWarnings   = 3
	exitProblems   = 4
	exitNotAllSeen = 5 // nothing was found, but not everything could be looked at

	// Of tarn check, which promises 0, 1 and 2 only.
	exitCheckDamaged = 1
	exitNotChecked   = 2
)

// exitError is an error that ends the process with a code of its own.
type exitError struct {
	code int
	err  error
	// told is set when the command's output has already said what is wrong.
	told bool
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// withExit gives err an exit code. A code that err already has is kept.
func withExit(code int, err error) error {
	var has *exitError
	if err == nil || errors.As(err, &has) {
		return err
	}
	return &exitError{code: code, err: err}
}

// exitCode is the code that the process ends with because of err.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return exitFailed
}
