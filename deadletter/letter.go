package deadletter

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/stream"
)

// Letter is a dead letter. Its JSON form is a line of a dead-letter file.
type Letter struct {
	Time        time.Time `json:"time"` // when it was offered to the queue
	Job         string    `json:"job,omitzero"`
	Connector   string    `json:"connector"`
	Destination string    `json:"destination"` // "unresolved" for a record that could not be routed

	// File is where the record came from: a file, a topic, a read stream. Split and Position are where it begins, for the
	// source; Line is the same for people, 0 where there are no lines.
	File     string `json:"file"`
	Line     int64  `json:"line,omitzero"`
	Position int64  `json:"position"`
	Split    string `json:"split,omitzero"`

	Lane   int    `json:"lane,omitzero"` // that gave it up
	Reason string `json:"reason"`
	// Replays is how often it has been written anew and failed again.
	Replays int `json:"replays,omitzero"`

	// Context is what it takes to read the record beside its bytes: the header of a CSV file, the schema of an Avro file.
	Context string `json:"context,omitzero"`

	// At most one of these is set: the record as it came in, or, from sources that cannot give that, the encoded row.
	Record      *string `json:"record,omitempty"`        // valid UTF-8
	RecordBytes []byte  `json:"record_base64,omitempty"` // anything else
	RowBytes    []byte  `json:"row_base64,omitempty"`
	// Cut says that the record is its beginning only, since it was too long to be read.
	Cut bool `json:"cut,omitzero"`
}

// Of makes the dead letter of a record that failed. It holds what f holds, and is valid as long.
func Of(f *stream.FailedRecord, hc stream.HandlerContext, now time.Time) Letter {
	l := Letter{
		Time: now.UTC(), Job: hc.Job, Lane: hc.Lane,
		Connector: f.Connector, Destination: f.Destination, Reason: f.Reason,
		File: f.At.Name, Line: f.At.Line, Position: f.At.Row, Split: f.Split, Context: f.At.Context,
		Cut: errors.Is(f.Err, stream.ErrCut),
	}
	if f.Original != nil {
		l.SetRecord(f.Original)
	} else {
		l.RowBytes = f.Row
	}
	return l
}

// SetRecord makes record the payload.
func (l *Letter) SetRecord(record []byte) {
	l.Record, l.RecordBytes, l.RowBytes = nil, nil, nil
	if utf8.Valid(record) {
		l.Record = new(string(record))
		return
	}
	l.RecordBytes = record
}

// Kind says what a payload is.
type Kind string

const (
	None   Kind = "none"   // nothing is left of the record but where it was
	Record Kind = "record" // the bytes of the record as they were read
	Row    Kind = "row"    // the row that was made of it
)

// Payload is what there is of the record, and what it is.
func (l *Letter) Payload() (Kind, []byte) {
	switch {
	case l.Record != nil:
		return Record, []byte(*l.Record)
	case l.RecordBytes != nil:
		return Record, l.RecordBytes
	case l.RowBytes != nil:
		return Row, l.RowBytes
	}
	return None, nil
}

// Replayable says what keeps the letter from being written anew, nil if nothing does.
func (l *Letter) Replayable() error {
	switch kind, _ := l.Payload(); {
	case l.Cut:
		return errors.New("only the beginning of the record is here")
	case kind == Row:
		return errors.New("the record is not here, only the row that was made of it")
	case kind == None:
		return errors.New("the record is not here")
	}
	return nil
}

// Identity is the same for letters that are one: the same job gave up the record of the same place in its source, with the
// same contents, and it has failed as often before. A job that is started again offers what failed since its last checkpoint
// once more; when, why, and by which lane may differ then.
func (l *Letter) Identity() [16]byte {
	h := sha256.New()
	var n [8]byte
	text := func(s string) {
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	number := func(i int64) {
		binary.LittleEndian.PutUint64(n[:], uint64(i))
		h.Write(n[:])
	}
	kind, payload := l.Payload()
	text(l.Job)
	text(l.File)
	text(l.Split)
	number(l.Position)
	number(int64(l.Replays))
	text(string(kind))
	h.Write(payload)
	return [16]byte(h.Sum(nil)[:16])
}
