package decode

import (
	"fmt"
	"strings"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// fileName is the file the service pretends the writer's descriptor was declared in; messages name it.
const fileName = "BqMessage.proto"

// maxDepth is how deep messages may nest in the row, as the columns they feed.
const maxDepth = 15

// message is one message type of a writer's descriptor with its references resolved.
type message struct {
	name   string // full name, without a leading dot
	fields []*protoField
}

// protoField is one field of it.
type protoField struct {
	name     string
	column   string // the column it is for: the name, or what the column_name option says
	number   protowire.Number
	kind     protoreflect.Kind
	repeated bool
	message  *message         // of message and group fields
	enum     map[int32]string // of enum fields: first name of each number
	// fallback is the declared default_value as the wire would carry it; hasFallback says there is one.
	fallback    raw
	hasFallback bool
}

func (m *message) field(name string) *protoField {
	for _, f := range m.fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

// resolver turns a descriptor into messages.
type resolver struct {
	declared map[string]*descriptorpb.DescriptorProto
	enums    map[string]*descriptorpb.EnumDescriptorProto
	resolved map[string]*message
}

// resolve checks a descriptor that must stand alone and resolves every name in it.
func resolve(d *descriptorpb.DescriptorProto) (*message, error) {
	r := &resolver{
		declared: map[string]*descriptorpb.DescriptorProto{},
		enums:    map[string]*descriptorpb.EnumDescriptorProto{},
		resolved: map[string]*message{},
	}
	if err := r.declare(d, "", 0); err != nil {
		return nil, err
	}
	for name := range r.declared {
		r.resolved[name] = &message{name: name}
	}
	for name, declared := range r.declared {
		if err := r.fill(r.resolved[name], declared); err != nil {
			return nil, err
		}
	}
	return r.resolved[d.GetName()], nil
}

func invalidProto(format string, args ...any) error {
	return &SchemaError{Message: "Invalid proto schema: " + fileName + ": " + fmt.Sprintf(format, args...)}
}

// maxDeclarations bounds how deep message types may be declared in one another, whatever their fields do.
const maxDeclarations = 64

func (r *resolver) declare(d *descriptorpb.DescriptorProto, scope string, depth int) error {
	name := within(scope, d.GetName())
	switch {
	case depth > maxDeclarations:
		return invalidProto("%s: messages are declared more than %d deep.", name, maxDeclarations)
	case !identifier(d.GetName()):
		return invalidProto("%q is not a valid identifier.", d.GetName())
	case r.declared[name] != nil || r.enums[name] != nil:
		return invalidProto("%q is already defined.", name)
	}
	r.declared[name] = d
	for _, e := range d.GetEnumType() {
		full := within(name, e.GetName())
		if !identifier(e.GetName()) || len(e.GetValue()) == 0 {
			return invalidProto("%s: not a valid enum.", full)
		}
		if r.declared[full] != nil || r.enums[full] != nil {
			return invalidProto("%q is already defined.", full)
		}
		r.enums[full] = e
	}
	for _, nested := range d.GetNestedType() {
		if err := r.declare(nested, name, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func within(scope, name string) string {
	if scope == "" {
		return name
	}
	return scope + "." + name
}

func identifier(s string) bool { return protoreflect.Name(s).IsValid() }

func (r *resolver) fill(m *message, d *descriptorpb.DescriptorProto) error {
	names, numbers := map[string]bool{}, map[int32]bool{}
	for _, fd := range d.GetField() {
		path := m.name + "." + fd.GetName()
		n := fd.GetNumber()
		switch {
		case !identifier(fd.GetName()):
			return invalidProto("%q is not a valid identifier.", path)
		case names[fd.GetName()]:
			return invalidProto("%q is already defined.", path)
		case numbers[n]:
			return invalidProto("%s: field number %d has already been used.", path, n)
		case !protowire.Number(n).IsValid() || n >= 19_000 && n <= 19_999:
			return invalidProto("%s: field number %d is not allowed.", path, n)
		case fd.GetProto3Optional():
			return invalidProto("%s: proto3_optional is set in a proto2 file.", path)
		case fd.OneofIndex != nil && (fd.GetOneofIndex() < 0 || int(fd.GetOneofIndex()) >= len(d.GetOneofDecl())):
			return invalidProto("%s: oneof index %d is out of range.", path, fd.GetOneofIndex())
		case fd.Extendee != nil:
			return invalidProto("%s: extensions are not allowed.", path)
		}
		names[fd.GetName()], numbers[n] = true, true
		f, err := r.field(m.name, path, fd)
		if err != nil {
			return err
		}
		m.fields = append(m.fields, f)
	}
	return nil
}

func (r *resolver) field(scope, path string, fd *descriptorpb.FieldDescriptorProto) (*protoField, error) {
	f := &protoField{
		name: fd.GetName(), column: fd.GetName(), number: protowire.Number(fd.GetNumber()), kind: protoreflect.Kind(fd.GetType()),
		repeated: fd.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED,
	}
	if fd.GetOptions() != nil && proto.HasExtension(fd.GetOptions(), storagepb.E_ColumnName) {
		f.column = proto.GetExtension(fd.GetOptions(), storagepb.E_ColumnName).(string)
	}
	if err := r.reference(f, scope, path, fd); err != nil {
		return nil, err
	}
	if !f.kind.IsValid() {
		return nil, invalidProto("%s: field type %d is unknown.", path, fd.GetType())
	}
	if fd.DefaultValue == nil {
		return f, nil
	}
	if f.repeated || f.message != nil {
		return nil, invalidProto("%s: only singular scalar fields have default values.", path)
	}
	var ok bool
	if f.fallback, ok = parseFallback(f, fd.GetDefaultValue()); !ok {
		return nil, invalidProto("%s: default value %q does not fit the type.", path, fd.GetDefaultValue())
	}
	f.hasFallback = true
	return f, nil
}

// reference resolves the type a field names. A field may leave out whether that is a message or an enum.
func (r *resolver) reference(f *protoField, scope, path string, fd *descriptorpb.FieldDescriptorProto) error {
	named := f.kind == protoreflect.MessageKind || f.kind == protoreflect.GroupKind || f.kind == protoreflect.EnumKind
	if fd.Type == nil && fd.GetTypeName() == "" {
		return invalidProto("%s: the field has no type.", path)
	}
	if !named && fd.Type != nil {
		return nil
	}
	name, ok := r.lookup(scope, fd.GetTypeName())
	if !ok {
		return invalidProto("%s: %q is not defined.", path, fd.GetTypeName())
	}
	m, e := r.resolved[name], r.enums[name]
	switch {
	case m != nil && f.kind != protoreflect.EnumKind:
		f.message = m
		if f.kind != protoreflect.GroupKind {
			f.kind = protoreflect.MessageKind
		}
	case e != nil && (f.kind == protoreflect.EnumKind || fd.Type == nil):
		f.kind = protoreflect.EnumKind
		f.enum = map[int32]string{}
		for _, v := range e.GetValue() {
			if _, aliased := f.enum[v.GetNumber()]; !aliased {
				f.enum[v.GetNumber()] = v.GetName()
			}
		}
	default:
		return invalidProto("%s: %q is not of the type the field says.", path, fd.GetTypeName())
	}
	return nil
}

// lookup finds a name from the innermost scope outwards, as protocol buffers do.
func (r *resolver) lookup(scope, name string) (string, bool) {
	if rest, absolute := strings.CutPrefix(name, "."); absolute {
		return rest, r.resolved[rest] != nil || r.enums[rest] != nil
	}
	for {
		full := within(scope, name)
		if r.resolved[full] != nil || r.enums[full] != nil {
			return full, true
		}
		if scope == "" {
			return "", false
		}
		scope = scope[:max(strings.LastIndexByte(scope, '.'), 0)]
	}
}
