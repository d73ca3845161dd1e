package stream

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Record is one value on its way from a reader to a writer, with what is known about it.
type Record[T any] struct {
	Value T

	// Time is the event time: when the thing the record tells of happened. The zero time means that the source knows
	// none.
	Time time.Time

	// At says where the record was read, for errors, dead letters and logs.
	At Position

	// Kind says what the record does to the row it describes. The zero value is Insert.
	Kind ChangeKind
}

// ChangeKind says what a record does to the row it describes.
type ChangeKind uint8

const (
	Insert       ChangeKind = iota // the row is new, or the sink does not care
	UpdateBefore                   // the row as it was before an update
	UpdateAfter                    // the row as it is after an update or an upsert
	Delete                         // the row is gone; only its key need be filled
)

func (k ChangeKind) String() string {
	switch k {
	case Insert:
		return "insert"
	case UpdateBefore:
		return "update-before"
	case UpdateAfter:
		return "update-after"
	case Delete:
		return "delete"
	}
	return "ChangeKind(" + strconv.Itoa(int(k)) + ")"
}

// Position is the place of one input row: the split it was read from and the row's own position in it. Reading the
// split from Row gives that row again.
type Position struct {
	Split string // Split.ID
	Row   int64

	// Locator turns the position into words a person can act on. It may be nil.
	Locator Locator
}

// Locator explains positions of the splits of one source.
type Locator interface {
	// Locate is called from the lane, and only when somebody asks (an error, a dead letter), so it may be slow. It
	// answers a Location with at least a Name.
	Locate(p Position) Location
}

// Location is a position in words: a file and a line, a topic and an offset, a table's stream and a row.
type Location struct {
	Name string // file, topic-partition, read stream
	Line int64  // 1-based line in a text file; 0 where lines mean nothing
	Row  int64  // the position within Name when Line is 0

	// Context is what it takes to read the record beside its bytes, where they do not stand alone: the header of a CSV file,
	// the schema of an Avro file.
	Context string
}

func (l Location) String() string {
	if l.Line > 0 {
		return l.Name + ":" + strconv.FormatInt(l.Line, 10)
	}
	return l.Name + "@" + strconv.FormatInt(l.Row, 10)
}

// Location asks the position's locator, and makes do with the split's id when there is none.
func (p Position) Location() Location {
	if p.Locator != nil {
		return p.Locator.Locate(p)
	}
	return Location{Name: p.Split, Row: p.Row}
}

func (p Position) String() string { return p.Location().String() }

// Original is implemented by record values that can give back the bytes they were read as, so that a dead letter can
// hold what came in rather than what was made of it. The bytes belong to the record; callers copy what they keep.
type Original interface {
	OriginalBytes() []byte
}

// ErrCut is found in the error of a record that could not be read whole: its original is its beginning only.
var ErrCut = errors.New("the record was not read whole")

// PositionError is an error with the place of the record it happened on.
type PositionError struct {
	At  Location
	Err error
}

func (e *PositionError) Error() string { return fmt.Sprintf("%s: %v", e.At, e.Err) }
func (e *PositionError) Unwrap() error { return e.Err }
