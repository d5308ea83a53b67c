package main

import (
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// listed is what a list brought.
type listed struct {
	keys  int   // KeyValues
	bytes int64 // of all messages
	count int64 // as the server says
	more  bool
}

// listCounter counts the keys of RangeResponses, or of RangeStreamResponses, while their
// bytes pass. It keeps nothing but the few bytes of a tag or a length that is cut.
type listCounter struct {
	stream bool
	listed

	cut    []byte // what came and can not be understood yet
	left   int    // bytes of the message under way
	skip   int    // of those, bytes that do not matter
	nested bool   // inside of the RangeResponse of a RangeStreamResponse
}

// messagePrefix is gRPC's: whether the message is compressed, and its length.
const messagePrefix = 5

func (c *listCounter) Write(b []byte) (int, error) {
	n := len(b)
	if len(c.cut) > 0 {
		b = append(c.cut, b...)
	}
	for len(b) > 0 {
		used, err := c.step(b)
		if err != nil {
			return 0, err
		}
		if used == 0 {
			break
		}
		b = b[used:]
	}
	c.cut = append([]byte(nil), b...)
	return n, nil
}

// step takes the next thing off b: 0 bytes if b ends before it does.
func (c *listCounter) step(b []byte) (int, error) {
	switch {
	case c.left == 0:
		if len(b) < messagePrefix {
			return 0, nil
		}
		if b[0] != 0 {
			return 0, fmt.Errorf("the answer is compressed")
		}
		c.left = int(binary.BigEndian.Uint32(b[1:]))
		c.bytes += int64(c.left)
		c.nested = false
		return messagePrefix, nil
	case c.skip > 0:
		n := min(c.skip, len(b))
		c.skip -= n
		c.left -= n
		return n, nil
	}
	n, err := c.takeField(b)
	c.left -= n
	if c.left < c.skip {
		err = fmt.Errorf("a field is longer than its message")
	}
	return n, err
}

// Field numbers: of RangeStreamResponse, and of RangeResponse.
const (
	streamResponse = 1
	rangeKV        = 2
	rangeMore      = 3
	rangeCount     = 4
)

// takeField takes a tag and what follows it, but for the contents of bytes, which are
// to be skipped.
func (c *listCounter) takeField(b []byte) (int, error) {
	b = b[:min(len(b), c.left)]
	tag, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return 0, tooShort(n, len(b), c.left)
	}
	num, kind := protowire.DecodeTag(tag)
	value, m := protowire.ConsumeVarint(b[n:])
	if m < 0 {
		return 0, tooShort(m, len(b), c.left)
	}
	switch {
	case kind == protowire.BytesType && c.stream && !c.nested && num == streamResponse:
		c.nested = true
	case kind == protowire.BytesType:
		c.skip = int(value)
		if num == rangeKV {
			c.keys++
		}
	case kind != protowire.VarintType:
		return 0, fmt.Errorf("a field of kind %d in the answer", kind)
	case num == rangeMore:
		c.more = value == 1
	case num == rangeCount:
		c.count = int64(value)
	}
	return n + m, nil
}

// tooShort returns the error for a number that can not be read: none if the rest of
// it may still come.
func tooShort(n, have, left int) error {
	if err := protowire.ParseError(n); err != io.ErrUnexpectedEOF || have >= left {
		return fmt.Errorf("the answer is malformed: %w", err)
	}
	return nil
}

// end tells whether the last message was whole.
func (c *listCounter) end() error {
	if c.left > 0 || len(c.cut) > 0 {
		return fmt.Errorf("the answer ends %d bytes early", c.left)
	}
	return nil
}
