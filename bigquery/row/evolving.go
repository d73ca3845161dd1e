package row

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// Evolving is a Serializer that gives way to one with more columns while rows are written: a service learns that its
// records have grown, and calls Evolve. What BigQuery's tables are to do about it is the sink's SchemaUpdate.
//
// It stands outermost: what is wrapped around it may shift the fields of rows that are made at that very moment.
type Evolving[T any] struct {
	now atomic.Pointer[version[T]]

	mu   sync.Mutex // guards seen, and is held while now changes
	seen map[table.Destination]bool
}

type version[T any] struct {
	Serializer[T]
	number uint64
}

var _ Serializer[int] = (*Evolving[int])(nil)

// NewEvolving begins with a serializer.
func NewEvolving[T any](first Serializer[T]) *Evolving[T] {
	e := &Evolving[T]{seen: map[table.Destination]bool{}}
	e.now.Store(&version[T]{first, 1})
	return e
}

// Evolve has rows made by next from now on, in all lanes. Safe for concurrent use.
//
// Rows that were made before have to fit what next says about them: of every destination that was written to, each field
// keeps its number, name and type, a REQUIRED one may become NULLABLE, and new ones are not REQUIRED. Columns that are
// added behind those there were do that, with the descriptors of this package. The error names what does not, and nothing
// has changed then.
func (e *Evolving[T]) Evolve(next Serializer[T]) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.now.Load()
	var faults []error
	for dst := range e.seen {
		before, err := old.Descriptor(dst)
		if err != nil {
			return err
		}
		after, err := next.Descriptor(dst)
		if err != nil {
			return err
		}
		for _, err := range (evolution{before, after}).faults(before, after, "") {
			faults = append(faults, fmt.Errorf("rows of %s: %w", dst, err))
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	e.now.Store(&version[T]{next, old.number + 1})
	return nil
}

// Schema is that of the serializer in force.
func (e *Evolving[T]) Schema(dst table.Destination) (*table.Schema, error) {
	return e.now.Load().Schema(dst)
}

// Descriptor is that of the serializer in force.
func (e *Evolving[T]) Descriptor(dst table.Destination) (*descriptorpb.DescriptorProto, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen[dst] = true
	return e.now.Load().Descriptor(dst)
}

// Fingerprint changes with every Evolve, and with the serializer's own.
func (e *Evolving[T]) Fingerprint(dst table.Destination) uint64 {
	v := e.now.Load()
	const spread = 0x9E3779B97F4A7C15 // an odd number: what was different stays so
	return max(v.number*spread^v.Serializer.Fingerprint(dst), 1)
}

// AppendRow appends a row of the serializer in force.
func (e *Evolving[T]) AppendRow(buf []byte, dst table.Destination, rec T) ([]byte, error) {
	return e.now.Load().AppendRow(buf, dst, rec)
}

// evolution compares two row messages.
type evolution struct{ before, after *descriptorpb.DescriptorProto }

// faults tells which fields of old, a part of before, are others in next, and which of next may not be new.
func (e evolution) faults(old, next *descriptorpb.DescriptorProto, parent string) (faults []error) {
	fault := func(f *descriptorpb.FieldDescriptorProto, format string, args ...any) {
		faults = append(faults, fmt.Errorf("column %s: %s", table.Join(parent, ColumnName(f)), fmt.Sprintf(format, args...)))
	}
	byNumber := map[int32]*descriptorpb.FieldDescriptorProto{}
	for _, f := range next.GetField() {
		byNumber[f.GetNumber()] = f
	}
	for _, f := range old.GetField() {
		g := byNumber[f.GetNumber()]
		delete(byNumber, f.GetNumber())
		switch {
		case g == nil:
			fault(f, "is gone: expected every column that there was")
		case !strings.EqualFold(ColumnName(f), ColumnName(g)):
			fault(f, "is field %d, which is column %s now: expected new columns behind those there were", f.GetNumber(), ColumnName(g))
		case f.GetType() != g.GetType():
			fault(f, "is %s now, and was %s: expected the same type", typeWord(g), typeWord(f))
		case f.GetLabel() != g.GetLabel() && !relaxes(f, g):
			fault(f, "is %s now, and was %s: expected the same mode, or NULLABLE instead of REQUIRED", labelWord(g), labelWord(f))
		case f.GetType() == descriptorpb.FieldDescriptorProto_TYPE_MESSAGE:
			faults = append(faults, e.faults(find(e.before, old, f), find(e.after, next, g), table.Join(parent, ColumnName(f)))...)
		}
	}
	for _, g := range next.GetField() {
		if byNumber[g.GetNumber()] != nil && g.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REQUIRED {
			fault(g, "is new and REQUIRED: rows that were made before have none, expected NULLABLE")
		}
	}
	return faults
}

func relaxes(f, g *descriptorpb.FieldDescriptorProto) bool {
	return f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REQUIRED && g.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
}

// find is the message of a field, which is declared in the message that has the field, or in the outermost one.
func find(root, scope *descriptorpb.DescriptorProto, f *descriptorpb.FieldDescriptorProto) *descriptorpb.DescriptorProto {
	name := f.GetTypeName()[strings.LastIndexByte(f.GetTypeName(), '.')+1:]
	for _, in := range []*descriptorpb.DescriptorProto{scope, root} {
		for _, m := range in.GetNestedType() {
			if m.GetName() == name {
				return m
			}
		}
	}
	return nil
}

func typeWord(f *descriptorpb.FieldDescriptorProto) string {
	return strings.ToLower(strings.TrimPrefix(f.GetType().String(), "TYPE_"))
}

func labelWord(f *descriptorpb.FieldDescriptorProto) string {
	if f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL {
		return "NULLABLE"
	}
	return strings.TrimPrefix(f.GetLabel().String(), "LABEL_")
}
