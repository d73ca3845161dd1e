package rowtest

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Types are all column types.
func Types() (all []table.Type) {
	for t := table.Bool; t <= table.Struct; t++ {
		all = append(all, t)
	}
	return all
}

// Schemas draws valid schemas of columns of those types, with at most depth levels of STRUCT. Names are identifiers.
func Schemas(types []table.Type, depth int) *rapid.Generator[*table.Schema] {
	return rapid.Custom(func(t *rapid.T) *table.Schema { return &table.Schema{Fields: fields(t, types, depth)} })
}

func fields(t *rapid.T, types []table.Type, depth int) []table.Field {
	out := make([]table.Field, rapid.IntRange(1, 5).Draw(t, "columns"))
	for i := range out {
		f := &out[i]
		f.Name = fmt.Sprintf("c%d%s", i, rapid.StringMatching(`[A-Za-z_]{0,2}`).Draw(t, "name"))
		f.Mode = rapid.SampledFrom([]table.Mode{table.Nullable, table.Required, table.Repeated}).Draw(t, "mode")
		f.Type = anyType(t, types, depth)
		switch f.Type {
		case table.Struct:
			f.Fields = fields(t, types, depth-1)
		case table.Range:
			f.Range = rapid.SampledFrom([]table.Type{table.Date, table.DateTime, table.Timestamp}).Draw(t, "element")
		case table.Numeric, table.BigNumeric:
			if rapid.Bool().Draw(t, "parameters") {
				integer, fraction := f.Type.DecimalDigits()
				f.Scale = rapid.Int64Range(0, fraction).Draw(t, "scale")
				f.Precision = rapid.Int64Range(max(1, f.Scale), f.Scale+integer).Draw(t, "precision")
			}
		}
	}
	return out
}

// anyType draws a type. STRUCT comes often, so that schemas are deep now and then.
func anyType(t *rapid.T, types []table.Type, depth int) table.Type {
	scalars := slices.DeleteFunc(slices.Clone(types), func(t table.Type) bool { return t == table.Struct })
	if depth > 0 && len(scalars) < len(types) && rapid.IntRange(0, 3).Draw(t, "struct") == 3 {
		return table.Struct
	}
	return rapid.SampledFrom(scalars).Draw(t, "type")
}

// Flexible renames columns of a schema, in every third draw, to names that are no identifiers: such names need more of every format.
func Flexible(t *rapid.T, s *table.Schema) {
	if rapid.IntRange(0, 2).Draw(t, "flexible") == 2 {
		rename(t, s.Fields)
	}
}

func rename(t *rapid.T, fields []table.Field) {
	for i := range fields {
		if rapid.Bool().Draw(t, "rename") {
			fields[i].Name = rapid.SampledFrom([]string{"größe", "1st", "a b", "日本", "x-y", "%", "'q'", "Ω&="}).Draw(t, "name") + strconv.Itoa(i)
		}
		rename(t, fields[i].Fields)
	}
}

// Rows draws the values of a row, often from the ends of their range.
func Rows(s *table.Schema) *rapid.Generator[[]row.Value] {
	return rapid.Custom(func(t *rapid.T) []row.Value { return anyValues(t, s.Fields) })
}

func anyValues(t *rapid.T, fields []table.Field) []row.Value {
	out := make([]row.Value, len(fields))
	for i := range fields {
		f := &fields[i]
		switch {
		case f.Mode == table.Repeated:
			for range rapid.IntRange(0, 3).Draw(t, "elements") {
				out[i].List = append(out[i].List, anyValue(t, f))
			}
		case f.Mode == table.Nullable && rapid.Bool().Draw(t, "null"):
			out[i].Null = true
		default:
			out[i] = anyValue(t, f)
		}
	}
	return out
}

