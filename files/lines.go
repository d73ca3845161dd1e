package files

import (
	"bytes"
	"io"
)

// lines cuts a byte stream into records, which are lines unless their format says otherwise. Lines are slices of its buffer, valid
// until more is called.
type lines struct {
	buffer
	ender ender
}

// line is one line, or another record: its bytes without the end, its position and that of the next line.
type line struct {
	text     []byte
	at, next int64
	err      error
}

func newLines(r io.Reader, at int64, buf []byte, limit int, e ender) *lines {
	return &lines{buffer{r: r, buf: buf, at: at, limit: limit}, e}
}

// ready returns the next line that is in the buffer, and false when more is needed.
func (l *lines) ready() (line, bool) {
	data := l.buf[l.from:l.to]
	var state cellState
	n := l.ender.end(data, &state)
	if n < 0 && !(l.eof && len(data) > 0) {
		return line{}, false
	}
	end := n + 1
	if n < 0 {
		n, end = len(data), len(data)
	}
	ln := line{text: bytes.TrimSuffix(data[:n], []byte{'\r'}), at: l.at, next: l.at + int64(end)}
	if ln.at == 0 {
		ln.text = bytes.TrimPrefix(ln.text, []byte("\xef\xbb\xbf"))
	}
	l.from += end
	l.at = ln.next
	if n > l.limit {
		ln.text, ln.err = ln.text[:min(len(ln.text), tooLongKept)], l.tooLong()
	}
	return ln, true
}

// more reads until there is at least one more byte, and answers io.EOF when there is none. A line that outgrows the
// limit is answered at once, and the rest of it passed over.
func (l *lines) more() (long *line, err error) {
	if l.eof {
		return nil, io.EOF
	}
	if l.to-l.from > l.limit {
		return l.pass()
	}
	l.makeRoom()
	return nil, l.fill()
}

// pass takes the beginning of a line that is too long and passes over the rest.
func (l *lines) pass() (*line, error) {
	long := &line{text: bytes.Clone(l.buf[l.from:min(l.to, l.from+tooLongKept)]), at: l.at, err: l.tooLong()}
	err := l.skipLine()
	long.next = l.at
	return long, err
}

// skipLine passes over the rest of the line that position at is in.
func (l *lines) skipLine() error {
	var state cellState
	for {
		if n := l.ender.end(l.buf[l.from:l.to], &state); n >= 0 {
			l.from += n + 1
			l.at += int64(n + 1)
			return nil
		}
		l.at += int64(l.to - l.from)
		l.from, l.to = 0, 0
		if l.eof {
			return nil
		}
		if err := l.fill(); err != nil {
			return err
		}
	}
}
