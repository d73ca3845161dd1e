package files

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/millrace-dev/millrace/stream"
)

// messages cuts a byte stream into protobuf messages, each with its length before it as a varint (Java: writeDelimitedTo of
// MessageLite; Go: google.golang.org/protobuf/encoding/protodelim). Messages are slices of its buffer, valid until more is called.
type messages struct {
	buffer
	before int64 // where reading began
	passed int64 // messages since then
	long   *line // one that is too long and is being passed over
	left   int64 // bytes of it that are still to come
}

var (
	errMessageLength = errors.New("has no length before it that a varint of 64 bits could be")
	errHugeMessage   = errors.New("has a length before it that no message has: 2 GiB is the most")
	errCutMessage    = errors.New("is cut: the input ends within it")
)

// ready returns the next message that is in the buffer, and false when more is needed, or more says why there is none.
func (m *messages) ready() (line, bool) {
	if m.long != nil {
		if m.left > 0 {
			return line{}, false
		}
		ln := *m.long
		m.long = nil
		m.passed++
		return ln, true
	}
	size, n := m.length()
	data := m.buf[m.from:m.to]
	if n <= 0 || size > uint64(m.limit) || size > uint64(len(data)-n) {
		return line{}, false
	}
	end := n + int(size)
	ln := line{text: data[n:end:end], at: m.at, next: m.at + int64(end)}
	m.from += end
	m.at = ln.next
	m.passed++
	return ln, true
}

// length reads the length of the next message; n is how many bytes it has, 0 where more are needed, negative where there is none.
func (m *messages) length() (size uint64, n int) {
	return binary.Uvarint(m.buf[m.from:m.to])
}

// ended says that there is nothing more.
func (m *messages) ended() bool { return m.eof && m.from == m.to && m.long == nil }

// more reads once, or says what is wrong with the next message. It takes no more memory than there were bytes, whatever a length says.
func (m *messages) more() error {
	if m.long == nil {
		switch size, n := m.length(); {
		case n < 0:
			return errMessageLength
		case n > 0 && size > math.MaxInt32:
			return errHugeMessage
		case n > 0 && size > uint64(m.limit):
			m.pass(n, int64(size))
		}
	}
	if m.long != nil {
		m.take()
		if m.left == 0 {
			return nil
		}
	}
	if m.eof {
		return errCutMessage
	}
	m.makeRoom()
	return m.fill()
}

// pass begins to pass over a message that is too long, whose length has n bytes.
func (m *messages) pass(n int, size int64) {
	m.long = &line{text: []byte{}, at: m.at, next: m.at + int64(n) + size, err: m.tooLong()}
	m.left = size
	m.from += n
	m.at += int64(n)
}

// take passes over what the buffer has of a message that is too long, and keeps its beginning.
func (m *messages) take() {
	n := min(int64(m.to-m.from), m.left)
	data := m.buf[m.from : m.from+int(n)]
	m.long.text = append(m.long.text, data[:min(len(data), tooLongKept-len(m.long.text))]...)
	m.from += int(n)
	m.at += n
	m.left -= n
}

// openMessages opens a part of the format Protobuf.
func (r *reader) openMessages(o *openPart, position int64) error {
	in, name, err := o.input(r.stdin, position, position)
	if err != nil {
		return err
	}
	o.place = &locator{path: name, packed: o.Packed, messages: true}
	o.messages = &messages{buffer: buffer{r: in, buf: r.buffer(), at: position, limit: r.options.MaxRecordBytes}, before: position}
	return nil
}

// fetchMessages hands over the messages that one buffer holds.
func (r *reader) fetchMessages(ctx context.Context, b *stream.Batch[Record]) error {
	o, m := r.open, r.open.messages
	for {
		for b.Len() < r.options.FetchRecords {
			ln, ok := m.ready()
			if !ok {
				break
			}
			o.add(b, ln)
		}
		if b.Len() > 0 {
			b.Bytes = o.raw.n - o.told
			o.told = o.raw.n
			return nil
		}
		if m.ended() {
			if err := o.whole(m.at); err != nil {
				return err
			}
			return r.finish(io.EOF)
		}
		if err := o.moreMessages(ctx); err != nil {
			return err
		}
	}
}

func (o *openPart) moreMessages(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p, ok := o.raw.r.(*pump); ok {
		p.ctx = ctx
	}
	m := o.messages
	err := m.more()
	switch {
	case err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	case err == errMessageLength, err == errHugeMessage, err == errCutMessage:
		return lasting(fmt.Errorf("files source: read %s: message %s at byte %d %w: the file is damaged, or not one of protobuf messages "+
			"with their lengths before them", o.name(), o.ordinal(), m.start(), err))
	}
	return fmt.Errorf("files source: read %s, at byte %d of its contents: %w", o.name(), m.at, o.damaged(err))
}

// start is where the next message begins, or the one that is being passed over.
func (m *messages) start() int64 {
	if m.long != nil {
		return m.long.at
	}
	return m.at
}

// ordinal is the number of the next message in its file.
func (o *openPart) ordinal() string {
	m := o.messages
	if m.before == 0 {
		return strconv.FormatInt(m.passed+1, 10)
	}
	if loc := o.place.Locate(stream.Position{Split: o.id, Row: m.start()}); loc.Line > 0 {
		return strconv.FormatInt(loc.Line, 10)
	}
	return strconv.FormatInt(m.passed+1, 10) + " after the one that reading went on with"
}
