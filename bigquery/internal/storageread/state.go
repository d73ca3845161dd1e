package storageread

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

const (
	stateKind    = "RE"
	stateVersion = 1
)

// state is what an enumerator remembers.
type state struct {
	// planned is apart from pending: a plan that was handed out entirely is never made again.
	planned bool
	session string
	expires time.Time
	bytes   int64 // estimate of what there is to read; 0 when there is none
	pending []pendingSplit
}

// pendingSplit is a split nobody reads. Splits of one session share the text of its schema.
type pendingSplit struct {
	Split
	position int64
}

// splitSchema is the schema of a split and the format that it is in.
type splitSchema struct {
	arrow bool
	text  string
}

func (s Split) schema() splitSchema { return splitSchema{s.Arrow, s.Schema} }

func (s splitSchema) format() byte {
	if s.arrow {
		return formatArrow
	}
	return formatAvro
}

// encode writes each schema once: a session may have hundreds of streams, and a schema hundreds of kilobytes.
func (s *state) encode() []byte {
	b := appendHeader(nil, stateKind, stateVersion)
	if s.planned {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = appendInstant(appendText(b, s.session), s.expires)
	b = binary.AppendUvarint(b, uint64(max(0, s.bytes)))

	numbers := map[splitSchema]uint64{}
	var schemas []splitSchema
	for _, p := range s.pending {
		if _, ok := numbers[p.schema()]; !ok {
			numbers[p.schema()] = uint64(len(schemas))
			schemas = append(schemas, p.schema())
		}
	}
	b = binary.AppendUvarint(b, uint64(len(schemas)))
	for _, of := range schemas {
		b = appendText(append(b, of.format()), of.text)
	}
	b = binary.AppendUvarint(b, uint64(len(s.pending)))
	for _, p := range s.pending {
		b = binary.AppendUvarint(appendText(b, p.Stream), numbers[p.schema()])
		b = binary.AppendVarint(appendInstant(b, p.Expires), p.position)
	}
	return b
}

func decodeState(b []byte) (*state, error) {
	f := openFrame(b, stateKind, stateVersion, "the enumerator state")
	s := &state{planned: f.byte() == 1, session: f.text(), expires: f.instant(), bytes: max(0, int64(f.uvarint()))}
	var schemas []splitSchema
	for range f.uvarint() {
		schemas = append(schemas, splitSchema{f.format() == formatArrow, f.text()})
		if f.err != nil {
			return nil, f.err
		}
	}
	for range f.uvarint() {
		if err := s.decodePending(f, schemas); err != nil {
			return nil, err
		}
	}
	return s, f.close()
}

func (s *state) decodePending(f *frame, schemas []splitSchema) error {
	p := pendingSplit{Split: Split{Stream: f.text()}}
	number := f.uvarint()
	if number >= uint64(len(schemas)) {
		f.fail(fmt.Sprintf("a split of schema %d, of %d", number, len(schemas)))
		return f.err
	}
	p.Schema, p.Arrow, p.Expires, p.position = schemas[number].text, schemas[number].arrow, f.instant(), f.varint()
	s.pending = append(s.pending, p)
	if f.err != nil {
		return f.err
	}
	return checkPosition(p.Stream, p.position)
}

// returned is a split that came back from a lane.
func returned(in stream.Split) (pendingSplit, error) {
	s, err := decodeSplit(in)
	return pendingSplit{s, in.Position}, err
}
