// Command kubelettest shows what the kubelet's own code makes of the file systems of
// this machine, beside what package eviction foretells of it. Its tests hold the two
// against each other on numbers of their own. See README.md.
package main
