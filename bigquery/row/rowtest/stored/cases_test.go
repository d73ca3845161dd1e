package stored_test

import (
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// TestValues stores the values that the conformance cases name for types, whatever format they come in.
func TestValues(t *testing.T) {
	l := stored.Start(t)
	of := func(typ table.Type) table.Field { return table.Field{Name: "f", Type: typ} }
	listOf := func(typ table.Type) table.Field { return table.Field{Name: "f", Type: typ, Mode: table.Repeated} }
	number := func(n int64) row.Value { return row.Value{Int: n} }
	const last = 253402300799999999 // 9999-12-31T23:59:59.999999
	for _, c := range []struct {
		name  string
		field table.Field
		value row.Value
	}{
		{"SER-2 a row without a value", of(table.Int64), rowtest.Null},
		{"SER-137 TIME 23:59:59.999999", of(table.Time), number(86_399_999_999)},
		{"SER-137 DATETIME 9999-12-31T23:59:59.999999", of(table.DateTime), number(last)},
		{"SER-137 DATETIME 1969-12-31T23:59:59.999999", of(table.DateTime), number(-1)},
		{"DATETIME 0001-01-01", of(table.DateTime), number(row.MinMicros)},
		{"TIMESTAMP 9999-12-31T23:59:59.999999Z", of(table.Timestamp), number(last)},
		{"SER-157 TIMESTAMP -1", of(table.Timestamp), number(-1)},
		{"SER-139 NUMERIC 0", of(table.Numeric), rowtest.Decimal(table.Numeric, "0")},
		{"SER-139 NUMERIC -1", of(table.Numeric), rowtest.Decimal(table.Numeric, "-1")},
		{"SER-139 NUMERIC -0.000000001", of(table.Numeric), rowtest.Decimal(table.Numeric, "-0.000000001")},
		{"SER-139 NUMERIC at its end", of(table.Numeric), rowtest.Decimal(table.Numeric, "99999999999999999999999999999.999999999")},
		{"SER-140 BIGNUMERIC at its end", of(table.BigNumeric), rowtest.Decimal(table.BigNumeric, "578960446186580977117854925043439539266.34992332820282019728792003956564819967")},
		{"BIGNUMERIC at its beginning", of(table.BigNumeric), rowtest.Decimal(table.BigNumeric, "-578960446186580977117854925043439539266.34992332820282019728792003956564819968")},
		{"SER-142 INT64 in a list", listOf(table.Int64), rowtest.List(number(1), number(2), number(300))},
		{"SER-143 INT64 0", of(table.Int64), number(0)},
		{"SER-143 INT64 unset", of(table.Int64), rowtest.Null},
		{"SER-144 a flexible name", table.Field{Name: "1st-name", Type: table.Int64}, number(7)},
		{"SER-144 a STRUCT of a flexible name", table.Field{Name: "größe +", Type: table.Struct, Fields: []table.Field{{Name: "a b", Type: table.String}}}, rowtest.List(rowtest.Text("x"))},
		{"SER-145 INTERVAL", of(table.Interval), rowtest.List(number(14), number(-3), number(14_706_500_000))},
		{"SER-146 REQUIRED INT64", table.Field{Name: "f", Type: table.Int64, Mode: table.Required}, number(math.MinInt64)},
		{"SER-146 REPEATED STRING", listOf(table.String), rowtest.List(rowtest.Text("a"), rowtest.Text(""))},
		{"SER-147 NUMERIC(10,2)", table.Field{Name: "f", Type: table.Numeric, Precision: 10, Scale: 2}, rowtest.Decimal(table.Numeric, "-12345678.9")},
		{"SER-148 NUMERIC 123.456", of(table.Numeric), rowtest.Decimal(table.Numeric, "123.456")},
		{"SER-149 DATETIME 2024-03-05T06:07:08.000009", of(table.DateTime), number(1709618828000009)},
		{"SER-149 TIME 06:07:08.000009", of(table.Time), number(22028000009)},
		{"SER-152 STRUCTs of one name in two places", table.Field{Name: "f", Type: table.Struct, Fields: []table.Field{
			{Name: "a", Type: table.Struct, Fields: []table.Field{{Name: "child", Type: table.Struct, Fields: []table.Field{{Name: "x", Type: table.Int64}}}}},
			{Name: "b", Type: table.Struct, Fields: []table.Field{{Name: "child", Type: table.Struct, Fields: []table.Field{{Name: "y", Type: table.String}}}}}}},
			rowtest.List(rowtest.List(rowtest.List(number(1))), rowtest.List(rowtest.List(rowtest.Text("y"))))},
		{"SER-153 RANGE, which no file carries", table.Field{Name: "f", Type: table.Range, Range: table.DateTime}, rowtest.List(rowtest.Null, number(1))},
		{"SER-154 text without a letter", of(table.String), rowtest.Text("")},
		{"SER-154 text unset", of(table.String), rowtest.Null},
		{"SER-154 list without an element", listOf(table.String), row.Value{}},
		{"SER-155 JSON", of(table.JSON), rowtest.Text(`{"a":[1]}`)},
		{"SER-156 a list of STRUCTs with lists", table.Field{Name: "f", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "l", Type: table.Date, Mode: table.Repeated}}},
			rowtest.List(rowtest.List(row.Value{}), rowtest.List(rowtest.List(number(-719162), number(2932896))))},
		{"SER-158 DATETIME of whole seconds", of(table.DateTime), number(1_000_000)},
		{"SER-162 RANGE without an end", table.Field{Name: "f", Type: table.Range, Range: table.Date}, rowtest.List(number(-1), rowtest.Null)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &table.Schema{Fields: []table.Field{c.field}}
			if _, err := stored.Check(t.Context(), l, rowtest.OfValues(s), [][]row.Value{{c.value}}, []row.Value{c.value}); err != nil {
				t.Error(err)
			}
		})
	}
}

// literals has texts for a DATETIME column, as descriptors of one's own may.
type literals struct{ rowtest.Values }

func (literals) Descriptor(table.Destination) (*descriptorpb.DescriptorProto, error) {
	s := table.Schema{Fields: []table.Field{{Name: "f", Type: table.String}}}
	return row.Descriptor(&s)
}

func (literals) AppendRow(buf []byte, _ table.Destination, values []row.Value) ([]byte, error) {
	return protowire.AppendBytes(append(buf, 10), values[0].Bytes), nil
}

// TestLiteralsLoaded: texts for DATETIME columns are staged as what they mean.
func TestLiteralsLoaded(t *testing.T) {
	l := stored.Start(t)
	s := &table.Schema{Fields: []table.Field{{Name: "f", Type: table.DateTime}}}
	for text, want := range map[string]int64{"2026-08-04T12:34:56.123456789": 1785846896123456, "2026-08-04": 1785801600000000, "1969-12-31T23:59:59.500000": -500000} {
		t.Run("SER-150 "+text, func(t *testing.T) {
			dst := l.NewTable()
			data, err := stored.Stage(dst, staging.Avro, literals{rowtest.OfValues(s)}, []row.Value{rowtest.Text(text)})
			if err == nil {
				err = l.Load(t.Context(), dst, staging.Avro, s, data)
			}
			if err == nil {
				err = l.Holds(t.Context(), dst, s, [][]row.Value{{{Int: want}}})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}
