package structrow

import (
	"reflect"
	"unsafe"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Serializer makes rows of structs. It implements row.Serializer, has one schema for all destinations, and makes no garbage.
type Serializer[T any] struct {
	plan       *structPlan
	pointer    bool // T is a pointer to the struct
	schema     *table.Schema
	descriptor *descriptorpb.DescriptorProto
}

var _ row.Serializer[struct{}] = (*Serializer[struct{}])(nil)

// New makes the Serializer of T, a struct or a pointer to one. The error holds every fault of the type as *row.Error of the C
// kinds, with the path of the field.
func New[T any](o Options) (*Serializer[T], error) {
	t, pointer, err := structType[T]()
	if err != nil {
		return nil, err
	}
	p, s, err := compile(t, o)
	if err != nil {
		return nil, err
	}
	d, err := row.Descriptor(s)
	if err != nil {
		return nil, err
	}
	return &Serializer[T]{plan: p, pointer: pointer, schema: s, descriptor: d}, nil
}

func structType[T any]() (t reflect.Type, pointer bool, err error) {
	t = reflect.TypeFor[T]()
	if t.Kind() == reflect.Pointer {
		t, pointer = t.Elem(), true
	}
	if t.Kind() != reflect.Struct || scalarOf(t) != 0 {
		return nil, false, typeError(row.KindColType, "", "a record is a "+reflect.TypeFor[T]().String()+", expected a struct or a pointer to one")
	}
	return t, pointer, nil
}

// Schema is the schema of T.
func (s *Serializer[T]) Schema(table.Destination) (*table.Schema, error) { return s.schema, nil }

// Descriptor is row.Descriptor of the schema.
func (s *Serializer[T]) Descriptor(table.Destination) (*descriptorpb.DescriptorProto, error) {
	return s.descriptor, nil
}

// Fingerprint is 0: the schema never changes.
func (s *Serializer[T]) Fingerprint(table.Destination) uint64 { return 0 }

// AppendRow appends the row of rec. Errors are *row.Error values with the path of the field; a nil rec is one.
func (s *Serializer[T]) AppendRow(buf []byte, _ table.Destination, rec T) ([]byte, error) {
	base := unsafe.Pointer(&rec)
	if s.pointer {
		if base = *(*unsafe.Pointer)(base); base == nil {
			return buf, &row.Error{Kind: row.KindType, Offset: -1, Msg: "the record is nil"}
		}
	}
	out, e := s.plan.append(buf, base)
	if e != nil {
		return out, e
	}
	return out, nil
}
