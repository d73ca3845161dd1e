package jsonrow

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Serializer makes rows of records that hold a JSON document. It implements row.Serializer. A warmed up AppendRow makes
// no garbage, whatever the document holds, as long as it is right.
type Serializer[T any] struct {
	doc     func(T) []byte
	schemas Schemas
	options Options
	fixed   *plan // of a mapping that is the same for all destinations, nil otherwise

	mu       sync.RWMutex // guards plans
	plans    map[table.Destination]*plan
	building sync.Mutex // held while schemas is asked; taken before mu

	parsers sync.Pool // of *parser
}

var _ row.Serializer[[]byte] = (*Serializer[[]byte])(nil)

// New makes a Serializer. doc returns a record's document, which the Serializer only reads and does not keep. schemas is
// a *Mapping, see Fixed, or answers for each destination, see PerDestination.
//
// Every fault of options and of a *Mapping is found here, as *row.Error of the C kinds; those of other Schemas when a
// destination's schema is first asked for.
func New[T any](doc func(T) []byte, schemas Schemas, o Options) (*Serializer[T], error) {
	if doc == nil || schemas == nil {
		return nil, schemaError("", "a JSON serializer needs the document of a record, and schemas")
	}
	if o.TimestampNumbers > lastTimeNumbers || o.JSONColumns > lastJSONColumns || o.BytesEncoding > lastBytesEncoding {
		return nil, schemaError("", fmt.Sprintf("options out of range: TimestampNumbers %d, JSONColumns %d, BytesEncoding %d",
			o.TimestampNumbers, o.JSONColumns, o.BytesEncoding))
	}
	s := &Serializer[T]{doc: doc, schemas: schemas, options: o, plans: map[table.Destination]*plan{}}
	s.parsers.New = func() any { return &parser{options: &s.options} }
	if m, ok := schemas.(*Mapping); ok {
		p, err := compile(m, o)
		if err != nil {
			return nil, err
		}
		s.fixed = p
	}
	return s, nil
}

// Schema is the destination's schema, as its mapping has it.
func (s *Serializer[T]) Schema(dst table.Destination) (*table.Schema, error) {
	p, err := s.plan(dst)
	if err != nil {
		return nil, err
	}
	return p.schema, nil
}

// Descriptor is row.Descriptor of the schema.
func (s *Serializer[T]) Descriptor(dst table.Destination) (*descriptorpb.DescriptorProto, error) {
	p, err := s.plan(dst)
	if err != nil {
		return nil, err
	}
	return p.descriptor, nil
}

// Fingerprint is 0: the schema of a destination never changes.
func (s *Serializer[T]) Fingerprint(table.Destination) uint64 { return 0 }

// AppendRow appends the row of rec's document. Errors about the document are *row.Error values.
func (s *Serializer[T]) AppendRow(buf []byte, dst table.Destination, rec T) ([]byte, error) {
	pl, err := s.plan(dst)
	if err != nil {
		return buf, err
	}
	p := s.parsers.Get().(*parser)
	out, err := p.row(pl, buf, s.doc(rec))
	s.parsers.Put(p)
	return out, err
}

func (s *Serializer[T]) plan(dst table.Destination) (*plan, error) {
	if s.fixed != nil {
		return s.fixed, nil
	}
	if p := s.known(dst); p != nil {
		return p, nil
	}
	s.building.Lock()
	defer s.building.Unlock()
	if p := s.known(dst); p != nil {
		return p, nil
	}
	m, err := s.schemas.Mapping(dst)
	if err != nil {
		return nil, err
	}
	p, err := compile(m, s.options)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", dst, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans[dst] = p
	return p, nil
}

func (s *Serializer[T]) known(dst table.Destination) *plan {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.plans[dst]
}
