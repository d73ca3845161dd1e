package added

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// plan is what is derived for one destination under one fingerprint.
type plan struct {
	fingerprint uint64
	schema      *table.Schema
	descriptor  *descriptorpb.DescriptorProto
	tags        [][]byte // of fields, then of pseudo fields
}

// derive makes a plan. The schema is looked at before the descriptor, and both before any field's function is called.
func (s *Serializer[T]) derive(dst table.Destination, fingerprint uint64) (*plan, error) {
	schema, err := s.inner.Schema(dst)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(s.fields, s.pseudo)
	taken := map[string]string{}
	for i := range schema.Fields {
		taken[table.FoldName(schema.Fields[i].Name)] = schema.Fields[i].Name
	}
	if err := collision(all, taken, "column"); err != nil {
		return nil, err
	}
	message, err := s.inner.Descriptor(dst)
	if err != nil {
		return nil, err
	}
	clear(taken)
	for _, f := range message.GetField() {
		name := row.ColumnName(f)
		taken[table.FoldName(name)] = name
	}
	if err := collision(all, taken, "descriptor field"); err != nil {
		return nil, err
	}
	p := &plan{fingerprint: fingerprint, schema: &table.Schema{Fields: slices.Clone(schema.Fields)}}
	for i := range s.fields {
		p.schema.Fields = append(p.schema.Fields, s.fields[i].column())
	}
	if err := row.CheckSchema(p.schema); err != nil {
		return nil, err
	}
	p.descriptor = proto.Clone(message).(*descriptorpb.DescriptorProto)
	return p, extend(p, all)
}

func collision[T any](fields []Field[T], taken map[string]string, what string) error {
	for i := range fields {
		if name, ok := taken[table.FoldName(fields[i].name)]; ok {
			return &row.Error{Kind: row.KindCase, Path: fields[i].name, Offset: -1,
				Msg: fmt.Sprintf("the rows that it is added to have a %s %q already: BigQuery ignores case in names", what, name)}
		}
	}
	return nil
}

// extend adds a field to the plan's descriptor for each column, and its tag to the plan.
func extend[T any](p *plan, fields []Field[T]) error {
	number := protowire.Number(0)
	for _, f := range p.descriptor.GetField() {
		number = max(number, protowire.Number(f.GetNumber()))
	}
	for i := range fields {
		var ok bool
		if number, ok = free(p.descriptor, number+1); !ok {
			return &row.Error{Kind: row.KindDesc, Path: fields[i].name, Offset: -1,
				Msg: "no field number is left in the descriptor of the rows that it is added to"}
		}
		c := fields[i].column()
		p.descriptor.Field = append(p.descriptor.Field, row.FieldDescriptor(&c, strings.ToLower(c.Name), number))
		p.tags = append(p.tags, protowire.AppendTag(nil, number, row.WireType(&c)))
	}
	return nil
}

// span is a range of field numbers, its end excluded.
type span interface {
	GetStart() int32
	GetEnd() int32
}

// free is the first field number from n on that a message may use: none that it keeps for itself, keeps for extensions, or
// that protobuf keeps for itself.
func free(m *descriptorpb.DescriptorProto, n protowire.Number) (protowire.Number, bool) {
	var kept []span
	for _, r := range m.GetReservedRange() {
		kept = append(kept, r)
	}
	for _, r := range m.GetExtensionRange() {
		kept = append(kept, r)
	}
	for moved := true; moved; {
		moved = false
		if n >= protowire.FirstReservedNumber && n <= protowire.LastReservedNumber {
			n, moved = protowire.LastReservedNumber+1, true
		}
		for _, r := range kept {
			if int32(n) >= r.GetStart() && int32(n) < r.GetEnd() {
				n, moved = protowire.Number(r.GetEnd()), true
			}
		}
	}
	return n, n <= protowire.MaxValidNumber
}
