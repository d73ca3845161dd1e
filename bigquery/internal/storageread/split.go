package storageread

import (
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

const (
	splitKind    = "RS"
	splitVersion = 1
)

// format of the blocks, as durable bytes call it. Numbers are never given another meaning.
const (
	formatAvro  = 1
	formatArrow = 2
)

// Split is one read stream, as a split's bytes hold it. Its position is a row of the stream.
type Split struct {
	Stream  string
	Schema  string    // Avro, or a schema message of Arrow
	Expires time.Time // end of the session's life; zero when the service did not say
	Arrow   bool
}

// at is the split as engines know it. Its id is the stream's name, which is unique and never changes.
func (s Split) at(position int64) stream.Split {
	b := appendHeader(make([]byte, 0, len(s.Stream)+len(s.Schema)+32), splitKind, splitVersion)
	b = appendText(b, s.Stream)
	b = append(b, s.schema().format())
	b = appendText(b, s.Schema)
	b = appendInstant(b, s.Expires)
	return stream.Split{ID: s.Stream, Data: b, Position: position}
}

// decodeSplit reads a split's bytes and checks its position.
func decodeSplit(in stream.Split) (Split, error) {
	f := openFrame(in.Data, splitKind, splitVersion, "a split")
	s := Split{Stream: f.text()}
	s.Arrow = f.format() == formatArrow
	s.Schema, s.Expires = f.text(), f.instant()
	if err := f.close(); err != nil {
		return Split{}, err
	}
	return s, checkPosition(s.Stream, in.Position)
}

func (f *frame) format() byte {
	b := f.byte()
	if b != formatAvro && b != formatArrow && f.err == nil {
		f.fail(fmt.Sprintf("blocks of format %d: this program reads the formats %d, Avro, and %d, Arrow", b, formatAvro, formatArrow))
	}
	return b
}

func checkPosition(name string, position int64) error {
	if position < 0 || position > stream.MaxPosition {
		return fmt.Errorf("a split of a BigQuery read: stream %s at row %d: expected a row from 0 to %d",
			name, position, int64(stream.MaxPosition))
	}
	return nil
}
