package etcdapi

import (
	"crypto/sha1"
	"encoding/binary"
	"slices"
	"strings"
)

// memberID is etcd's formula: a digest of the sorted peer URLs and the cluster
// token (HDR-10). With the store's ID as the token it is the same after a
// restart, an upgrade or a move to another machine, and different for every
// store (HDR-12).
func memberID(peerURL, token string) uint64 {
	urls := strings.Split(peerURL, ",")
	slices.Sort(urls)
	h := sha1.New()
	for _, u := range urls {
		h.Write([]byte(u))
	}
	h.Write([]byte(token))
	return nonzero(binary.BigEndian.Uint64(h.Sum(nil)))
}

// clusterID is etcd's formula for a cluster of one member (HDR-11).
func clusterID(member uint64) uint64 {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], member)
	sum := sha1.Sum(b[:])
	return nonzero(binary.BigEndian.Uint64(sum[:]))
}

// nonzero keeps an ID from being 0, which means "none" in the API.
func nonzero(id uint64) uint64 {
	if id == 0 {
		return 1
	}
	return id
}
