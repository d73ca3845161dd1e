package avrorow

import (
	"sync"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/avro"
)

// shape is what all serializers of this package know of their rows.
type shape struct {
	reader     *avro.Schema
	schema     *table.Schema
	descriptor *descriptorpb.DescriptorProto
	plan       *plan // of records written with the reader's own schema
}

func newShape(text string, o Options) (shape, error) {
	root, schema, err := derive(text, o)
	if err != nil {
		return shape{}, err
	}
	d, err := row.Descriptor(schema)
	if err != nil {
		return shape{}, err
	}
	p, err := compile(root, root, schema.Fields)
	if err != nil {
		return shape{}, err
	}
	return shape{reader: root, schema: schema, descriptor: d, plan: p}, nil
}

// Schema is the schema that was derived.
func (s *shape) Schema(table.Destination) (*table.Schema, error) { return s.schema, nil }

// Descriptor is row.Descriptor of the schema.
func (s *shape) Descriptor(table.Destination) (*descriptorpb.DescriptorProto, error) {
	return s.descriptor, nil
}

// Fingerprint is 0: the schema never changes.
func (s *shape) Fingerprint(table.Destination) uint64 { return 0 }

// decodings lends the state that a datum is read with.
type decodings struct{ pool sync.Pool }

func (p *decodings) append(buf, datum []byte, pl *plan) ([]byte, error) {
	d, _ := p.pool.Get().(*decoding)
	if d == nil {
		d = &decoding{}
	}
	out, e := d.datum(buf, datum, pl)
	p.pool.Put(d)
	if e != nil {
		return out, e
	}
	return out, nil
}

// Serializer makes rows of binary datums: the bytes of one record, without schema or framing. It implements row.Serializer, and
// makes no garbage once it is warm.
type Serializer[T any] struct {
	shape
	datum func(T) []byte
	decodings
}

var _ row.Serializer[[]byte] = (*Serializer[[]byte])(nil)

// New makes the Serializer of records that were all written with one schema, which is the job's. datum returns a record's bytes,
// which the Serializer only reads and does not keep. The error holds every fault of the schema as *row.Error of the C kinds.
func New[T any](schema string, datum func(T) []byte, o Options) (*Serializer[T], error) {
	s, err := newShape(schema, o)
	if err != nil {
		return nil, err
	}
	return &Serializer[T]{shape: s, datum: datum}, nil
}

// AppendRow appends the row of rec's datum. Errors are *row.Error values with the path of the field and the byte of the datum.
func (s *Serializer[T]) AppendRow(buf []byte, _ table.Destination, rec T) ([]byte, error) {
	return s.append(buf, s.datum(rec), s.plan)
}

// RecordSerializer makes rows of Go maps by field name, as Avro libraries decode into. It implements row.Serializer.
type RecordSerializer[T any] struct {
	shape
	fields func(T) map[string]any
}

var _ row.Serializer[map[string]any] = (*RecordSerializer[map[string]any])(nil)

// NewRecords makes the RecordSerializer of a schema. fields returns a record's values by the names of the schema's fields; a field
// that is not there is null. The Serializer only reads them and keeps nothing. See the package's documentation for what Go values
// a field takes.
func NewRecords[T any](schema string, fields func(T) map[string]any, o Options) (*RecordSerializer[T], error) {
	s, err := newShape(schema, o)
	if err != nil {
		return nil, err
	}
	return &RecordSerializer[T]{shape: s, fields: fields}, nil
}

// AppendRow appends the row of rec's fields. Errors are *row.Error values with the path of the field.
func (s *RecordSerializer[T]) AppendRow(buf []byte, _ table.Destination, rec T) ([]byte, error) {
	m := s.fields(rec)
	if m == nil {
		return buf, row.At(errNilRecord, "", -1)
	}
	out, e := appendFields(buf, m, s.plan)
	if e != nil {
		return out, e
	}
	return out, nil
}
