package protorow

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/internal/mark"
)

const fieldOptionsName = "google.protobuf.FieldOptions"

func singularBool(d protoreflect.FieldDescriptor) bool {
	return d.Kind() == protoreflect.BoolKind && d.Cardinality() != protoreflect.Repeated
}

// marksOf is how the options of a field mark it. Where an option was resolved when the descriptor was made, it is there as
// an extension; elsewhere as bytes, which a declaration among the imports explains, or nothing does.
func marksOf(fd protoreflect.FieldDescriptor, options []fieldOption) (mark.Mark, *row.Error) {
	all := mark.None
	if len(options) == 0 {
		return all, nil
	}
	message := fd.Options().ProtoReflect()
	for i := range options {
		o := &options[i]
		on, e := o.on(fd, message)
		if e != nil {
			return all, e
		}
		if on {
			all |= o.mark
		}
	}
	return all, nil
}

// on says whether the option stands on a field, as true.
func (o *fieldOption) on(fd protoreflect.FieldDescriptor, options protoreflect.Message) (bool, *row.Error) {
	if !options.IsValid() {
		return false, nil
	}
	if d, v := resolved(options, o.number); d != nil {
		if !o.means(d) {
			return false, nil
		}
		if !singularBool(d) {
			return false, o.noBool(d)
		}
		return v.Bool(), nil
	}
	raw := occurrences(options.GetUnknown(), o.number)
	if len(raw) == 0 {
		return false, nil
	}
	d := declaration(fd.ParentFile(), o)
	if d == nil {
		return o.bare(raw)
	}
	if !o.means(d) {
		return false, nil
	}
	if !singularBool(d) {
		return false, o.noBool(d)
	}
	value := false
	for _, r := range raw {
		if r.wire != protowire.VarintType {
			return false, o.badBytes()
		}
		value = r.value != 0
	}
	return value, nil
}

// means says whether a declaration is that of the option.
func (o *fieldOption) means(d protoreflect.FieldDescriptor) bool {
	return o.name == "" || d.FullName() == o.name
}

// bare judges an option of which there is nothing but bytes.
func (o *fieldOption) bare(raw []occurrence) (bool, *row.Error) {
	if len(raw) != 1 || raw[0].wire != protowire.VarintType || raw[0].value > 1 {
		return false, o.badBytes()
	}
	return raw[0].value == 1, nil
}

func (o *fieldOption) noBool(d protoreflect.FieldDescriptor) *row.Error {
	return &row.Error{Kind: row.KindOptType, Offset: -1,
		Msg: o.String() + " is " + string(d.FullName()) + " here, which is declared as a " + declared(d) + ": expected a singular bool"}
}

func (o *fieldOption) badBytes() *row.Error {
	return &row.Error{Kind: row.KindOptType, Offset: -1, Msg: o.String() + " is not encoded as a singular bool"}
}

func declared(d protoreflect.FieldDescriptor) string {
	if d.Cardinality() == protoreflect.Repeated {
		return "repeated " + d.Kind().String()
	}
	return d.Kind().String()
}

func resolved(options protoreflect.Message, number protowire.Number) (d protoreflect.FieldDescriptor, v protoreflect.Value) {
	options.Range(func(fd protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if fd.IsExtension() && fd.Number() == number {
			d, v = fd, value
		}
		return d == nil
	})
	return d, v
}

// occurrence is a field in wire form.
type occurrence struct {
	wire  protowire.Type
	value uint64 // of a varint
}

func occurrences(b []byte, number protowire.Number) (all []occurrence) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return all
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return all
		}
		if num == number {
			o := occurrence{wire: typ}
			if typ == protowire.VarintType {
				o.value, _ = protowire.ConsumeVarint(b[n:])
			}
			all = append(all, o)
		}
		b = b[n+size:]
	}
	return all
}

// declaration looks for an option's declaration in a file and in what it imports, the nearest first. One with the option's
// name goes before all others of its number.
func declaration(file protoreflect.FileDescriptor, o *fieldOption) (first protoreflect.FieldDescriptor) {
	queue := []protoreflect.FileDescriptor{file}
	seen := map[string]bool{file.Path(): true}
	for len(queue) > 0 {
		f := queue[0]
		queue = queue[1:]
		for _, d := range declarations(f, o.number, nil) {
			if o.name != "" && d.FullName() == o.name {
				return d
			}
			if first == nil {
				first = d
			}
		}
		for i := range f.Imports().Len() {
			next := f.Imports().Get(i)
			if !seen[next.Path()] && !next.IsPlaceholder() {
				seen[next.Path()] = true
				queue = append(queue, next)
			}
		}
	}
	return first
}

// scope is a file, or a message that has declarations inside.
type scope interface {
	Extensions() protoreflect.ExtensionDescriptors
	Messages() protoreflect.MessageDescriptors
}

func declarations(s scope, number protowire.Number, found []protoreflect.FieldDescriptor) []protoreflect.FieldDescriptor {
	for i := range s.Extensions().Len() {
		d := s.Extensions().Get(i)
		if d.Number() == number && d.ContainingMessage().FullName() == fieldOptionsName {
			found = append(found, d)
		}
	}
	for i := range s.Messages().Len() {
		found = declarations(s.Messages().Get(i), number, found)
	}
	return found
}
