package rowtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Format is a serializer under test with the records to test it with.
type Format[T any] struct {
	// New makes a serializer. It is called several times.
	New         func() (row.Serializer[T], error)
	Destination table.Destination
	// Cases should hold every column type the format has, a row whose columns are all NULL, and every error.
	Cases []Case[T]
	// Scribble overwrites all memory that a record refers to. nil says that records refer to none.
	Scribble func(T)
}

// Case is a record and what becomes of it: Values, Err, or Skip.
type Case[T any] struct {
	Name   string
	Record func() T // makes the record anew, for it is scribbled over

	Values []row.Value // one for each column of the schema
	Err    *row.Error  // kind and path are compared; the offset where it is above 0
	Skip   bool
}

// The names of the checks, as Problem.Check has them.
const (
	CheckSetup      = "setup"      // the serializer cannot be made or asked for its schema
	CheckDescriptor = "descriptor" // the descriptor does not stand alone, or does not fit the schema
	CheckValues     = "values"     // the bytes do not decode to the values expected
	CheckAppend     = "append"     // what was in the buffer did not stay, or changed what was appended
	CheckAlias      = "alias"      // the row changes with the record's memory or the next row, or the record was changed (SER-4)
	CheckSkip       = "skip"       // a record was skipped and should not have been, or the reverse (SER-1, SER-2)
	CheckError      = "error"      // an error was expected and did not come, or is another one
	CheckStable     = "stable"     // schema, descriptor, fingerprint or row differ when asked for again
	CheckConcurrent = "concurrent" // goroutines that share the serializer get other rows (SER-6)
)

// Problem is one way in which a serializer breaks its promise.
type Problem struct {
	Check string
	Case  string // "" when it is about no case
	Msg   string
}

func (p Problem) String() string {
	if p.Case == "" {
		return p.Check + ": " + p.Msg
	}
	return p.Check + ": " + p.Case + ": " + p.Msg
}

// Test runs all checks and fails t for every problem. Run it with the race detector, too.
func Test[T any](t *testing.T, f Format[T]) {
	t.Helper()
	for _, p := range Run(f) {
		t.Error(p)
	}
}

// Run runs all checks.
func Run[T any](f Format[T]) []Problem {
	s := &suite[T]{Format: f}
	if s.setup() && s.descriptor() {
		for _, c := range f.Cases {
			s.check(c)
		}
		s.stable()
		s.concurrent()
	}
	return s.problems
}

type suite[T any] struct {
	Format[T]
	problems   []Problem
	serializer row.Serializer[T]
	schema     *table.Schema
	message    *descriptorpb.DescriptorProto
	built      protoreflect.MessageDescriptor // of message
	print      uint64
}

func (s *suite[T]) problem(check, name, format string, args ...any) {
	s.problems = append(s.problems, Problem{check, name, fmt.Sprintf(format, args...)})
}

func (s *suite[T]) setup() bool {
	var err error
	if s.serializer, err = s.New(); err != nil {
		s.problem(CheckSetup, "", "New: %v", err)
		return false
	}
	if s.schema, err = s.serializer.Schema(s.Destination); err != nil {
		s.problem(CheckSetup, "", "Schema: %v", err)
		return false
	}
	if s.message, err = s.serializer.Descriptor(s.Destination); err != nil {
		s.problem(CheckSetup, "", "Descriptor: %v", err)
		return false
	}
	s.print = s.serializer.Fingerprint(s.Destination)
	return true
}

func (s *suite[T]) append(buf []byte, rec T) ([]byte, error) {
	return s.serializer.AppendRow(buf, s.Destination, rec)
}

func (s *suite[T]) check(c Case[T]) {
	got, err := s.append(nil, c.Record())
	switch {
	case c.Skip != errors.Is(err, row.ErrSkip):
		s.problem(CheckSkip, c.Name, "skipped: %v, want %v (error: %v)", !c.Skip, c.Skip, err)
	case c.Skip:
	case c.Err != nil || err != nil:
		s.checkError(c, err)
	default:
		s.values(c, got)
		s.appends(c, got)
		s.alias(c, got)
		s.keeps(c)
	}
}

func (s *suite[T]) checkError(c Case[T], err error) {
	if c.Err == nil {
		s.problem(CheckError, c.Name, "%v, want a row", err)
		return
	}
	var e *row.Error
	if !errors.As(err, &e) {
		s.problem(CheckError, c.Name, "%v, want a *row.Error of kind %s", err, c.Err.Kind)
		return
	}
	if e.Kind != c.Err.Kind || e.Path != c.Err.Path || c.Err.Offset > 0 && e.Offset != c.Err.Offset {
		s.problem(CheckError, c.Name, "%s at %q, byte %d, want %s at %q, byte %d", e.Kind, e.Path, e.Offset, c.Err.Kind, c.Err.Path, c.Err.Offset)
	}
}

