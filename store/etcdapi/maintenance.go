package etcdapi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tarn-kv/tarn/store"
)

// maintenanceService is etcdserverpb.Maintenance.
type maintenanceService struct {
	etcdserverpb.UnimplementedMaintenanceServer
	s *Server
}

// InstanceHeader is the header of the answer to Status that has Store.Instance.
const InstanceHeader = "tarn-instance"

func (m maintenanceService) Status(ctx context.Context, _ *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	if err := m.s.requireUser(ctx); err != nil {
		return nil, err
	}
	// It fails only where there is no call to send it with.
	_ = grpc.SetHeader(ctx, metadata.Pairs(InstanceHeader, m.s.store.Instance()))
	st := m.s.store.Status()
	resp := &etcdserverpb.StatusResponse{
		Header:           m.s.header(st.Revision),
		Version:          etcdVersion,
		StorageVersion:   etcdStorageVersion,
		DbSize:           st.Size,
		DbSizeInUse:      st.InUse,
		DbSizeQuota:      st.Quota,
		Leader:           m.s.memberID,
		RaftIndex:        st.Index,
		RaftAppliedIndex: st.Index,
		RaftTerm:         m.s.term,
		DowngradeInfo:    &etcdserverpb.DowngradeInfo{},
	}
	for _, a := range m.s.store.Alarms() {
		resp.Errors = append(resp.Errors, fmt.Sprintf("memberID:%d alarm:%s", a.MemberID, alarmName(a.Type)))
	}
	return resp, nil
}

func alarmName(t store.AlarmType) string {
	return etcdserverpb.AlarmType(t).String()
}

// Alarm shows, raises or clears alarms (ALM-1 to ALM-4).
func (m maintenanceService) Alarm(ctx context.Context, r *etcdserverpb.AlarmRequest) (*etcdserverpb.AlarmResponse, error) {
	permitted := m.s.requireAdmin
	if r.Action == etcdserverpb.AlarmRequest_GET {
		permitted = m.s.requireUser
	}
	if err := permitted(ctx); err != nil {
		return nil, err
	}
	resp := &etcdserverpb.AlarmResponse{}
	alarm := store.Alarm{MemberID: r.MemberID, Type: store.AlarmType(r.Alarm)}
	var err error
	switch r.Action {
	case etcdserverpb.AlarmRequest_GET:
		resp.Alarms = m.alarms(alarm.Type)
	case etcdserverpb.AlarmRequest_ACTIVATE:
		resp.Alarms, err = m.activate(ctx, alarm)
	case etcdserverpb.AlarmRequest_DEACTIVATE:
		resp.Alarms, err = m.deactivate(ctx, alarm)
	default:
		err = errUnknownAlarmAction // etcd stops with a panic here (V-1)
	}
	if err != nil {
		return nil, toStatus(err)
	}
	resp.Header = m.s.currentHeader()
	return resp, nil
}

// alarms are the active ones of a type; type 0 means all.
func (m maintenanceService) alarms(t store.AlarmType) []*etcdserverpb.AlarmMember {
	var out []*etcdserverpb.AlarmMember
	for _, a := range m.s.store.Alarms() {
		if t == 0 || a.Type == t {
			out = append(out, alarmMember(a))
		}
	}
	return out
}

func (m maintenanceService) activate(ctx context.Context, a store.Alarm) ([]*etcdserverpb.AlarmMember, error) {
	switch a.Type {
	case 0:
		return nil, nil
	case store.NoSpace, store.Corrupt:
	default:
		return nil, errUnknownAlarmType
	}
	if err := m.s.store.AlarmActivate(ctx, a); err != nil {
		return nil, err
	}
	m.s.log.Warn("an alarm was raised by a client", "alarm", alarmName(a.Type), "member", a.MemberID)
	return []*etcdserverpb.AlarmMember{alarmMember(a)}, nil
}

func (m maintenanceService) deactivate(ctx context.Context, a store.Alarm) ([]*etcdserverpb.AlarmMember, error) {
	was, err := m.s.store.AlarmDeactivate(ctx, a)
	if err != nil || !was {
		return nil, err
	}
	m.s.log.Info("an alarm was cleared by a client", "alarm", alarmName(a.Type), "member", a.MemberID)
	return []*etcdserverpb.AlarmMember{alarmMember(a)}, nil
}

