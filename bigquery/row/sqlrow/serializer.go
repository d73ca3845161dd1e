package sqlrow

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Change is what a row does to a table.
type Change uint8

const (
	Insert       Change = iota // the row is new
	UpdateBefore               // the row as it was: a sink that changes rows by key has no use for it
	UpdateAfter                // the row as it is now
	Delete                     // the row is gone; only its key counts
)

// Record is a row of SQL.
type Record struct {
	Change Change
	Values []row.Value // one for each declared column, in their order
}

// Serializer makes rows of declared columns. It implements row.Serializer, and makes no garbage.
type Serializer[T any] struct {
	record     func(T) Record
	schema     *table.Schema
	descriptor *descriptorpb.DescriptorProto
	columns    []encoder
	key        []bool // by column
	keyed      bool
}

var _ row.Serializer[Record] = (*Serializer[Record])(nil)

// New makes the Serializer of declared columns. record returns what a T is, which the Serializer only reads and does not
// keep. The error holds every fault as *row.Error of the C kinds.
func New[T any](columns []Column, record func(T) Record, o Options) (*Serializer[T], error) {
	schema, err := Schema(columns, o)
	if err != nil {
		return nil, err
	}
	s := &Serializer[T]{record: record, schema: schema, columns: encoders(columns, schema.Fields), key: make([]bool, len(columns)),
		keyed: len(o.PrimaryKey) > 0}
	if err := s.setKey(o.PrimaryKey); err != nil {
		return nil, err
	}
	s.descriptor, err = row.Descriptor(schema)
	return s, err
}

func (s *Serializer[T]) setKey(names []string) error {
	var faults []error
	for _, name := range names {
		found := false
		for i := range s.schema.Fields {
			if table.FoldName(s.schema.Fields[i].Name) == table.FoldName(name) {
				s.key[i], found = true, true
			}
		}
		if !found {
			faults = append(faults, fault(row.KindSchema, name, "is part of the primary key and no column"))
		}
	}
	return errors.Join(faults...)
}

// Schema is the schema that was derived.
func (s *Serializer[T]) Schema(table.Destination) (*table.Schema, error) { return s.schema, nil }

// Descriptor is row.Descriptor of the schema.
func (s *Serializer[T]) Descriptor(table.Destination) (*descriptorpb.DescriptorProto, error) {
	return s.descriptor, nil
}

// Fingerprint is 0: the schema never changes.
func (s *Serializer[T]) Fingerprint(table.Destination) uint64 { return 0 }

// AppendRow appends the row of rec. Of a row of Delete only the columns of the primary key are written, whatever the modes of
// the others; a row of UpdateBefore is refused.
func (s *Serializer[T]) AppendRow(buf []byte, _ table.Destination, rec T) ([]byte, error) {
	r := s.record(rec)
	if err := s.accepts(&r); err != nil {
		return buf, err
	}
	var err *row.Error
	for i := range s.columns {
		v := &r.Values[i]
		if r.Change == Delete {
			if !s.key[i] {
				continue
			}
			if v.Null {
				return buf, fault(row.KindRequired, s.columns[i].name, "NULL in the primary key of a row that is deleted")
			}
		}
		if buf, err = s.columns[i].append(buf, v); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// accepts checks a record for what a table can do with it.
func (s *Serializer[T]) accepts(r *Record) error {
	switch {
	case len(r.Values) != len(s.columns):
		return fault(row.KindType, "", fmt.Sprintf("the row has %d values, expected %d", len(r.Values), len(s.columns)))
	case r.Change == UpdateBefore:
		return fault(row.KindType, "", "the row as it was before an update: expected rows to insert, to update to, or to delete")
	case r.Change > Delete:
		return fault(row.KindType, "", fmt.Sprintf("the change %d: expected an insert, an update or a delete", r.Change))
	case r.Change == Delete && !s.keyed:
		return fault(row.KindType, "", "a row to delete, and no primary key to find it by: declare one")
	}
	return nil
}
