package filequeue

import (
	"bufio"
	"encoding"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"

	"github.com/millrace-dev/millrace/deadletter"
)

// maxLineBytes is the longest line that is read: a record of 64 MiB, the longest that files are read with unless told otherwise,
// all of whose bytes are escaped to six.
const maxLineBytes = 512 << 20

var (
	// ErrTorn is the Err of a last line without its end: the process that wrote it was killed, or is writing it now.
	ErrTorn = errors.New("the last line has no end: whoever wrote it was killed, or is writing it")
	// ErrLineTooLong is found in the Err of a line that is passed over, since no letter is that long.
	ErrLineTooLong = fmt.Errorf("%w: more than %d bytes", deadletter.ErrNoLetter, maxLineBytes)
)

// Entry is a line of a file.
type Entry struct {
	Letter   deadletter.Letter
	Line     int64 // from 1
	At, Next int64 // where it begins, and the next one

	// Err says that the line is no letter: ErrTorn, or an error that wraps deadletter.ErrNoLetter.
	Err error
}

// Read reads the lines of a file, from its beginning. The error is that of reading the file, and ends it.
func Read(path string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(Entry{}, fmt.Errorf("dead letters: %w", err))
			return
		}
		defer f.Close()
		l := lines{in: bufio.NewReaderSize(f, 64<<10)}
		for {
			e, err := l.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Entry{}, fmt.Errorf("dead letters: read %s: %w", path, err))
				return
			}
			if !e.blank() && !yield(e.entry(), nil) {
				return
			}
		}
	}
}

// lines cuts a file into lines. It holds one.
type lines struct {
	in   *bufio.Reader
	line int64 // number of the one before
	at   int64
	long []byte // of a line that is longer than the buffer of in

	hash hash.Hash // of all lines that have an end; may be nil
	was  []byte    // state of hash before a long line
}

// rawLine is a line, valid until the next one.
type rawLine struct {
	text     []byte // without its end
	number   int64
	at, next int64
	torn     bool
	tooLong  bool
}

func (r *rawLine) blank() bool { return len(r.text) == 0 && !r.tooLong }

// next answers io.EOF behind the last line, and stays before one that is torn.
func (l *lines) next() (rawLine, error) {
	l.long = l.long[:0]
	r := rawLine{number: l.line + 1, at: l.at, next: l.at}
	for {
		part, err := l.in.ReadSlice('\n')
		r.next += int64(len(part))
		switch {
		case errors.Is(err, io.EOF) && r.next == r.at:
			return r, io.EOF
		case errors.Is(err, io.EOF):
			r.torn, r.text = true, part
			return r, l.unhash()
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return r, err
		}
		if err := l.take(&r, part, err == nil); err != nil {
			return r, err
		}
		if err == nil {
			l.line, l.at = r.number, r.next
			return r, nil
		}
	}
}

// take adds a part to a line.
func (l *lines) take(r *rawLine, part []byte, last bool) error {
	first := r.next == r.at+int64(len(part))
	if l.hash != nil {
		if first && !last {
			var err error
			if l.was, err = l.hash.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
				return err
			}
		}
		_, _ = l.hash.Write(part) // hashes do not fail
	}
	if first && last {
		r.text = part[:len(part)-1]
		return nil
	}
	if r.tooLong = r.tooLong || len(l.long)+len(part) > maxLineBytes; r.tooLong {
		l.long, r.text = nil, nil
		return nil
	}
	l.long = append(l.long, part...)
	if last {
		r.text = l.long[:len(l.long)-1]
	}
	return nil
}

// unhash takes the beginning of a torn line back.
func (l *lines) unhash() error {
	if l.hash == nil || l.was == nil {
		return nil
	}
	return l.hash.(encoding.BinaryUnmarshaler).UnmarshalBinary(l.was)
}

func (r *rawLine) entry() Entry {
	e := Entry{Line: r.number, At: r.at, Next: r.next}
	switch {
	case r.torn:
		e.Err = ErrTorn
	case r.tooLong:
		e.Err = ErrLineTooLong
	default:
		e.Letter, e.Err = deadletter.ParseLine(r.text)
	}
	return e
}
