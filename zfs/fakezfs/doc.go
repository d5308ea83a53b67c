// Package fakezfs is a pretended zfs and zpool for tests on machines without ZFS. It
// keeps datasets, snapshots, holds and bookmarks in a file and the content of snapshots
// in directories, and answers in the words of the real programs. What it pretends is
// held against real ZFS by the tests of package zfs, which run on both.
//
// A test binary plays the programs: its TestMain calls Main first.
package fakezfs
