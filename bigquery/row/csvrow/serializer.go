package csvrow

import (
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Serializer makes rows of CSV records. It implements row.Serializer. A warmed up AppendRow makes no garbage.
type Serializer[T any] struct {
	read    func(T) (header, record []byte)
	schemas Schemas
	options Options
	fixed   *target // of a Mapping that is the same for all destinations, nil otherwise

	mu      sync.RWMutex // guards targets
	targets map[table.Destination]*target

	parsers sync.Pool // of *parser
}

var _ row.Serializer[[]byte] = (*Serializer[[]byte])(nil)

// New makes a Serializer. read returns a record and the header of its file, nil where there is none and cells are the
// columns in their order; both are only read, and not kept. schemas is a *Mapping, see Fixed, or answers for each
// destination.
//
// Every fault of options and of a *Mapping is found here. A header that does not fit is found at the first record under it,
// an error of the kind C-HEADER, which ends a job.
func New[T any](read func(T) (header, record []byte), schemas Schemas, o Options) (*Serializer[T], error) {
	if read == nil || schemas == nil {
		return nil, errors.New("a CSV serializer needs the text of a record, and schemas")
	}
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	s := &Serializer[T]{read: read, schemas: schemas, options: o, targets: map[table.Destination]*target{}}
	s.parsers.New = func() any {
		return &parser{scanner: newScanner(o), options: &s.options}
	}
	if m, ok := schemas.(*Mapping); ok {
		if s.fixed, err = newTarget(m); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Schema is the destination's schema.
func (s *Serializer[T]) Schema(dst table.Destination) (*table.Schema, error) {
	t, err := s.target(dst)
	if err != nil {
		return nil, err
	}
	return t.mapping.Schema, nil
}

// Descriptor is row.Descriptor of the schema.
func (s *Serializer[T]) Descriptor(dst table.Destination) (*descriptorpb.DescriptorProto, error) {
	t, err := s.target(dst)
	if err != nil {
		return nil, err
	}
	return t.descriptor, nil
}

// Fingerprint is 0: the schema of a destination never changes.
func (s *Serializer[T]) Fingerprint(table.Destination) uint64 { return 0 }

// AppendRow appends the row of rec. Errors about the record are *row.Error values with the name of the column and the
// byte of the record where its cell begins.
func (s *Serializer[T]) AppendRow(buf []byte, dst table.Destination, rec T) ([]byte, error) {
	t, err := s.target(dst)
	if err != nil {
		return buf, err
	}
	header, record := s.read(rec)
	p := s.parsers.Get().(*parser)
	defer s.parsers.Put(p)
	if err := p.under(t, header); err != nil {
		return buf, err
	}
	return p.row(buf, record)
}

func (s *Serializer[T]) target(dst table.Destination) (*target, error) {
	if s.fixed != nil {
		return s.fixed, nil
	}
	s.mu.RLock()
	t := s.targets[dst]
	s.mu.RUnlock()
	if t != nil {
		return t, nil
	}
	m, err := s.schemas.Mapping(dst)
	if err != nil {
		return nil, err
	}
	if t, err = newTarget(m); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", dst, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.targets[dst] = t
	return t, nil
}

// parser makes rows of records, one after another. It belongs to one goroutine at a time.
type parser struct {
	scanner
	options *Options
	layout  *layout
	text    []byte // scratch of values
}

// under makes the layout of a header current.
func (p *parser) under(t *target, header []byte) (err error) {
	if l := p.layout; l != nil && l.target == t && l.titled == (header != nil) && l.header == string(header) {
		return nil
	}
	p.layout, err = t.layout(header, *p.options)
	return err
}

var errRequired = &row.ValueError{Kind: row.KindRequired, Msg: "no value, expected one: the column is REQUIRED"}

// row appends the row of a record: its cells in the order in which they come, as protobuf allows.
func (p *parser) row(buf []byte, record []byte) ([]byte, error) {
	if !utf8.Valid(record) {
		return buf, p.notText(record)
	}
	columns := p.layout.target.columns
	p.reset(record)
	for n, i := range p.layout.cells {
		c, ok, err := p.next()
		switch {
		case err != nil:
			return buf, p.at(err, n, c.at)
		case !ok && !p.options.AllowJaggedRows:
			return buf, &row.Error{Kind: row.KindType, Offset: int64(len(record)), Msg: fmt.Sprintf("the record has %d cells, expected %d: add the others, or allow jagged rows", n, len(p.layout.cells))}
		case i < 0:
			continue
		}
		if !ok || !c.quoted && p.null(c.text) {
			if columns[i].required {
				return buf, p.at(errRequired, n, min(c.at, len(record)))
			}
			continue
		}
		if buf, err = p.value(append(buf, columns[i].tag...), &columns[i], c.text); err != nil {
			return buf, p.at(err, n, c.at)
		}
	}
	if c, more, _ := p.next(); more && !p.options.IgnoreUnknown {
		return buf, &row.Error{Kind: row.KindUnknown, Offset: int64(c.at), Msg: fmt.Sprintf("the record has more than %d cells: quote what holds the delimiter, or ignore unknown fields", len(p.layout.cells))}
	}
	return buf, nil
}

// notText is the error of a record that is not UTF-8: of its first such cell, where the record can be cut.
func (p *parser) notText(record []byte) *row.Error {
	p.reset(record)
	for n := range p.layout.cells {
		c, ok, err := p.next()
		if err != nil || !ok {
			break
		}
		if !utf8.Valid(c.text) {
			return p.at(errText, n, c.at)
		}
	}
	return row.At(errText, "", 0)
}

// at is the error of cell n, counted from 0.
func (p *parser) at(err error, n, at int) *row.Error {
	path := ""
	if i := p.layout.cells[n]; i >= 0 {
		path = p.layout.target.columns[i].name
	}
	e := row.At(err, path, int64(at))
	e.Msg = fmt.Sprintf("%s (cell %d)", e.Msg, n+1)
	return e
}

func (p *parser) null(text []byte) bool {
	for _, m := range p.options.NullMarkers {
		if string(text) == m {
			return true
		}
	}
	return false
}
