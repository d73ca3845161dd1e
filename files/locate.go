package files

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/millrace-dev/millrace/stream"
)

// locator turns byte offsets of one file into numbers of lines, or of messages. It counts them, in a second pass over the file that
// begins when somebody first asks and goes on from where the last question left it: the usual run never asks.
type locator struct {
	path   string
	packed string
	rows   bool   // positions are numbers of rows
	header string // of the file, where it has one

	messages bool // records are messages with their lengths before them, not lines

	in     *bufio.Reader
	closer io.Closer
	offset int64 // of in
	line   int64 // 1-based, of offset

	// closed is set with the part. Records that are still on their way may ask later; the file is then opened and
	// closed for each question.
	closed bool
}

// Locate names the file and the line. A file that can no longer be read is named with the byte offset instead.
func (l *locator) Locate(p stream.Position) stream.Location {
	loc := stream.Location{Name: l.path, Row: p.Row, Context: l.header}
	if l.rows {
		loc.Line = p.Row + 1
		return loc
	}
	if l.path == standardInputName {
		return loc
	}
	if line, err := l.lineAt(p.Row); err == nil {
		loc.Line = line
	}
	if l.closed {
		l.release()
	}
	return loc
}

func (l *locator) lineAt(offset int64) (int64, error) {
	if l.in == nil || offset < l.offset {
		if err := l.rewind(); err != nil {
			return 0, err
		}
	}
	for l.offset < offset {
		count := l.count
		if l.messages {
			count = l.countMessage
		}
		if err := count(offset - l.offset); err != nil {
			return 0, err
		}
	}
	return l.line, nil
}

func (l *locator) rewind() error {
	l.release()
	f, err := os.Open(l.path)
	if err != nil {
		return err
	}
	in, err := unpack(f, l.packed)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.in, l.closer, l.offset, l.line = bufio.NewReaderSize(in, 64<<10), f, 0, 1
	return nil
}

// count reads at most n bytes.
func (l *locator) count(n int64) error {
	if _, err := l.in.Peek(1); err != nil {
		return err
	}
	data, err := l.in.Peek(int(min(n, int64(l.in.Buffered()))))
	if err != nil {
		return err
	}
	l.line += int64(bytes.Count(data, []byte{'\n'}))
	l.offset += int64(len(data))
	_, err = l.in.Discard(len(data))
	return err
}

// countMessage passes over one message.
func (l *locator) countMessage(int64) error {
	for shift, size := 0, uint64(0); ; shift += 7 {
		c, err := l.in.ReadByte()
		if err != nil {
			return err
		}
		l.offset++
		if size |= uint64(c&0x7f) << shift; c&0x80 != 0 {
			continue
		}
		n, err := io.CopyN(io.Discard, l.in, int64(size))
		l.offset += n
		l.line++
		return err
	}
}

func (l *locator) close() {
	l.closed = true
	l.release()
}

func (l *locator) release() {
	if l.closer != nil {
		_ = l.closer.Close() // a file that was only read from
		l.in, l.closer = nil, nil
	}
}
