package tree

import (
	"bytes"
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"
)

// Keys and values of bucket auth.
var (
	authEnabled  = []byte("authEnabled")
	authRevision = []byte("authRevision")
	authOn       = []byte{1}
	authOff      = []byte{0}
)

// AuthRecord is a user or a role, encoded as authpb.User or authpb.Role.
type AuthRecord struct {
	Name  string
	Value []byte // nil in a Batch: it is removed
}

// Auth is what the tree says about users and roles.
type Auth struct {
	Enabled      bool
	Revision     uint64 // 0 if nothing was ever configured
	Users, Roles []AuthRecord
}

// Auth reads users and roles.
func (t *Tree) Auth() (a Auth, err error) {
	const op = "read users and roles of"
	err = t.each(op, bucketAuth, func(k, v []byte) (err error) {
		switch {
		case bytes.Equal(k, authEnabled):
			a.Enabled = bytes.Equal(v, authOn)
		case bytes.Equal(k, authRevision):
			a.Revision, err = number(authRevision, v)
		}
		return err
	})
	if err != nil {
		return Auth{}, err
	}
	for _, x := range []struct {
		bucket []byte
		to     *[]AuthRecord
	}{{bucketAuthUsers, &a.Users}, {bucketAuthRoles, &a.Roles}} {
		err := t.each(op, x.bucket, func(k, v []byte) error {
			*x.to = append(*x.to, AuthRecord{Name: string(k), Value: append([]byte{}, v...)})
			return nil
		})
		if err != nil {
			return Auth{}, err
		}
	}
	return a, nil
}

// auth applies changes of users and roles, in the order of the batch.
func (a *applier) auth(b *Batch) error {
	bucket := a.tx.Bucket(bucketAuth)
	if b.AuthEnabled != nil {
		v := authOff
		if *b.AuthEnabled {
			v = authOn
		}
		if err := set(bucket, authEnabled, v, &a.changed); err != nil {
			return err
		}
	}
	if b.AuthRevision != nil {
		if err := set(bucket, authRevision, binary.BigEndian.AppendUint64(nil, *b.AuthRevision), &a.changed); err != nil {
			return err
		}
	}
	if err := a.authRecords(a.tx.Bucket(bucketAuthUsers), b.AuthUsers); err != nil {
		return err
	}
	return a.authRecords(a.tx.Bucket(bucketAuthRoles), b.AuthRoles)
}

func (a *applier) authRecords(bucket *bolt.Bucket, records []AuthRecord) error {
	for _, r := range records {
		var err error
		if r.Value == nil {
			err = unset(bucket, []byte(r.Name), &a.changed)
		} else {
			err = set(bucket, []byte(r.Name), r.Value, &a.changed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkAuth finds what is wrong with a record of bucket auth.
func checkAuth(k, v []byte) error {
	switch {
	case bytes.Equal(k, authEnabled) && !bytes.Equal(v, authOn) && !bytes.Equal(v, authOff):
		return fmt.Errorf("authEnabled is neither 0 nor 1 (%x)", v)
	case bytes.Equal(k, authRevision):
		_, err := number(authRevision, v)
		return err
	}
	return nil
}

// checkNamed finds what is wrong with a user or a role as a record: its first field must
// be the name. The store looks into the others.
func checkNamed(k, v []byte) error {
	num, typ, n := protowire.ConsumeTag(v)
	if n < 0 || num != 1 || typ != protowire.BytesType {
		return fmt.Errorf("record %q does not begin with a name", k)
	}
	name, n := protowire.ConsumeBytes(v[n:])
	if n < 0 || !bytes.Equal(name, k) {
		return fmt.Errorf("record %q is of %q", k, name)
	}
	return nil
}
