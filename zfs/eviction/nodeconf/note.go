package nodeconf

// NoteKind is what a Note is about. The words are stable.
type NoteKind string

const (
	// Unreadable is something that can not be read, so that the answer may be wrong.
	Unreadable NoteKind = "unreadable"
	// Refused is a file or value with which the kubelet or k3s does not start.
	Refused NoteKind = "refused"
	// Ignored is a file that looks like configuration and that nothing reads.
	Ignored NoteKind = "ignored"
	// Dropped is a setting in one file that another one takes away.
	Dropped NoteKind = "dropped"
	// Leftover is a file that stays in force although nothing asks for it any more.
	Leftover NoteKind = "leftover"
	// NoEffect is a setting that does nothing where it is.
	NoEffect NoteKind = "no-effect"
	// Ambiguous tells that more than one kubelet seems to be installed.
	Ambiguous NoteKind = "ambiguous"
	// NotFound tells that no configuration was recognised.
	NotFound NoteKind = "not-found"
)

// Note is something about the configuration that a person should know.
type Note struct {
	Kind NoteKind `json:"kind"`
	File string   `json:"file"` // absolute; "" if it is about none
	Key  string   `json:"key"`  // the setting that it is about; "" if it is about the whole file
	Text string   `json:"text"` // the reason, as half a sentence
	Fix  string   `json:"fix"`  // what to do
}
