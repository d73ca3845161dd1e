package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

// refused checks that a definition is refused with a message that contains text, or accepted where text is "".
func refused(t *testing.T, d *Definition, text string) {
	t.Helper()
	err := d.Check()
	r := refusal.Of(err)
	switch {
	case text == "" && err != nil:
		t.Errorf("refused: %v", err)
	case text != "" && (r == nil || r.Reason != refusal.Invalid || !strings.Contains(r.Message, text)):
		t.Errorf("got %v, want invalid %q", err, text)
	}
}

func TestCheckNames(t *testing.T) {
	for name, text := range map[string]string{
		"id": "", "Größe": "", "a b-c%": "", "名前": "", "+1": "", "_x": "", strings.Repeat("é", 300): "",
		"": "Invalid field name", strings.Repeat("x", 301): "at most 300 characters", "a.b": "Invalid field name", "a`": "Invalid field name", "a*": "Invalid field name",
		"a{": "Invalid field name", "a\xff": "Invalid field name", "_table_x": "are not allowed to start with", "_PARTITIONTIME": "are not allowed to start with",
		"__root__": "are not allowed to start with", "_file_name": "are not allowed to start with", "_change_type": "reserved for change data capture",
	} {
		t.Run(fmt.Sprintf("%.20q", name), func(t *testing.T) {
			refused(t, &Definition{Schema: &Schema{Fields: []*Field{{Name: name, Type: Int64}}}}, text)
			refused(t, &Definition{Schema: &Schema{Fields: []*Field{{Name: "s", Type: Struct, Fields: []*Field{{Name: name, Type: Int64}}}}}}, text)
		})
	}
	t.Run("twice without case", func(t *testing.T) {
		refused(t, &Definition{Schema: &Schema{Fields: []*Field{{Name: "a", Type: Int64}, {Name: "A", Type: Int64}}}}, "Field A already exists in schema")
	})
}

func TestCheckShape(t *testing.T) {
	one := func(f Field) *Definition { f.Name = "f"; return &Definition{Schema: &Schema{Fields: []*Field{&f}}} }
	leaf := []*Field{{Name: "x", Type: Int64}}
	for name, c := range map[string]struct {
		f    Field
		text string
	}{
		"record without members":   {Field{Type: Struct}, "Field f is type RECORD but has no schema"},
		"scalar with members":      {Field{Type: Int64, Fields: leaf}, "Field f is type INTEGER but has a schema"},
		"length of a number":       {Field{Type: Int64, MaxLength: 3}, "maxLength"},
		"negative length":          {Field{Type: String, MaxLength: -3}, "maxLength"},
		"collation of a number":    {Field{Type: Int64, Collation: "und:ci"}, "collation"},
		"unknown collation":        {Field{Type: String, Collation: "de"}, "collation"},
		"precision of a text":      {Field{Type: String, Precision: 3}, "precision"},
		"scale without precision":  {Field{Type: Numeric, Scale: 3}, "scale is set but precision is not"},
		"NUMERIC(38,9)":            {Field{Type: Numeric, Precision: 38, Scale: 9}, ""},
		"NUMERIC(30,0)":            {Field{Type: Numeric, Precision: 30}, "out of range"},
		"NUMERIC(5,10)":            {Field{Type: Numeric, Precision: 15, Scale: 10}, "out of range"},
		"NUMERIC(2,3)":             {Field{Type: Numeric, Precision: 2, Scale: 3}, "out of range"},
		"BIGNUMERIC(76,38)":        {Field{Type: BigNumeric, Precision: 76, Scale: 38}, ""},
		"BIGNUMERIC(39,0)":         {Field{Type: BigNumeric, Precision: 39}, "out of range"},
		"unknown rounding":         {Field{Type: Numeric, RoundingMode: "UP"}, "roundingMode"},
		"timestamp precision 9":    {Field{Type: Timestamp, TimestampPrecision: 9}, "must be 6 or 12"},
		"precision of a date":      {Field{Type: Date, TimestampPrecision: 6}, "timestampPrecision"},
		"range of nothing":         {Field{Type: Range}, "rangeElementType"},
		"range of numbers":         {Field{Type: Range, RangeElement: Int64}, "rangeElementType"},
		"range element of a date":  {Field{Type: Date, RangeElement: Date}, "rangeElementType"},
		"range of dates":           {Field{Type: Range, RangeElement: Date}, ""},
		"timestamp of picoseconds": {Field{Type: Timestamp, TimestampPrecision: 12}, ""},
	} {
		t.Run(name, func(t *testing.T) { refused(t, one(c.f), c.text) })
	}
	nest := func(levels int) *Definition {
		fields := leaf
		for range levels {
			fields = []*Field{{Name: "s", Type: Struct, Fields: fields}}
		}
		return &Definition{Schema: &Schema{Fields: fields}}
	}
	t.Run("15 levels", func(t *testing.T) { refused(t, nest(15), "") })
	t.Run("16 levels", func(t *testing.T) { refused(t, nest(16), "at most 15 levels") })
	wide := func(n int) *Definition {
		s := &Schema{}
		for i := range n {
			s.Fields = append(s.Fields, &Field{Name: fmt.Sprint("c", i), Type: Int64})
		}
		return &Definition{Schema: s}
	}
	t.Run("10000 columns", func(t *testing.T) { refused(t, wide(10_000), "") })
	t.Run("10001 columns", func(t *testing.T) { refused(t, wide(10_001), "at most 10000 columns") })
}

