package wal

// Append is AppendFrame for a payload by itself.
func (l *Log) Append(payload []byte) (seq uint64, err error) {
	return l.AppendFrame(append(make([]byte, FrameHeader), payload...))
}
