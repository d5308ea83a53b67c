package store

// WatchRequest asks for the changes of a range from a revision on.
type WatchRequest struct {
	KeyRange
	// ID names the watch on its stream; 0 lets the stream choose.
	ID int64
	// Start is the first revision wanted; 0 means after the current one. It may
	// lie in the future.
	Start    int64
	PrevKV   bool // events carry the record before the change
	NoPut    bool // leave out puts
	NoDelete bool // leave out deletes
	Progress bool // send the revision from time to time while there is no event
	// Permit, if set, is asked when the watch begins, while nothing is published.
	// Its error is Create's.
	Permit func() error
}

// MessageKind tells what a WatchMessage is.
type MessageKind int8

const (
	// WatchCreated is the first message of a watch.
	WatchCreated MessageKind = iota
	// WatchEvents carries whole revisions, ascending.
	WatchEvents
	// WatchProgress promises that every event up to Revision was sent before.
	// ID is ProgressID if the client had asked for it, else a watch's own.
	WatchProgress
	// WatchCanceled is the last message of a watch. CompactRevision is not 0
	// if it was canceled because it fell below the compact revision.
	WatchCanceled
)

// ProgressID is the watch ID of an answer to a progress request: it is meant
// for all watches of the stream.
const ProgressID = -1

// WatchMessage is one message of a stream to its client.
type WatchMessage struct {
	Kind            MessageKind
	ID              int64
	Revision        int64 // of the response header
	CompactRevision int64
	PrevKV          bool // events are to be encoded with their previous records
	Events          []*Event
	// Framed has the events instead (List has both) if they come from the history: as a
	// WatchResponse has them, each encoded, with its previous record if PrevKV is
	// set, behind a tag and its length.
	Framed []byte

	chunk *historyChunk // whose memory Framed is
	cost  int           // bytes that it takes up in the queue
}
