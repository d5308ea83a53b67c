package etcdapi

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// newMessage makes a message of a type that is known by its descriptor.
func newMessage(d protoreflect.MessageDescriptor) proto.Message {
	typ, err := findMessage(d)
	if err != nil {
		panic(err) // the package does not start without it
	}
	return typ.New().Interface()
}

// lastSeen tells what the last watch of a stream has got. All is closed at the end of the stream.
type lastSeen struct{ created, event chan struct{} }

func (l *lastSeen) note(r *pb.WatchResponse) {
	if r.WatchId == lastWatch && r.Created {
		closeOnce(l.created)
	}
	if r.WatchId == lastWatch && (len(r.Events) > 0 || r.Canceled) {
		closeOnce(l.event)
	}
}

func (l *lastSeen) end() {
	closeOnce(l.created)
	closeOnce(l.event)
}

// closeOnce is for one goroutine at a time.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

func (c *fuzzClient) await(what <-chan struct{}, name string) {
	select {
	case <-what:
	case <-c.ctx.Done():
		c.t.Errorf("a watch does not get %s", name)
	}
}

// watch begins a stream of watches and waits until the server has handled all its requests.
func (c *fuzzClient) watch(m protoreflect.MethodDescriptor, messages [][]byte) {
	last, err := proto.Marshal(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
		CreateRequest: &pb.WatchCreateRequest{Key: lastKey, WatchId: lastWatch}}})
	if err != nil {
		c.t.Fatal(err)
	}
	w := &lastSeen{created: make(chan struct{}), event: make(chan struct{})}
	s := &fuzzStream{c: c, ctx: c.ctx, m: m, messages: append(messages, last), each: func(r proto.Message) { w.note(r.(*pb.WatchResponse)) }}
	c.watches = append(c.watches, w)
	c.streams.Go(func() {
		err := s.run()
		w.end()
		if status.Code(err) != codes.Canceled { // how end ends it
			c.wantEnd(m, err)
		}
	})
	c.await(w.created, "its last answer")
}