func (s *suite[T]) values(c Case[T], data []byte) {
	got, err := decode(s.built, s.schema.Fields, data)
	if err != nil {
		s.problem(CheckValues, c.Name, "%x does not decode: %v", data, err)
		return
	}
	if diff := difference(c.Values, got, s.schema.Fields, ""); diff != "" {
		s.problem(CheckValues, c.Name, "%s", diff)
	}
}

// appends checks that a buffer's content stays and means nothing, whatever its capacity, and that nothing is written
// behind the row.
func (s *suite[T]) appends(c Case[T], want []byte) {
	const prefix = "what was there before"
	for _, spare := range []int{0, 1, len(want), len(want) + 64} {
		room := bytes.Repeat([]byte{0xaa}, len(prefix)+spare)
		buf := append(room[:0:len(room)], prefix...)
		got, err := s.append(buf, c.Record())
		if err != nil || !bytes.Equal(got, append([]byte(prefix), want...)) {
			s.problem(CheckAppend, c.Name, "%x, %v behind %q with %d bytes to spare, want %x", got, err, prefix, spare, want)
		}
		if string(room[:len(prefix)]) != prefix {
			s.problem(CheckAppend, c.Name, "the buffer's own bytes were changed")
		}
	}
}

func (s *suite[T]) alias(c Case[T], want []byte) {
	if s.Scribble == nil {
		return
	}
	rec := c.Record()
	got, err := s.append(make([]byte, 0, len(want)+64), rec)
	if err != nil {
		s.problem(CheckStable, c.Name, "the second time: %v", err)
		return
	}
	// Whoever gets the row may change it; the record must not notice.
	kept := slices.Clone(got)
	clear(got)
	if again, err := s.append(nil, rec); err != nil || !bytes.Equal(again, want) {
		s.problem(CheckAlias, c.Name, "the record makes another row once its first row was overwritten: %x, %v, want %x", again, err, want)
	}
	copy(got, kept)
	s.Scribble(rec)
	if !bytes.Equal(got, want) {
		s.problem(CheckAlias, c.Name, "the row changes with the record's memory: %x, want %x", got, want)
	}
}

// keeps checks that a row stays as it is when the next one is made, and whatever becomes of that one.
func (s *suite[T]) keeps(c Case[T]) {
	kept, err := s.append(nil, c.Record())
	want := slices.Clone(kept)
	next, err2 := s.append(nil, c.Record())
	if err != nil || err2 != nil {
		s.problem(CheckStable, c.Name, "the second time: %v", errors.Join(err, err2))
		return
	}
	if clear(next); !bytes.Equal(kept, want) {
		s.problem(CheckAlias, c.Name, "two rows share memory: %x, was %x", kept, want)
	}
}

func (s *suite[T]) stable() {
	schema, err := s.serializer.Schema(s.Destination)
	if err != nil || !schema.Equal(s.schema) {
		s.problem(CheckStable, "", "Schema answers something else the second time (error: %v)", err)
	}
	message, err := s.serializer.Descriptor(s.Destination)
	if err != nil || !sameMessage(message, s.message) {
		s.problem(CheckStable, "", "Descriptor answers something else the second time (error: %v)", err)
	}
	if print := s.serializer.Fingerprint(s.Destination); print != s.print {
		s.problem(CheckStable, "", "Fingerprint went from %d to %d and Schema stayed the same", s.print, print)
	}
}

// concurrent lets goroutines share a serializer that nobody has used yet.
func (s *suite[T]) concurrent() {
	fresh, err := s.New()
	if err != nil {
		s.problem(CheckStable, "", "New the second time: %v", err)
		return
	}
	const goroutines, rounds = 4, 5
	found := make([][]Problem, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() { // owned by concurrent, ends after its rounds
			for range rounds {
				found[g] = append(found[g], s.round(fresh)...)
			}
		})
	}
	wg.Wait()
	for _, list := range found {
		if len(list) > 0 {
			s.problems = append(s.problems, list[0])
			return
		}
	}
}

// round compares the rows of a serializer with those of the suite's own.
func (s *suite[T]) round(shared row.Serializer[T]) (problems []Problem) {
	for _, c := range s.Cases {
		got, err := shared.AppendRow(nil, s.Destination, c.Record())
		if c.Skip || c.Err != nil {
			if err == nil {
				problems = append(problems, Problem{CheckConcurrent, c.Name, "a row, want none"})
			}
			continue
		}
		if err == nil {
			values, err := decode(s.built, s.schema.Fields, got)
			if err == nil && difference(c.Values, values, s.schema.Fields, "") == "" {
				continue
			}
		}
		problems = append(problems, Problem{CheckConcurrent, c.Name, fmt.Sprintf("another row than alone: %x, %v", got, err)})
	}
	return problems
}
