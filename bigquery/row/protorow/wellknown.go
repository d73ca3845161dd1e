package protorow

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// Messages of protobuf's own are known by their names and their fields: descriptors that were read from bytes are copies,
// and a message that only has such a name is the STRUCT that its author wrote.

// wellKnownOp is how a message of protobuf's own is read, 0 for a STRUCT.
func wellKnownOp(md protoreflect.MessageDescriptor) op {
	name, ours := strings.CutPrefix(string(md.FullName()), "google.protobuf.")
	if !ours {
		return 0
	}
	switch name {
	case "Timestamp", "Duration":
		if s, n := member(md, "seconds"), member(md, "nanos"); s == nil || n == nil || !isInt64(s) || !isInt32(n) {
			return 0
		}
		if name == "Timestamp" {
			return opTimestamp
		}
		return opDuration
	case "FieldMask":
		if p := md.Fields().ByName("paths"); p != nil && p.IsList() && p.Kind() == protoreflect.StringKind {
			return opFieldMask
		}
	case "Int32Value", "UInt32Value", "Int64Value", "UInt64Value", "FloatValue", "DoubleValue", "BoolValue", "StringValue", "BytesValue":
		if v := member(md, "value"); v != nil && v.Message() == nil {
			return opWrapper
		}
	}
	return 0
}

// member is a singular field, nil when there is none.
func member(md protoreflect.MessageDescriptor, name protoreflect.Name) protoreflect.FieldDescriptor {
	fd := md.Fields().ByName(name)
	if fd == nil || fd.Cardinality() == protoreflect.Repeated {
		return nil
	}
	return fd
}

func isInt64(fd protoreflect.FieldDescriptor) bool {
	return slices.Contains([]protoreflect.Kind{protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind}, fd.Kind())
}

func isInt32(fd protoreflect.FieldDescriptor) bool {
	return slices.Contains([]protoreflect.Kind{protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind}, fd.Kind())
}

// wellKnownColumn plans a message of which wellKnownOp said how it is read. Its members are those that are read, in the
// order that scratch.wellKnown expects.
func (c *compiler) wellKnownColumn(col *column, f *table.Field, o op, md protoreflect.MessageDescriptor) {
	col.op = o
	var names []protoreflect.Name
	switch o {
	case opTimestamp:
		f.Type, names = table.Timestamp, []protoreflect.Name{"seconds", "nanos"}
	case opDuration:
		f.Type, names = table.Int64, []protoreflect.Name{"seconds", "nanos"}
	case opFieldMask:
		f.Type, names = table.String, []protoreflect.Name{"paths"}
	case opWrapper:
		names = []protoreflect.Name{"value"}
	}
	col.members = &message{columns: make([]column, len(names))}
	for i, name := range names {
		fd := md.Fields().ByName(name)
		m := &col.members.columns[i]
		m.name, m.number, m.list = string(name), fd.Number(), fd.IsList()
		var t table.Type
		m.op, m.wire, t = scalar(fd.Kind())
		if o == opWrapper {
			f.Type = t
		}
		if fd.Kind() == protoreflect.EnumKind {
			m.enum = enumOf(fd.Enum())
		}
	}
	col.members.index()
}

// printedSpecially are the messages of protobuf's own that have a JSON form of their own (protobuf.dev, "ProtoJSON
// Format"), as they are declared.
var printedSpecially = func() map[protoreflect.FullName]protoreflect.MessageType {
	types := map[protoreflect.FullName]protoreflect.MessageType{}
	for _, m := range []protoreflect.ProtoMessage{
		&anypb.Any{}, &timestamppb.Timestamp{}, &durationpb.Duration{}, &fieldmaskpb.FieldMask{}, &emptypb.Empty{},
		&structpb.Struct{}, &structpb.Value{}, &structpb.ListValue{},
		&wrapperspb.Int32Value{}, &wrapperspb.UInt32Value{}, &wrapperspb.Int64Value{}, &wrapperspb.UInt64Value{},
		&wrapperspb.FloatValue{}, &wrapperspb.DoubleValue{}, &wrapperspb.BoolValue{}, &wrapperspb.StringValue{}, &wrapperspb.BytesValue{},
	} {
		types[m.ProtoReflect().Descriptor().FullName()] = m.ProtoReflect().Type()
	}
	return types
}()

// alwaysJSON says whether a message becomes a JSON column without being marked.
func alwaysJSON(md protoreflect.MessageDescriptor) bool {
	o, _ := structOp(md)
	return o != opJSON && misshapen(md) == nil
}

// structOp is how a printed message is printed, and its plan: the messages of struct.proto have ones of their own.
func structOp(md protoreflect.MessageDescriptor) (op, *message) {
	switch md.FullName() {
	case "google.protobuf.Struct":
		return opStructJSON, structPlan
	case "google.protobuf.Value":
		return opValueJSON, valuePlan
	case "google.protobuf.ListValue":
		return opListJSON, listPlan
	}
	return opJSON, nil
}

// misshapen finds a message, among md and what it holds, that has the name of one of protobuf's own with a special JSON
// form, and not its fields; nil when there is none.
func misshapen(md protoreflect.MessageDescriptor) protoreflect.MessageDescriptor {
	queue := []protoreflect.MessageDescriptor{md}
	seen := map[protoreflect.FullName]bool{md.FullName(): true}
	for len(queue) > 0 {
		m := queue[0]
		queue = queue[1:]
		if own := printedSpecially[m.FullName()]; own != nil && !sameFields(m, own.Descriptor()) {
			return m
		}
		for i := range m.Fields().Len() {
			if inner := m.Fields().Get(i).Message(); inner != nil && !seen[inner.FullName()] {
				seen[inner.FullName()] = true
				queue = append(queue, inner)
			}
		}
	}
	return nil
}

// sameFields says whether two messages have the same fields, so that one can be read as the other.
func sameFields(m, own protoreflect.MessageDescriptor) bool {
	if m.Fields().Len() != own.Fields().Len() {
		return false
	}
	for i := range own.Fields().Len() {
		want := own.Fields().Get(i)
		got := m.Fields().ByNumber(want.Number())
		if got == nil || got.Name() != want.Name() || got.Kind() != want.Kind() || got.Cardinality() != want.Cardinality() ||
			got.IsMap() != want.IsMap() || (got.ContainingOneof() == nil) != (want.ContainingOneof() == nil) {
			return false
		}
		if want.Message() != nil && !want.IsMap() && got.Message().FullName() != want.Message().FullName() {
			return false
		}
		if want.IsMap() && (got.MapKey().Kind() != want.MapKey().Kind() || got.MapValue().Message() == nil ||
			got.MapValue().Message().FullName() != want.MapValue().Message().FullName()) {
			return false
		}
	}
	return true
}

// printable is the type that messages are printed as: protobuf's own where they are that, for these are read faster.
func printable(t protoreflect.MessageType) protoreflect.MessageType {
	if own := printedSpecially[t.Descriptor().FullName()]; own != nil {
		return own
	}
	return t
}
