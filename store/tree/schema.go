package tree

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tarn-kv/tarn/store/protofield"
)

// Buckets of etcd, and one of our own that etcd and its tools leave alone.
var (
	bucketKey            = []byte("key")
	bucketMeta           = []byte("meta")
	bucketLease          = []byte("lease")
	bucketAlarm          = []byte("alarm")
	bucketMembers        = []byte("members")
	bucketMembersRemoved = []byte("members_removed")
	bucketCluster        = []byte("cluster")
	bucketAuth           = []byte("auth")
	bucketAuthUsers      = []byte("authUsers")
	bucketAuthRoles      = []byte("authRoles")
	bucketPrivate        = []byte("tarn")

	allBuckets = [][]byte{bucketKey, bucketMeta, bucketLease, bucketAlarm, bucketMembers, bucketMembersRemoved,
		bucketCluster, bucketAuth, bucketAuthUsers, bucketAuthRoles, bucketPrivate}
)

// Keys of bucket meta, cluster and tarn.
var (
	metaIndex            = []byte("consistent_index")
	metaTerm             = []byte("term")
	metaConfState        = []byte("confState")
	metaScheduledCompact = []byte("scheduledCompactRev")
	metaFinishedCompact  = []byte("finishedCompactRev")
	metaStorageVersion   = []byte("storageVersion")
	clusterVersion       = []byte("clusterVersion")
	privateStoreID       = []byte("store_id")
	ownAlarm             = []byte("own") // value in bucket alarm
)

// schemaVersion is the version of etcd's schema that is written.
const schemaVersion = "3.7.0"

// maxLeaseTTL is etcd's limit, in seconds: what is more has no meaning as a duration.
const maxLeaseTTL = 9_000_000_000

// LeaseRecord is one lease as it is kept: times in seconds; Remaining is 0 if
// no checkpoint of the time left was made.
type LeaseRecord struct{ ID, TTL, Remaining int64 }

// AlarmRecord is one active alarm; Type has etcd's numbers (1 no space, 2
// corrupt).
type AlarmRecord struct {
	MemberID uint64
	Type     int32
	// Own marks an alarm that the store raised itself. etcd's tools look only
	// at the key, so the mark lies in the value.
	Own bool
}

func (a AlarmRecord) value() []byte {
	if a.Own {
		return ownAlarm
	}
	return []byte{}
}

// MemberRecord is the one member of the cluster, in etcd's JSON form.
type MemberRecord struct {
	ID         uint64   `json:"id"`
	PeerURLs   []string `json:"peerURLs"`
	Name       string   `json:"name,omitempty"`
	ClientURLs []string `json:"clientURLs,omitempty"`
}

func (m MemberRecord) key() []byte { return strconv.AppendUint(nil, m.ID, 16) }

func (m MemberRecord) confState() []byte {
	return fmt.Appendf(nil, `{"voters":[%d],"auto_leave":false}`, m.ID)
}

func decodeMember(k, v []byte) (m MemberRecord, err error) {
	if err := json.Unmarshal(v, &m); err != nil {
		return m, fmt.Errorf("member %q: %w", k, err)
	}
	if !bytes.Equal(k, m.key()) {
		return m, fmt.Errorf("member %q: the record has id %x", k, m.ID)
	}
	return m, nil
}

func leaseKey(id int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

func (l LeaseRecord) encode() []byte {
	var b []byte
	for i, v := range []int64{l.ID, l.TTL, l.Remaining} {
		b = appendVarintField(b, varintTag(i+1), v)
	}
	return b
}

func decodeLease(k, v []byte) (l LeaseRecord, err error) {
	if len(k) != 8 {
		return l, fmt.Errorf("lease %x: the key has %d bytes instead of 8", k, len(k))
	}
	err = protofield.Each(v, func(num protowire.Number, _ []byte, n uint64) error {
		switch num {
		case 1:
			l.ID = int64(n)
		case 2:
			l.TTL = int64(n)
		case 3:
			l.Remaining = int64(n)
		}
		return nil
	})
	if err != nil {
		return l, fmt.Errorf("lease %x: %w", k, err)
	}
	switch id := int64(binary.BigEndian.Uint64(k)); {
	case id != l.ID:
		return l, fmt.Errorf("lease %x: the record has id %x", k, uint64(l.ID))
	case id == 0 || l.TTL < 1 || l.TTL > maxLeaseTTL:
		return l, fmt.Errorf("lease %x: it can not have a TTL of %d s", k, l.TTL)
	}
	return l, nil
}

func (a AlarmRecord) key() []byte {
	b := appendVarintField(nil, varintTag(1), int64(a.MemberID))
	return appendVarintField(b, varintTag(2), int64(a.Type))
}

func decodeAlarm(k []byte) (a AlarmRecord, err error) {
	err = protofield.Each(k, func(num protowire.Number, _ []byte, n uint64) error {
		switch num {
		case 1:
			a.MemberID = n
		case 2:
			a.Type = int32(n)
		}
		return nil
	})
	switch {
	case err != nil:
		return a, fmt.Errorf("alarm %x: %w", k, err)
	case a.Type < 1:
		return a, fmt.Errorf("alarm %x is of no type", k)
	case !bytes.Equal(k, a.key()): // it could not be found again by what it says
		return a, fmt.Errorf("alarm %x has another form than %x", k, a.key())
	}
	return a, nil
}

// number reads 8 bytes of big endian; absent is 0.
func number(what, v []byte) (uint64, error) {
	if v == nil {
		return 0, nil
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("meta %s has %d bytes instead of 8", what, len(v))
	}
	return binary.BigEndian.Uint64(v), nil
}

// compactRevision reads a revision of bucket meta; absent is -1.
func compactRevision(what, v []byte) (int64, error) {
	if v == nil {
		return -1, nil
	}
	r, dead, ok := ParseKey(v)
	if !ok || dead || r.Main < 0 || r.Main > maxMain {
		return 0, fmt.Errorf("meta %s is not a revision (%x)", what, v)
	}
	return r.Main, nil
}
