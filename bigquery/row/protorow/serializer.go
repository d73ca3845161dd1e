package protorow

import (
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Serializer makes rows of messages. It implements row.Serializer and has one schema for all destinations.
type Serializer[M proto.Message] struct {
	plan
}

// WireSerializer makes rows of records that hold a message in wire form. It implements row.Serializer and has one schema for
// all destinations.
type WireSerializer[T any] struct {
	plan
	read func(T) []byte
}

var (
	_ row.Serializer[proto.Message] = (*Serializer[proto.Message])(nil)
	_ row.Serializer[[]byte]        = (*WireSerializer[[]byte])(nil)
)

// New makes the Serializer of a generated type. The error holds every fault of the type and the options as *row.Error of the
// C kinds, with the path of the field.
func New[M proto.Message](o Options) (*Serializer[M], error) {
	var zero M
	_, dynamic := any(zero).(*dynamicpb.Message)
	if any(zero) == nil || dynamic {
		return nil, noType("New needs a generated type: expected Of, with a descriptor")
	}
	p, err := newPlan(zero.ProtoReflect().Type(), o)
	if err != nil {
		return nil, err
	}
	return &Serializer[M]{*p}, nil
}

// Of makes the Serializer of messages of a descriptor, such as dynamic ones. The error is as for New.
func Of[M proto.Message](md protoreflect.MessageDescriptor, o Options) (*Serializer[M], error) {
	if md == nil {
		return nil, noType("the descriptor is nil")
	}
	p, err := newPlan(dynamicpb.NewMessageType(md), o)
	if err != nil {
		return nil, err
	}
	return &Serializer[M]{*p}, nil
}

// Wire makes the WireSerializer of messages of a descriptor; see MessageOf for one that is in a file. read returns a
// record's message, which the WireSerializer only reads and does not keep. The error is as for New.
func Wire[T any](md protoreflect.MessageDescriptor, read func(T) []byte, o Options) (*WireSerializer[T], error) {
	if md == nil || read == nil {
		return nil, noType("a serializer of messages in wire form needs their descriptor, and the bytes of a record")
	}
	p, err := newPlan(dynamicpb.NewMessageType(md), o)
	if err != nil {
		return nil, err
	}
	return &WireSerializer[T]{*p, read}, nil
}

func noType(msg string) error { return &row.Error{Kind: row.KindRoot, Offset: -1, Msg: msg} }

// plan is what both serializers share.
type plan struct {
	root       protoreflect.MessageDescriptor
	columns    *message
	schema     *table.Schema
	descriptor *descriptorpb.DescriptorProto
	scratches  *sync.Pool // of *scratch
}

func newPlan(t protoreflect.MessageType, o Options) (*plan, error) {
	m, s, err := compile(t, &o)
	if err != nil {
		return nil, err
	}
	d, err := row.Descriptor(s)
	if err != nil {
		return nil, err
	}
	return &plan{t.Descriptor(), m, s, d, &sync.Pool{New: func() any { return new(scratch) }}}, nil
}

// Schema is the schema of the message type.
func (p *plan) Schema(table.Destination) (*table.Schema, error) { return p.schema, nil }

// Descriptor is row.Descriptor of the schema.
func (p *plan) Descriptor(table.Destination) (*descriptorpb.DescriptorProto, error) {
	return p.descriptor, nil
}

// Fingerprint is 0: the schema never changes.
func (p *plan) Fingerprint(table.Destination) uint64 { return 0 }

// AppendRow appends the row of rec. Errors are *row.Error values with the path of the field; a nil rec is one.
func (s *Serializer[M]) AppendRow(buf []byte, _ table.Destination, rec M) ([]byte, error) {
	if any(rec) == nil || any(rec) == any((*dynamicpb.Message)(nil)) {
		return buf, notOfType("the record is nil")
	}
	m := rec.ProtoReflect()
	if !m.IsValid() {
		return buf, notOfType("the record is nil")
	}
	if d := m.Descriptor(); d != s.root && d.FullName() != s.root.FullName() {
		return buf, notOfType("the record is a " + string(d.FullName()) + ": expected a " + string(s.root.FullName()))
	}
	w := s.scratches.Get().(*scratch)
	wire, err := proto.MarshalOptions{AllowPartial: true}.MarshalAppend(w.wire[:0], rec)
	if err != nil {
		wire = appendMessage(wire[:0], m) // text that is not UTF-8: which, the row's plan tells
	}
	w.wire = wire
	return s.append(buf, w, wire)
}

func notOfType(msg string) *row.Error { return &row.Error{Kind: row.KindType, Offset: -1, Msg: msg} }

// AppendRow appends the row of rec's message. Errors are *row.Error values with the path of the field.
func (s *WireSerializer[T]) AppendRow(buf []byte, _ table.Destination, rec T) ([]byte, error) {
	return s.append(buf, s.scratches.Get().(*scratch), s.read(rec))
}

// append appends the row of a message and gives the scratch back.
func (p *plan) append(buf []byte, w *scratch, wire []byte) ([]byte, error) {
	out, e := w.message(buf, p.columns, wire)
	w.reset()
	p.scratches.Put(w)
	if e != nil {
		return out, e
	}
	return out, nil
}

// What a record needed is kept for the next one, up to a record of 1 MiB in wire form and maps of 16,384 entries.
const (
	maxKeptBytes   = 1 << 20
	maxKeptEntries = 1 << 14
)

// reset makes the scratch fit for another record, whatever became of the last.
func (s *scratch) reset() {
	s.pop(0)
	clear(s.entries)
	s.entries = s.entries[:0]
	if cap(s.entries) > maxKeptEntries {
		s.entries = nil
	}
	if cap(s.wire) > maxKeptBytes {
		s.wire = nil
	}
}
