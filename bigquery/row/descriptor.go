package row

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// columnNameOption is the number of the field option that carries a column's name where the field's own cannot
// (google/cloud/bigquery/storage/v1/annotations.proto, column_name). It is written as bytes: the generated code would
// bring in the whole client.
const columnNameOption protowire.Number = 454943157

// CheckSchema returns the faults of a schema as joined *Error values of the C kinds, nil when rows of it can be written.
func CheckSchema(s *table.Schema) error {
	err := s.Validate()
	if err == nil {
		return nil
	}
	faults := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		faults = joined.Unwrap()
	}
	for i, e := range faults {
		var f *table.Fault
		if errors.As(e, &f) {
			faults[i] = &Error{Kind: Kind(f.Kind), Path: f.Path, Offset: -1, Msg: f.Msg}
		}
	}
	return errors.Join(faults...)
}

// Descriptor derives the message that rows of a table are: proto2, self-contained, field i+1 for column i. Rows made by
// this package's functions fit it. The error is that of CheckSchema.
//
// A field is named after its column, in lower case. Where the column's name is no protobuf identifier, the field is called
// col_ and the name's bytes in hexadecimal, and the option column_name holds the name.
func Descriptor(s *table.Schema) (*descriptorpb.DescriptorProto, error) {
	if err := CheckSchema(s); err != nil {
		return nil, err
	}
	return message("Row", s.Fields), nil
}

func message(name string, fields []table.Field) *descriptorpb.DescriptorProto {
	m := &descriptorpb.DescriptorProto{Name: proto.String(name)}
	names := fieldNames(fields)
	for i := range fields {
		f := &fields[i]
		d := FieldDescriptor(f, names[i], FieldNumber(i))
		if members := Members(f); members != nil {
			// Names of nested messages hold their path, so that no scope has one twice.
			nested := name + "_" + strconv.Itoa(i+1)
			d.TypeName = proto.String(nested)
			m.NestedType = append(m.NestedType, message(nested, members))
		}
		d.Options = fieldOptions(f, names[i])
		m.Field = append(m.Field, d)
	}
	return m
}

// FieldDescriptor is the field of a row message for a column, under the given name and number. What a STRUCT or a RANGE holds,
// and options, are left to the caller.
func FieldDescriptor(f *table.Field, name string, n protowire.Number) *descriptorpb.FieldDescriptorProto {
	return &descriptorpb.FieldDescriptorProto{
		Name:   proto.String(name),
		Number: proto.Int32(int32(n)),
		Label:  label(f.Mode).Enum(),
		Type:   wireType(f).Enum(),
	}
}

// FieldNumber is the field number of column i.
func FieldNumber(i int) protowire.Number { return protowire.Number(i + 1) }

// Members are the fields of the message that a column's values are: those of a STRUCT, start and end of a RANGE, and nil
// for scalars.
func Members(f *table.Field) []table.Field {
	switch f.Type {
	case table.Struct:
		return f.Fields
	case table.Range:
		return []table.Field{{Name: "start", Type: f.Range}, {Name: "end", Type: f.Range}}
	}
	return nil
}

// fieldNames names the fields of siblings. Placeholders give way to columns that are really called so.
func fieldNames(fields []table.Field) []string {
	names := make([]string, len(fields))
	taken := make(map[string]bool, len(fields))
	for i := range fields {
		if table.Identifier(fields[i].Name) {
			names[i] = strings.ToLower(fields[i].Name)
			taken[names[i]] = true
		}
	}
	for i := range fields {
		if names[i] != "" {
			continue
		}
		name := "col_" + hex.EncodeToString([]byte(fields[i].Name))
		for taken[name] {
			name += "_"
		}
		names[i], taken[name] = name, true
	}
	return names
}

func fieldOptions(f *table.Field, name string) *descriptorpb.FieldOptions {
	packed := f.Mode == table.Repeated && Packed(f)
	flexible := !table.Identifier(f.Name)
	if !packed && !flexible {
		return nil
	}
	o := &descriptorpb.FieldOptions{}
	if packed {
		o.Packed = proto.Bool(true)
	}
	if flexible {
		b := protowire.AppendTag(nil, columnNameOption, protowire.BytesType)
		o.ProtoReflect().SetUnknown(protowire.AppendString(b, f.Name))
	}
	return o
}

// ColumnName is the name of the column a field of a row message belongs to: the option column_name where it is set, the
// field's own name where not. Names of fields are in lower case; columns are found ignoring case.
func ColumnName(d *descriptorpb.FieldDescriptorProto) string {
	// The option is a known extension in programs that link the client, and unknown bytes in others. Marshalling makes
	// both the same.
	b, err := proto.Marshal(d.GetOptions())
	if err != nil {
		return d.GetName()
	}
	name := d.GetName()
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return name
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return name
		}
		if num == columnNameOption && typ == protowire.BytesType {
			v, _ := protowire.ConsumeString(b[n:])
			name = v
		}
		b = b[n+size:]
	}
	return name
}

func label(m table.Mode) descriptorpb.FieldDescriptorProto_Label {
	switch m {
	case table.Required:
		return descriptorpb.FieldDescriptorProto_LABEL_REQUIRED
	case table.Repeated:
		return descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	}
	return descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
}

func wireType(f *table.Field) descriptorpb.FieldDescriptorProto_Type {
	switch f.Type {
	case table.Bool:
		return descriptorpb.FieldDescriptorProto_TYPE_BOOL
	case table.Int64, table.Time, table.DateTime, table.Timestamp:
		return descriptorpb.FieldDescriptorProto_TYPE_INT64
	case table.Date:
		return descriptorpb.FieldDescriptorProto_TYPE_INT32
	case table.Float64:
		return descriptorpb.FieldDescriptorProto_TYPE_DOUBLE
	case table.Bytes, table.Numeric, table.BigNumeric:
		return descriptorpb.FieldDescriptorProto_TYPE_BYTES
	case table.Struct, table.Range:
		return descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	}
	return descriptorpb.FieldDescriptorProto_TYPE_STRING
}
