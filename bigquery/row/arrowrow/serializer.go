package arrowrow

import (
	"errors"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Serializer makes rows of the rows of batches. It implements row.Serializer, has one schema for all destinations, and makes
// no garbage.
type Serializer struct {
	first   *plan
	options Options

	mu    sync.Mutex // guards plans
	plans []*plan    // of further Arrow schemas, newest last
}

var _ row.Serializer[Row] = (*Serializer)(nil)

// New makes the Serializer of batches of an Arrow schema. The error holds every fault of the schemas as *row.Error of the C
// kinds, with the path of the column. Batches of other schemas are taken too where they fit the table.
func New(s *arrow.Schema, o Options) (*Serializer, error) {
	if s == nil {
		return nil, fault(row.KindEmpty, "", "an Arrow schema is required")
	}
	t := o.Schema
	if t == nil {
		var err error
		if t, err = SchemaOf(s, o); err != nil {
			return nil, err
		}
	} else if len(o.JSON)+len(o.Geography) > 0 || o.DeriveRequired {
		return nil, fault(row.KindSchema, "", "the table's schema is given: JSON, Geography and DeriveRequired are for schemas that are derived")
	}
	p, err := compile(s, t, o.IgnoreUnknownFields)
	if err != nil {
		return nil, err
	}
	out := &Serializer{first: p, options: o}
	p.serializer = out
	return out, nil
}

// Schema is the table's schema.
func (s *Serializer) Schema(table.Destination) (*table.Schema, error) { return s.first.schema, nil }

// Descriptor is row.Descriptor of the schema.
func (s *Serializer) Descriptor(table.Destination) (*descriptorpb.DescriptorProto, error) {
	return s.first.descriptor, nil
}

// Fingerprint is 0: the schema never changes.
func (s *Serializer) Fingerprint(table.Destination) uint64 { return 0 }

var (
	errNoBatch = errors.New("the record has no Arrow batch")
	errNoRow   = errors.New("the record is a row that its Arrow batch does not have")
)

// AppendRow appends the row of rec. Errors about values are *row.Error values with the path of the column.
func (s *Serializer) AppendRow(buf []byte, _ table.Destination, rec Row) ([]byte, error) {
	b := rec.Batch
	if b == nil {
		return buf, errNoBatch
	}
	if uint(rec.Index) >= uint(b.rows) {
		return buf, errNoRow
	}
	p := b.plan.Load()
	if p == nil || p.serializer != s {
		var err error
		if p, err = s.plan(b.record.Schema()); err != nil {
			return buf, err
		}
		b.plan.Store(p)
	}
	out, e := appendColumns(buf, p.columns, b.columns, rec.Index)
	if e != nil {
		return buf, e
	}
	return out, nil
}

// plan is the plan of batches of an Arrow schema.
func (s *Serializer) plan(a *arrow.Schema) (*plan, error) {
	if sameColumns(a, s.first.arrow) {
		return s.first, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.plans {
		if sameColumns(a, p.arrow) {
			return p, nil
		}
	}
	p, err := compile(a, s.first.schema, s.options.IgnoreUnknownFields)
	if err != nil {
		return nil, fmt.Errorf("batch of another Arrow schema: %w", err)
	}
	p.serializer = s
	const most = 64 // plans that are remembered: batches rarely come in more than a few schemas
	if len(s.plans) == most {
		s.plans = append(s.plans[:0], s.plans[1:]...)
	}
	s.plans = append(s.plans, p)
	return p, nil
}

// sameColumns says whether two schemas have the same columns, in the same places.
func sameColumns(a, b *arrow.Schema) bool { return a == b || a.Equal(b) }
