// Package eviction tells what a kubelet makes of the file systems of a node with
// ZFS, and which eviction thresholds protect that node.
//
// The kubelet evicts pods and removes images when a disk gets full. On ZFS it is
// wrong about how large the disk is, in ways that depend on its version. Examine
// works out what it computes, at how many free bytes each threshold really fires
// and which lines it logs, says in words what is wrong, and plans thresholds in
// bytes, which do not depend on what the kubelet thinks of the size.
//
// Find and Gather read a machine; all else is computed from the structs they fill.
package eviction
