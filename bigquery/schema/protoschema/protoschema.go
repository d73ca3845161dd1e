// Package protoschema turns a table's schema into the descriptor of its rows and back, losing nothing.
//
// The message is what [row.Descriptor] derives. What a descriptor has no place for lies in an option of the message, whose number
// is [Option] and whose value is the schema as JSON; programs that do not know it pass it on.
package protoschema

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/protorow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Option is the number of the message option that carries a table's schema. It is one of those that protobuf keeps for use
// inside an organisation (descriptor.proto, MessageOptions).
const Option protowire.Number = 71_177

// Write is a descriptor set with one file, whose one message, Row, is a table's rows. The error is that of row.CheckSchema.
func Write(s *table.Schema) (*descriptorpb.FileDescriptorSet, error) {
	m, err := row.Descriptor(s)
	if err != nil {
		return nil, err
	}
	m.Options = &descriptorpb.MessageOptions{}
	m.Options.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, Option, protowire.BytesType), s.CompactJSON()))
	return &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: proto.String("row.proto"), Syntax: proto.String("proto2"), MessageType: []*descriptorpb.DescriptorProto{m},
	}}}, nil
}

// Read is the table's schema that a message was written for, found by its full name in the bytes of a descriptor set. One that
// Write did not write, or that was changed since, is read as package protorow reads it; see there for the errors.
func Read(set []byte, message string) (*table.Schema, error) {
	if s := kept(set, message); s != nil {
		return s, nil
	}
	md, err := protorow.MessageOf(set, message)
	if err != nil {
		return nil, err
	}
	p, err := protorow.Of[*dynamicpb.Message](md, protorow.Options{DeriveRequired: true})
	if err != nil {
		return nil, err
	}
	return p.Schema(table.Destination{})
}

// kept is the schema that a message of the set carries, nil where it carries none that is still its own.
func kept(set []byte, message string) *table.Schema {
	var files descriptorpb.FileDescriptorSet
	if proto.Unmarshal(set, &files) != nil {
		return nil
	}
	for _, f := range files.File {
		for _, m := range f.MessageType {
			if name := m.GetName(); name != message && f.GetPackage()+"."+name != message {
				continue
			}
			if s, err := option(m); err == nil && own(s, m) {
				return s
			}
		}
	}
	return nil
}

var errNoOption = errors.New("the message carries no schema")

func option(m *descriptorpb.DescriptorProto) (*table.Schema, error) {
	for b := m.GetOptions().ProtoReflect().GetUnknown(); len(b) > 0; {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			break
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			break
		}
		if num == Option && typ == protowire.BytesType {
			text, _ := protowire.ConsumeBytes(b[n:])
			return table.ParseSchemaJSON(text)
		}
		b = b[n+size:]
	}
	return nil, errNoOption
}

// own says whether the rows of a schema are that message.
func own(s *table.Schema, m *descriptorpb.DescriptorProto) bool {
	want, err := row.Descriptor(s)
	if err != nil {
		return false
	}
	bare := proto.CloneOf(m)
	bare.Options = nil
	want.Name = bare.Name
	return proto.Equal(bare, want)
}