func alarmMember(a store.Alarm) *etcdserverpb.AlarmMember {
	return &etcdserverpb.AlarmMember{MemberID: a.MemberID, Alarm: etcdserverpb.AlarmType(a.Type)}
}

func (m maintenanceService) Defragment(ctx context.Context, _ *etcdserverpb.DefragmentRequest) (*etcdserverpb.DefragmentResponse, error) {
	if err := m.s.requireAdmin(ctx); err != nil {
		return nil, err
	}
	d := m.s.cfg.Durations
	d.defragmenting.Add(1)
	defer d.defragmenting.Add(-1)
	start := time.Now()
	if err := m.s.store.Defragment(ctx); err != nil {
		return nil, toStatus(err)
	}
	d.defragment.Observe(time.Since(start).Seconds())
	return &etcdserverpb.DefragmentResponse{}, nil // without a header (HDR-5)
}

func (m maintenanceService) Hash(ctx context.Context, _ *etcdserverpb.HashRequest) (*etcdserverpb.HashResponse, error) {
	if err := m.s.requireAdmin(ctx); err != nil {
		return nil, err
	}
	hash, revision, err := m.s.store.Hash(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	return &etcdserverpb.HashResponse{Header: m.s.header(revision), Hash: hash}, nil
}

// HashKV hashes the key space at a revision; below 0 is as 0 (V-8).
func (m maintenanceService) HashKV(ctx context.Context, r *etcdserverpb.HashKVRequest) (*etcdserverpb.HashKVResponse, error) {
	if err := m.s.requireAdmin(ctx); err != nil {
		return nil, err
	}
	res, err := m.s.store.HashKV(ctx, max(r.Revision, 0))
	if err != nil {
		return nil, toStatus(err)
	}
	return &etcdserverpb.HashKVResponse{
		Header:          m.s.header(res.Revision),
		Hash:            res.Hash,
		HashRevision:    res.HashRevision,
		CompactRevision: res.CompactRevision,
	}, nil
}

// MoveLeader accepts the only member there is (MNT-10, MNT-11).
func (m maintenanceService) MoveLeader(ctx context.Context, r *etcdserverpb.MoveLeaderRequest) (*etcdserverpb.MoveLeaderResponse, error) {
	if err := m.s.requireAdmin(ctx); err != nil {
		return nil, err
	}
	if r.TargetID != m.s.memberID {
		return nil, rpctypes.ErrGRPCBadLeaderTransferee
	}
	return &etcdserverpb.MoveLeaderResponse{}, nil
}

// Downgrade validates as etcd does, and starts nothing: the way to an older etcd
// is a snapshot (MNT-12 to MNT-15).
func (m maintenanceService) Downgrade(ctx context.Context, r *etcdserverpb.DowngradeRequest) (*etcdserverpb.DowngradeResponse, error) {
	if err := m.s.requireAdmin(ctx); err != nil {
		return nil, err
	}
	switch r.Action {
	case etcdserverpb.DowngradeRequest_CANCEL:
	case etcdserverpb.DowngradeRequest_VALIDATE:
		if err := checkDowngrade(r.Version); err != nil {
			return nil, err
		}
	case etcdserverpb.DowngradeRequest_ENABLE:
		return nil, rpctypes.ErrGRPCInvalidDowngradeTargetVersion
	default:
		return nil, errUnknownMethod
	}
	return &etcdserverpb.DowngradeResponse{Header: m.s.currentHeader(), Version: etcdClusterMinor}, nil
}

func checkDowngrade(version string) error {
	major, minor, err := parseMinor(version)
	if err != nil {
		return rpctypes.ErrGRPCWrongDowngradeVersionFormat
	}
	if major != etcdMajor || minor != etcdDownMinor {
		return rpctypes.ErrGRPCInvalidDowngradeTargetVersion
	}
	return nil
}

// parseMinor reads x.y or x.y.z.
func parseMinor(version string) (major, minor uint64, err error) {
	parts := strings.Split(version, ".")
	if len(parts) != 2 && len(parts) != 3 {
		return 0, 0, errors.New("not x.y or x.y.z")
	}
	var n [3]uint64
	for i, p := range parts {
		if n[i], err = strconv.ParseUint(p, 10, 32); err != nil {
			return 0, 0, err
		}
	}
	return n[0], n[1], nil
}