func anyValue(t *rapid.T, f *table.Field) row.Value {
	switch f.Type {
	case table.Bool:
		return row.Value{Int: between(t, 0, 1)}
	case table.Int64:
		return row.Value{Int: between(t, math.MinInt64, math.MaxInt64)}
	case table.Float64:
		return Float(rapid.OneOf(rapid.Float64(), rapid.SampledFrom(oddFloats)).Draw(t, "float"))
	case table.Date:
		return row.Value{Int: between(t, row.MinDays, row.MaxDays)}
	case table.Time:
		return row.Value{Int: between(t, 0, 86_400_000_000-1)}
	case table.DateTime, table.Timestamp:
		return row.Value{Int: between(t, row.MinMicros, row.MaxMicros)}
	case table.Numeric, table.BigNumeric:
		return anyDecimal(t, f)
	case table.Bytes:
		return row.Value{Bytes: rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")}
	case table.JSON:
		return Text(anyJSON(t, 2))
	case table.Geography:
		return Text(rapid.SampledFrom([]string{"POINT(1 2)", "LINESTRING(0 0, 1 1)", "POINT(-122.35 47.62)"}).Draw(t, "geography"))
	case table.Interval:
		return anyInterval(t)
	case table.Struct:
		return row.Value{List: anyValues(t, f.Fields)}
	case table.Range:
		return anyRange(t, f)
	}
	return Text(rapid.StringN(0, 30, 90).Draw(t, "text"))
}

// oddFloats has the one NaN that every format writes.
var oddFloats = []float64{0, math.Copysign(0, -1), math.Float64frombits(0x7ff8_0000_0000_0000), math.Inf(1), math.Inf(-1), math.MaxFloat64, 5e-324, 0.1, 1e21, 1e-7}

// anyJSON draws a JSON text in the form that BigQuery keeps: without space, members in the order of their names.
func anyJSON(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 6).Draw(t, "json")
	switch {
	case kind < 2 && depth > 0:
		var parts []string
		for i := range rapid.IntRange(0, 3).Draw(t, "members") {
			part := anyJSON(t, depth-1)
			if kind == 1 {
				part = fmt.Sprintf(`"%c%s":%s`, 'a'+i, rapid.StringMatching(`[a-zé€😀 /]{0,3}`).Draw(t, "key"), part)
			}
			parts = append(parts, part)
		}
		return string("[{"[kind]) + strings.Join(parts, ",") + string("]}"[kind])
	case kind < 5:
		return strconv.FormatInt(between(t, math.MinInt64, math.MaxInt64), 10)
	case kind == 5:
		return `"` + rapid.StringMatching(`[ -!#-\[\]-~é€😀]{0,8}`).Draw(t, "string") + `"`
	}
	return rapid.SampledFrom([]string{"null", "true", "false", "1.5", "-0.25"}).Draw(t, "word")
}

// anyRange draws a RANGE that begins before it ends.
func anyRange(t *rapid.T, f *table.Field) row.Value {
	v := anyValues(t, row.Members(f))
	start, end := &v[0], &v[1]
	if !start.Null && !end.Null && start.Int > end.Int {
		*start, *end = *end, *start
	}
	if !start.Null && !end.Null && start.Int == end.Int {
		*end = Null
	}
	return row.Value{List: v}
}

// between draws a number, each end as often as everything in between.
func between(t *rapid.T, low, high int64) int64 {
	return rapid.OneOf(rapid.Just(low), rapid.Just(high), rapid.Int64Range(low, high)).Draw(t, "number")
}

// anyInterval draws an INTERVAL within the type's range (BigQuery documentation, "Interval type").
func anyInterval(t *rapid.T) row.Value {
	return List(row.Value{Int: between(t, -row.MaxIntervalMonths, row.MaxIntervalMonths)}, row.Value{Int: between(t, -row.MaxIntervalDays, row.MaxIntervalDays)},
		row.Value{Int: between(t, -row.MaxIntervalMicros, row.MaxIntervalMicros)})
}

// anyDecimal draws a number of the column's digits.
func anyDecimal(t *rapid.T, f *table.Field) row.Value {
	d := row.DecimalOf(f)
	digits := rapid.StringMatching(fmt.Sprintf(`-?[0-9]{1,%d}`, min(d.Precision(), 76))).Draw(t, "digits")
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		panic("rowtest: digits are no number")
	}
	v, err := d.FromBig(n, d.FractionDigits())
	if err != nil {
		panic(err)
	}
	return row.Value{Bytes: v.AppendBigEndian(nil), Int: int64(d.Scale())}
}