func TestCheckLayout(t *testing.T) {
	s := &Schema{Fields: []*Field{
		{Name: "i", Type: Int64}, {Name: "d", Type: Date}, {Name: "dt", Type: DateTime}, {Name: "ts", Type: Timestamp}, {Name: "f", Type: Float64},
		{Name: "many", Type: Date, Mode: Repeated}, {Name: "s", Type: Struct, Fields: []*Field{{Name: "d", Type: Date}}}, {Name: "txt", Type: String}, {Name: "j", Type: JSON},
	}}
	for name, c := range map[string]struct {
		d    Definition
		text string
	}{
		"by ingestion":             {Definition{Partition: &TimePartition{Type: "HOUR"}}, ""},
		"by day of a date":         {Definition{Partition: &TimePartition{Type: "DAY", Field: "d"}}, ""},
		"without case":             {Definition{Partition: &TimePartition{Type: "MONTH", Field: "TS"}}, ""},
		"by hour of a date":        {Definition{Partition: &TimePartition{Type: "HOUR", Field: "d"}}, "HOUR is not supported for the DATE column d"},
		"by hour of a datetime":    {Definition{Partition: &TimePartition{Type: "HOUR", Field: "dt"}}, ""},
		"by week":                  {Definition{Partition: &TimePartition{Type: "WEEK"}}, "expected DAY, HOUR, MONTH or YEAR"},
		"LBQ-151 by nothing":       {Definition{Partition: &TimePartition{Type: "DAY", Field: "x"}}, "The field specified for partitioning cannot be found in the schema."},
		"by a number as time":      {Definition{Partition: &TimePartition{Type: "DAY", Field: "i"}}, "expected DATE, DATETIME or TIMESTAMP"},
		"by a list":                {Definition{Partition: &TimePartition{Type: "DAY", Field: "many"}}, "REPEATED"},
		"by a member":              {Definition{Partition: &TimePartition{Type: "DAY", Field: "s.d"}}, "cannot be found"},
		"filter without partition": {Definition{RequirePartitionFilter: true}, "require_partition_filter"},
		"both":                     {Definition{Partition: &TimePartition{Type: "DAY"}, Ranges: &RangePartition{Field: "i", End: 1, Interval: 1}}, "Only one of"},
		"ranges":                   {Definition{Ranges: &RangePartition{Field: "i", End: 100, Interval: 10}}, ""},
		"ranges of a date":         {Definition{Ranges: &RangePartition{Field: "d", End: 100, Interval: 10}}, "expected INT64"},
		"ranges of no width":       {Definition{Ranges: &RangePartition{Field: "i", End: 100}}, "interval must be greater than 0"},
		"ranges backwards":         {Definition{Ranges: &RangePartition{Field: "i", Start: 5, End: 5, Interval: 1}}, "start must be less than end"},
		"10000 ranges":             {Definition{Ranges: &RangePartition{Field: "i", End: 10_000, Interval: 1}}, ""},
		"10001 ranges":             {Definition{Ranges: &RangePartition{Field: "i", End: 10_001, Interval: 1}}, "at most 10000"},
		"all numbers":              {Definition{Ranges: &RangePartition{Field: "i", Start: -1 << 63, End: 1<<63 - 1, Interval: 1 << 60}}, ""},
		"clustering":               {Definition{Clustering: []string{"i", "D", "txt", "ts"}}, ""},
		"LBQ-151 clustering":       {Definition{Clustering: []string{"x"}}, "The field specified for clustering cannot be found in the schema. Invalid field: x"},
		"clustering by five":       {Definition{Clustering: []string{"i", "d", "txt", "ts", "dt"}}, "at most 4"},
		"clustering by a float":    {Definition{Clustering: []string{"f"}}, "not supported on type FLOAT64"},
		"clustering by JSON":       {Definition{Clustering: []string{"j"}}, "not supported on type JSON"},
		"clustering by a list":     {Definition{Clustering: []string{"many"}}, "repeated"},
		"clustering twice":         {Definition{Clustering: []string{"i", "i"}}, "Duplicate clustering field: i"},
		"key":                      {Definition{PrimaryKey: []string{"i", "txt"}}, ""},
		"key of nothing":           {Definition{PrimaryKey: []string{"x"}}, "Primary key column x does not exist"},
		"key of a struct":          {Definition{PrimaryKey: []string{"s"}}, "cannot be a key"},
		"key of 17":                {Definition{PrimaryKey: strings.Split("i,i,i,i,i,i,i,i,i,i,i,i,i,i,i,i,i", ",")}, "at most 16"},
		"foreign key of nothing":   {Definition{ForeignKeys: []ForeignKey{{Columns: []string{"x"}}}}, "Foreign key column x does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			c.d.Schema = s
			refused(t, &c.d, c.text)
		})
	}
	t.Run("a table without a schema has no column to partition by", func(t *testing.T) {
		refused(t, &Definition{Partition: &TimePartition{Type: "DAY", Field: "d"}}, "cannot be found")
		refused(t, &Definition{Clustering: []string{"d"}}, "cannot be found")
	})
}
