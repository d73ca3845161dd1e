package arrowrow

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// pageTypes are the types of docs/reference/arrow.md by the names they have there.
var pageTypes = map[string]arrow.DataType{
	"bool": arrow.FixedWidthTypes.Boolean,
	"int8": arrow.PrimitiveTypes.Int8, "int16": arrow.PrimitiveTypes.Int16, "int32": arrow.PrimitiveTypes.Int32, "int64": arrow.PrimitiveTypes.Int64,
	"uint8": arrow.PrimitiveTypes.Uint8, "uint16": arrow.PrimitiveTypes.Uint16, "uint32": arrow.PrimitiveTypes.Uint32, "uint64": arrow.PrimitiveTypes.Uint64,
	"float16": arrow.FixedWidthTypes.Float16, "float32": arrow.PrimitiveTypes.Float32, "float64": arrow.PrimitiveTypes.Float64,
	"utf8": arrow.BinaryTypes.String, "large_utf8": arrow.BinaryTypes.LargeString, "utf8_view": arrow.BinaryTypes.StringView,
	"binary": arrow.BinaryTypes.Binary, "large_binary": arrow.BinaryTypes.LargeBinary, "binary_view": arrow.BinaryTypes.BinaryView,
	"fixed_size_binary(4)": &arrow.FixedSizeBinaryType{ByteWidth: 4},
	"date32":               arrow.FixedWidthTypes.Date32, "date64": arrow.FixedWidthTypes.Date64,
	"time32(s)": arrow.FixedWidthTypes.Time32s, "time32(ms)": arrow.FixedWidthTypes.Time32ms,
	"time64(us)": arrow.FixedWidthTypes.Time64us, "time64(ns)": arrow.FixedWidthTypes.Time64ns,
	"timestamp(us)": &arrow.TimestampType{Unit: arrow.Microsecond}, "timestamp(ns)": &arrow.TimestampType{Unit: arrow.Nanosecond},
	"timestamp(us, UTC)":          &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	"timestamp(s, Europe/Vienna)": &arrow.TimestampType{Unit: arrow.Second, TimeZone: "Europe/Vienna"},
	"decimal128(38, 9)":           &arrow.Decimal128Type{Precision: 38, Scale: 9}, "decimal32(9, 2)": &arrow.Decimal32Type{Precision: 9, Scale: 2},
	"decimal128(30, 0)": &arrow.Decimal128Type{Precision: 30}, "decimal256(76, 38)": &arrow.Decimal256Type{Precision: 76, Scale: 38},
	"decimal256(39, 0)": &arrow.Decimal256Type{Precision: 39},
	"duration(ns)":      arrow.FixedWidthTypes.Duration_ns, "interval(months)": arrow.FixedWidthTypes.MonthInterval,
	"interval(day_time)": arrow.FixedWidthTypes.DayTimeInterval, "interval(month_day_nano)": arrow.FixedWidthTypes.MonthDayNanoInterval,
	"struct<int64>": arrow.StructOf(optional("a", arrow.PrimitiveTypes.Int64)),
	"list<int64>":   arrow.ListOf(arrow.PrimitiveTypes.Int64), "large_list<int64>": arrow.LargeListOf(arrow.PrimitiveTypes.Int64),
	"list_view<int64>": arrow.ListViewOf(arrow.PrimitiveTypes.Int64), "fixed_size_list<int64>": arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int64),
	"map<utf8, int64>":       arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64),
	"dictionary<utf8>":       &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
	"list<list<int64>>":      arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int64)),
	"list<map<utf8, int64>>": arrow.ListOf(arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64)),
	"null":                   arrow.Null, "union": arrow.SparseUnionOf([]arrow.Field{optional("a", arrow.PrimitiveTypes.Int64)}, []arrow.UnionTypeCode{0}),
	"run_end_encoded": arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64),
}

// TestPage runs the table of docs/reference/arrow.md.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/arrow.md")
	if err != nil {
		t.Fatal(err)
	}
	met := map[string]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		want := strings.Trim(cells[2], " `")
		for _, name := range strings.Split(strings.Trim(cells[1], " `"), "`, `") {
			met[name] = true
			typ := pageTypes[name]
			if typ == nil {
				t.Errorf("the page has %s, which the test does not know", name)
				continue
			}
			if got := derivedName(t, typ); got != want {
				t.Errorf("%s is %s, the page says %s", name, got, want)
			}
		}
	}
	for name := range pageTypes {
		if !met[name] {
			t.Errorf("%s is not on the page", name)
		}
	}
}

func derivedName(t *testing.T, typ arrow.DataType) string {
	t.Helper()
	s, err := SchemaOf(arrow.NewSchema([]arrow.Field{optional("c", typ)}, nil), Options{})
	var e *row.Error
	if errors.As(err, &e) {
		return string(e.Kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	// What a column is called is told by what it is missing as.
	missing := (&table.Schema{}).Diff(s)[0].Msg
	words := strings.TrimPrefix(missing, "is missing, wanted ")
	if name, repeated := strings.CutSuffix(words, " REPEATED"); repeated {
		return "ARRAY<" + name + ">"
	}
	return strings.TrimSuffix(words, " NULLABLE")
}