// Encode is the row of those values, as row.Descriptor describes it. It is slow and simple.
func Encode(fields []table.Field, values []row.Value) (out []byte) {
	for i := range fields {
		f, v := &fields[i], values[i]
		switch {
		case f.Mode == table.Repeated:
			out = encodeList(out, i, f, v.List)
		case !v.Null:
			out = encodeValue(append(out, row.Tag(i, f)...), f, v)
		}
	}
	return out
}

func encodeList(out []byte, i int, f *table.Field, list []row.Value) []byte {
	if len(list) == 0 {
		return out
	}
	if row.Packed(f) {
		var packed []byte
		for _, v := range list {
			packed = encodeValue(packed, f, v)
		}
		return protowire.AppendBytes(append(out, row.Tag(i, f)...), packed)
	}
	for _, v := range list {
		out = encodeValue(append(out, row.Tag(i, f)...), f, v)
	}
	return out
}

func encodeValue(out []byte, f *table.Field, v row.Value) []byte {
	switch f.Type {
	case table.Time:
		return row.AppendInt(out, row.PackTime(v.Int))
	case table.DateTime:
		return row.AppendInt(out, row.PackDateTime(v.Int))
	case table.Float64:
		return protowire.AppendFixed64(out, uint64(v.Int))
	case table.Bool, table.Int64, table.Date, table.Timestamp:
		return row.AppendInt(out, v.Int)
	case table.Numeric, table.BigNumeric:
		s, err := row.ScaledFromBigEndian(v.Bytes)
		if err != nil {
			panic(err)
		}
		return row.AppendScaled(out, s)
	case table.Interval:
		return protowire.AppendBytes(out, row.AppendInterval(nil, v.List[0].Int, v.List[1].Int, v.List[2].Int))
	case table.Struct, table.Range:
		return protowire.AppendBytes(out, Encode(row.Members(f), v.List))
	}
	return protowire.AppendBytes(out, v.Bytes)
}

// Diff says where the values of two rows differ first, "" when they mean the same.
func Diff(s *table.Schema, want, got []row.Value) string { return difference(want, got, s.Fields, "") }

// Attributed draws schemas as Schemas does, with attributes that have nothing to do with how values are written.
func Attributed(types []table.Type, depth int) *rapid.Generator[*table.Schema] {
	return rapid.Custom(func(t *rapid.T) *table.Schema {
		s := Schemas(types, depth).Draw(t, "plain")
		attribute(t, s.Fields)
		return s
	})
}

func attribute(t *rapid.T, fields []table.Field) {
	for i := range fields {
		f := &fields[i]
		f.Description = rapid.SampledFrom([]string{"", "what it is", "\"quoted\"\n`back` \\ */ <é>"}).Draw(t, "description")
		f.Default = rapid.SampledFrom([]string{"", "NULL", "'a\"b'"}).Draw(t, "default")
		f.PolicyTags = rapid.SampledFrom([][]string{nil, {"projects/p/locations/us/taxonomies/1/policyTags/2"}, {"a", "b"}}).Draw(t, "tags")
		switch f.Type {
		case table.String:
			f.MaxLength = rapid.Int64Range(0, 9).Draw(t, "length")
			f.Collation = rapid.SampledFrom([]string{"", "und:ci"}).Draw(t, "collation")
		case table.Bytes:
			f.MaxLength = rapid.Int64Range(0, 9).Draw(t, "length")
		case table.Numeric, table.BigNumeric:
			f.RoundingMode = rapid.SampledFrom([]string{"", "ROUND_HALF_EVEN", "ROUND_HALF_AWAY_FROM_ZERO"}).Draw(t, "rounding")
		case table.Timestamp:
			f.TimestampPrecision = rapid.SampledFrom([]int64{0, 6, 12}).Draw(t, "precision")
		}
		attribute(t, f.Fields)
	}
}
