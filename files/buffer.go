package files

import (
	"errors"
	"fmt"
	"io"

	"github.com/millrace-dev/millrace/stream"
)

// ErrTooLong is found in the Err of a record that is longer than Options.MaxRecordBytes.
// It is a stream.ErrCut.
var ErrTooLong error = tooLongError{}

type tooLongError struct{}

func (tooLongError) Error() string        { return "record is too long" }
func (tooLongError) Is(target error) bool { return target == stream.ErrCut }

// tooLongKept is how much of a record that is too long is kept to recognise it by.
const tooLongKept = 4 << 10

// buffer holds the bytes of a stream that no record has been made of yet.
type buffer struct {
	r        io.Reader
	buf      []byte
	from, to int   // unread bytes are buf[from:to]
	at       int64 // position of buf[from]
	eof      bool
	limit    int // longest record
}

func (b *buffer) tooLong() error {
	return fmt.Errorf("%w: more than %d bytes; raise maxRecordBytes if it is one record", ErrTooLong, b.limit)
}

// makeRoom moves the unread bytes to the front, or doubles the buffer when they fill it.
func (b *buffer) makeRoom() {
	if b.from == 0 && b.to == len(b.buf) {
		bigger := make([]byte, 2*len(b.buf))
		copy(bigger, b.buf)
		b.buf = bigger
		return
	}
	copy(b.buf, b.buf[b.from:b.to])
	b.to -= b.from
	b.from = 0
}

// fill reads once into the room behind the unread bytes.
func (b *buffer) fill() error {
	n, err := b.r.Read(b.buf[b.to:])
	b.to += n
	if errors.Is(err, io.EOF) {
		b.eof, err = true, nil
	}
	return err
}
