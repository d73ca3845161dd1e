package rowtest

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// standalone builds the message with nothing else around it, as the service does.
func standalone(d *descriptorpb.DescriptorProto) (protoreflect.MessageDescriptor, error) {
	f, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("row.proto"), Syntax: proto.String("proto2"), MessageType: []*descriptorpb.DescriptorProto{d},
	}, nil)
	if err != nil {
		return nil, err
	}
	return f.Messages().Get(0), nil
}

func sameMessage(a, b *descriptorpb.DescriptorProto) bool { return proto.Equal(a, b) }

// descriptor checks the descriptor; what does not fit the schema cannot be decoded by it, so nothing else is checked then.
func (s *suite[T]) descriptor() bool {
	var err error
	if s.built, err = standalone(s.message); err != nil {
		s.problem(CheckDescriptor, "", "it does not stand alone: %v", err)
		return false
	}
	faults := compare(nil, s.message, s.built, s.schema.Fields, "")
	for _, fault := range faults {
		s.problem(CheckDescriptor, "", "%s", fault)
	}
	return len(faults) == 0
}

// compare lists where a message does not fit columns.
func compare(faults []string, d *descriptorpb.DescriptorProto, md protoreflect.MessageDescriptor, columns []table.Field, path string) []string {
	if len(d.Field) != len(columns) {
		return append(faults, fmt.Sprintf("%d fields for %d columns at %q", len(d.Field), len(columns), path))
	}
	for i, f := range d.Field {
		c := &columns[i]
		at := table.Join(path, c.Name)
		if table.FoldName(row.ColumnName(f)) != table.FoldName(c.Name) {
			faults = append(faults, fmt.Sprintf("field %d is for %q, want %q", f.GetNumber(), row.ColumnName(f), at))
		}
		fd := md.Fields().ByNumber(protoreflect.FieldNumber(f.GetNumber()))
		if (c.Mode == table.Repeated) != fd.IsList() {
			faults = append(faults, fmt.Sprintf("%s is a list: %v, its column is %v", at, fd.IsList(), c.Mode))
		}
		if !slices.Contains(kindsOf(c.Type), fd.Kind()) {
			faults = append(faults, fmt.Sprintf("%s is %v, which its column, %v, does not take", at, fd.Kind(), c.Type))
			continue
		}
		if members := row.Members(c); members != nil {
			inner := protodesc.ToDescriptorProto(fd.Message())
			faults = compare(faults, inner, fd.Message(), members, at)
		}
	}
	return faults
}

// kindsOf are the protobuf kinds that a column takes and decode understands.
func kindsOf(t table.Type) []protoreflect.Kind {
	switch t {
	case table.Bool:
		return []protoreflect.Kind{protoreflect.BoolKind}
	case table.Int64, table.Time, table.DateTime, table.Timestamp:
		return []protoreflect.Kind{protoreflect.Int64Kind}
	case table.Date:
		return []protoreflect.Kind{protoreflect.Int32Kind}
	case table.Float64:
		return []protoreflect.Kind{protoreflect.DoubleKind}
	case table.Numeric, table.BigNumeric, table.Bytes:
		return []protoreflect.Kind{protoreflect.BytesKind}
	case table.Struct, table.Range:
		return []protoreflect.Kind{protoreflect.MessageKind}
	}
	return []protoreflect.Kind{protoreflect.StringKind}
}
