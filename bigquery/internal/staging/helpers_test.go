package staging_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// stageable are the types that files carry.
var stageable = []table.Type{table.Bool, table.Int64, table.Float64, table.Numeric, table.BigNumeric, table.String, table.Bytes,
	table.Date, table.Time, table.DateTime, table.Timestamp, table.Geography, table.JSON, table.Struct}

func schemaOf(fields ...table.Field) *table.Schema { return &table.Schema{Fields: fields} }

func mustPlan(t testing.TB, s *table.Schema) *staging.Plan {
	t.Helper()
	d, err := row.Descriptor(s)
	if err != nil {
		t.Fatal(err)
	}
	p, err := staging.Compile(s, d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// planErrors compiles and returns "kind path" of every fault.
func planErrors(t testing.TB, s *table.Schema, d *descriptorpb.DescriptorProto) (faults []string) {
	t.Helper()
	_, err := staging.Compile(s, d)
	return kinds(t, err)
}

func kinds(t testing.TB, err error) (faults []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		var e *row.Error
		if !errors.As(err, &e) {
			t.Fatalf("%v is no *row.Error", err)
		}
		faults = append(faults, string(e.Kind)+" "+e.Path)
	}
	return faults
}

// descriptor is a message of the fields given as "name:type", in order, with the repeated ones marked "*".
func descriptor(fields ...string) *descriptorpb.DescriptorProto {
	d := &descriptorpb.DescriptorProto{Name: proto.String("Mine")}
	for i, f := range fields {
		name, typ, _ := strings.Cut(f, ":")
		typ, repeated := strings.CutSuffix(typ, "*")
		label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		if repeated {
			label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		}
		d.Field = append(d.Field, &descriptorpb.FieldDescriptorProto{Name: proto.String(name), Number: proto.Int32(int32(i + 1)), Label: label.Enum(),
			Type: descriptorpb.FieldDescriptorProto_Type(descriptorpb.FieldDescriptorProto_Type_value["TYPE_"+strings.ToUpper(typ)]).Enum()})
	}
	return d
}

// native makes a second library read values as the types they are annotated on, which loses nothing.
var native = []avro.SchemaOpt{
	avro.CustomType{LogicalType: "date"}, avro.CustomType{LogicalType: "time-micros"}, avro.CustomType{LogicalType: "timestamp-micros"},
	avro.CustomType{LogicalType: "local-timestamp-micros"}, avro.CustomType{LogicalType: "decimal"},
}

// decode reads a datum with a second library.
func decode(t testing.TB, p *staging.Plan, datum []byte) []row.Value {
	t.Helper()
	s, err := avro.Parse(staging.AvroSchema(p), native...)
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	rest, err := s.Decode(datum, &record)
	if err != nil || len(rest) > 0 {
		t.Fatalf("%x: %v, %d bytes are left", datum, err, len(rest))
	}
	return values(p.Root, record)
}

func values(m *staging.Message, record map[string]any) []row.Value {
	out := make([]row.Value, len(m.Columns))
	for i := range m.Columns {
		c := &m.Columns[i]
		v := record[c.Field.Name]
		if !c.Repeated() {
			out[i] = value(c, v)
			continue
		}
		for _, e := range v.([]any) {
			out[i].List = append(out[i].List, value(c, e))
		}
	}
	return out
}

func value(c *staging.Column, v any) row.Value {
	switch v := v.(type) {
	case nil:
		return row.Value{Null: true}
	case bool:
		if v {
			return row.Value{Int: 1}
		}
		return row.Value{}
	case int32:
		return row.Value{Int: int64(v)}
	case int64:
		return row.Value{Int: v}
	case float64:
		return row.Value{Int: int64(math.Float64bits(v))}
	case string:
		return row.Value{Bytes: []byte(v)}
	case map[string]any:
		return row.Value{List: values(c.Message, v)}
	case []byte:
		if c.Kind != staging.Decimal {
			return row.Value{Bytes: v}
		}
		return wireDecimal(c, v)
	}
	panic(fmt.Sprintf("%s is %T", c.Field.Name, v))
}

// wireDecimal is a decimal of the column's scale in the form of row.Value.
func wireDecimal(c *staging.Column, unscaled []byte) row.Value {
	v, err := row.ScaledFromBigEndian(unscaled)
	if err == nil {
		v, err = c.Decimal.FromBig(v.Rat(0).Num(), c.Decimal.FractionDigits())
	}
	if err != nil {
		panic(err)
	}
	return row.Value{Bytes: v.AppendBigEndian(nil), Int: int64(c.Decimal.Scale())}
}
