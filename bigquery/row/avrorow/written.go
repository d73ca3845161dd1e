package avrorow

import (
	"sync"
	"sync/atomic"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/avro"
)

// WrittenSerializer makes rows of datums that come with the schema they were written with, as those of container files do. It
// implements row.Serializer, and makes no garbage once it is warm.
type WrittenSerializer[T any] struct {
	shape
	options Options
	datum   func(T) (schema string, datum []byte)
	plans   plansByText
	decodings
}

var _ row.Serializer[[]byte] = (*WrittenSerializer[[]byte])(nil)

// NewWritten makes the WrittenSerializer of a job's schema, or of Options.Table, when schema is not looked at. datum returns the
// schema that a record was written with, the same string for all records of a file at best, and its bytes, which the Serializer
// only reads and does not keep. The error holds every fault of the schema as *row.Error of the C kinds.
//
// A record's schema is resolved into the job's when it is met first: fields match by name and by the job's aliases, those the job
// lacks are passed over, those the record lacks take the job's default. Under Options.Table, a record's schema must fit the table.
func NewWritten[T any](schema string, datum func(T) (schema string, datum []byte), o Options) (*WrittenSerializer[T], error) {
	s := &WrittenSerializer[T]{options: o, datum: datum}
	var err error
	if o.Table == nil {
		s.shape, err = newShape(schema, o)
		return s, err
	}
	s.schema = o.Table
	s.descriptor, err = row.Descriptor(o.Table)
	return s, err
}

// AppendRow appends the row of rec's datum. Errors are *row.Error values with the path of the field and the byte of the datum; one
// of the kind D-SCHEMA, or under Options.Table of a C kind, is about the schema it was written with.
func (s *WrittenSerializer[T]) AppendRow(buf []byte, _ table.Destination, rec T) ([]byte, error) {
	text, datum := s.datum(rec)
	p, err := s.plans.of(text, s.compile)
	if err != nil {
		return buf, err
	}
	return s.append(buf, datum, p)
}

func (s *WrittenSerializer[T]) compile(text string) (*plan, error) {
	if s.options.Table != nil {
		return fitTable(text, s.options)
	}
	return s.resolve(text)
}

// resolve makes the plan of records that were written with another schema.
func (s *shape) resolve(text string) (*plan, error) {
	w, err := avro.Parse(text)
	if err != nil {
		return nil, fault(row.KindResolve, "", "the schema that the record was written with cannot be read: "+err.Error())
	}
	w.Prepare()
	return compile(w, s.reader, s.schema.Fields)
}

func fitTable(text string, o Options) (*plan, error) {
	w, derived, err := derive(text, o)
	if err != nil {
		return nil, err
	}
	r, e := arrange(w, derived.Fields, o.Table.Fields, o.IgnoreUnknownFields)
	if e != nil {
		return nil, e
	}
	return compile(w, r, o.Table.Fields)
}

// plansByText keeps the plans of the schemas that were met. Readers share them without a lock.
type plansByText struct {
	met atomic.Pointer[[]planOf]
	mu  sync.Mutex // held while a plan is made
}

type planOf struct {
	text string
	plan *plan
	err  error
}

// of finds the plan of a schema, or makes it. Comparing a text with itself looks at no byte of it.
func (p *plansByText) of(text string, compile func(string) (*plan, error)) (*plan, error) {
	if found := p.find(text); found != nil {
		return found.plan, found.err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.find(text); found != nil {
		return found.plan, found.err
	}
	made := planOf{text: text}
	made.plan, made.err = compile(text)
	var all []planOf
	if met := p.met.Load(); met != nil {
		all = append(all, *met...)
	}
	all = append(all, made)
	p.met.Store(&all)
	return made.plan, made.err
}

func (p *plansByText) find(text string) *planOf {
	met := p.met.Load()
	if met == nil {
		return nil
	}
	for i := range *met {
		if (*met)[i].text == text {
			return &(*met)[i]
		}
	}
	return nil
}
