package decode

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/arrowipc"
	"github.com/millrace-dev/millrace/localbq/internal/hostile"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func arrowSchema(t testing.TB, fields ...arrow.Field) (*arrowipc.Schema, *arrow.Schema) {
	t.Helper()
	s := arrow.NewSchema(fields, nil)
	read, err := arrowipc.ParseSchema(payload(t, ipc.GetSchemaPayload(s, memory.DefaultAllocator)))
	if err != nil {
		t.Fatal(err)
	}
	return read, s
}

func payload(t testing.TB, p ipc.Payload) []byte {
	t.Helper()
	defer p.Release()
	var out bytes.Buffer
	if _, err := p.WritePayload(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// arrowRows are rows written as a JSON array.
func arrowRows(t testing.TB, s *arrow.Schema, rows string) *arrowipc.Batch {
	t.Helper()
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, s, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return arrowBatch(t, b)
}

func arrowBatch(t testing.TB, b arrow.RecordBatch) *arrowipc.Batch {
	t.Helper()
	p, err := ipc.GetRecordBatchPayload(b)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := arrowSchema(t, b.Schema().Fields()...)
	out, err := arrowipc.Decode(payload(t, p), s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func nullable(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

func TestArrowTypes(t *testing.T) {
	ts := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	civil := &arrow.TimestampType{Unit: arrow.Microsecond}
	ints := arrow.PrimitiveTypes
	rangeOf := func(e arrow.DataType) arrow.DataType { return arrow.StructOf(nullable("start", e), nullable("end", e)) }
	for name, c := range map[string]struct {
		typ    arrow.DataType
		target *schema.Field
		rows   string // values of v
		want   string // stored, or the refusal of row 0
	}{
		"int8 to INT64":           {ints.Int8, col("v", schema.Int64), `-128`, `-128`},
		"int64 to INT64":          {ints.Int64, col("v", schema.Int64), `-9007199254740993`, `-9007199254740993`},
		"uint32 to INT64":         {ints.Uint32, col("v", schema.Int64), `4294967295`, `4294967295`},
		"float32 to FLOAT64":      {ints.Float32, col("v", schema.Float64), `1.5`, `1.5`},
		"int16 to FLOAT64":        {ints.Int16, col("v", schema.Float64), `-3`, `-3`},
		"bool to BOOL":            {arrow.FixedWidthTypes.Boolean, col("v", schema.Bool), `true`, `true`},
		"int32 to BOOL":           {ints.Int32, col("v", schema.Bool), `7`, `true`},
		"utf8 to STRING":          {arrow.BinaryTypes.String, col("v", schema.String), `"añb"`, `"añb"`},
		"LBQ-53 STRING too long":  {arrow.BinaryTypes.String, &schema.Field{Name: "v", Type: schema.String, MaxLength: 3}, `"abcd"`, "STRING(3) has maximum length 3 but got a value with length 4 on field v."},
		"binary to BYTES":         {arrow.BinaryTypes.Binary, col("v", schema.Bytes), `"YWI="`, `"YWI="`},
		"decimal128 to NUMERIC":   {&arrow.Decimal128Type{Precision: 5, Scale: 2}, col("v", schema.Numeric), `"-1.25"`, `"-1.25"`},
		"LBQ-78 rounds":           {&arrow.Decimal128Type{Precision: 10, Scale: 3}, &schema.Field{Name: "v", Type: schema.Numeric, Precision: 10, Scale: 2}, `"1.245"`, `"1.25"`},
		"LBQ-79 decimal256":       {&arrow.Decimal256Type{Precision: 76, Scale: 38}, col("v", schema.BigNumeric), `"123456789012345678901234567890.0123456789"`, `"123456789012345678901234567890.0123456789"`},
		"utf8 to NUMERIC":         {arrow.BinaryTypes.String, col("v", schema.Numeric), `"0.5"`, `"0.5"`},
		"LBQ-82 date32 to DATE":   {arrow.FixedWidthTypes.Date32, col("v", schema.Date), `"1970-10-28"`, `"1970-10-28"`},
		"int32 to DATE":           {ints.Int32, col("v", schema.Date), `300`, `"1970-10-28"`},
		"utf8 to DATE":            {arrow.BinaryTypes.String, col("v", schema.Date), `"2024-02-29"`, `"2024-02-29"`},
		"LBQ-80 time64 to TIME":   {arrow.FixedWidthTypes.Time64us, col("v", schema.Time), `"23:59:59.999999"`, `"23:59:59.999999"`},
		"time64 of a day":         {arrow.FixedWidthTypes.Time64us, col("v", schema.Time), `86400000000`, "Time field value is out of range: 86400000000"},
		"timestamp to DATETIME":   {civil, col("v", schema.DateTime), `"2020-10-01 12:00:00"`, `"2020-10-01T12:00:00"`},
		"timestamp to TIMESTAMP":  {ts, col("v", schema.Timestamp), `"2022-02-02T01:02:03.000004Z"`, `"2022-02-02T01:02:03.000004Z"`},
		"LBQ-52 timestamp range":  {ts, col("v", schema.Timestamp), `-9223372036854775808`, "Timestamp field value is out of range: -9223372036854775808 on field v."},
		"utf8 to TIMESTAMP":       {arrow.BinaryTypes.String, col("v", schema.Timestamp), `"2022-02-02 01:02:03"`, `"2022-02-02T01:02:03Z"`},
		"utf8 to JSON":            {arrow.BinaryTypes.String, col("v", schema.JSON), `"{\"b\": 1 }"`, `"{\"b\":1}"`},
		"LBQ-86 empty JSON":       {arrow.BinaryTypes.String, col("v", schema.JSON), `""`, "on field v."},
		"LBQ-88 bad GEOGRAPHY":    {arrow.BinaryTypes.String, col("v", schema.Geography), `"POINT("`, "on field v."},
		"LBQ-89 RANGE unbounded":  {rangeOf(arrow.FixedWidthTypes.Date32), &schema.Field{Name: "v", Type: schema.Range, RangeElement: schema.Date}, `{"start": "1970-01-02", "end": null}`, `{"end":null,"start":"1970-01-02"}`},
		"RANGE backwards":         {rangeOf(arrow.FixedWidthTypes.Date32), &schema.Field{Name: "v", Type: schema.Range, RangeElement: schema.Date}, `{"start": "1970-01-02", "end": "1970-01-01"}`, "Range start must be less than range end"},
		"RANGE of TIMESTAMP":      {rangeOf(ts), &schema.Field{Name: "v", Type: schema.Range, RangeElement: schema.Timestamp}, `{"start": null, "end": null}`, `{"end":null,"start":null}`},
		"utf8 to INTERVAL":        {arrow.BinaryTypes.String, col("v", schema.Interval), `"1-2 3 4:5:6"`, `{"days":3,"micros":14706000000,"months":14}`},
		"list to REPEATED":        {arrow.ListOf(ints.Int64), many(col("v", schema.Int64)), `[1, 2]`, `[1,2]`},
		"NULL list":               {arrow.ListOf(ints.Int64), many(col("v", schema.Int64)), `null`, "send an empty list"},
		"NULL element":            {arrow.ListOf(ints.Int64), many(col("v", schema.Int64)), `[1, null]`, "an element of a REPEATED field cannot be NULL"},
		"NULL to REQUIRED":        {ints.Int64, required(col("v", schema.Int64)), `null`, "Field value of v cannot be empty."},
		"struct to STRUCT":        {arrow.StructOf(nullable("B", ints.Int64)), structOf("v", col("a", schema.String), col("b", schema.Int64)), `{"B": 1}`, `{"a":null,"b":1}`},
		"NULL struct":             {arrow.StructOf(nullable("a", ints.Int64)), structOf("v", required(col("a", schema.Int64))), `null`, `null`},
		"NULL in REQUIRED member": {arrow.StructOf(nullable("a", ints.Int64)), structOf("v", required(col("a", schema.Int64))), `{"a": null}`, "Field value of v.a cannot be empty."},
		"list of structs":         {arrow.ListOf(arrow.StructOf(nullable("a", ints.Int8))), many(structOf("v", col("a", schema.Int64))), `[{"a": 1}, {"a": null}]`, `[{"a":1},{"a":null}]`},
	} {
		t.Run(name, func(t *testing.T) {
			read, s := arrowSchema(t, nullable("v", c.typ))
			p, err := CompileArrow(read, "t", tableOf(c.target))
			if err != nil {
				t.Fatal(err)
			}
			bad := p.DecodeArrow(arrowRows(t, s, `[{"v": `+c.rows+`}]`), Request{})
			if bad != nil {
				if bad[0].Index != 0 || !strings.Contains(bad[0].Message, c.want) {
					t.Errorf("refused with %+v, want %s", bad, c.want)
				}
				return
			}
			b := p.Take()
			validate(t, b)
			if got := jsonOf(t, b); got != `{"v":`+c.want+`}` {
				t.Errorf("got %s, want v = %s", got, c.want)
			}
		})
	}
}

func TestArrowIntervals(t *testing.T) {
	for name, c := range map[string]struct {
		typ  arrow.DataType
		fill func(array.Builder)
		want string
	}{
		"YEAR_MONTH": {arrow.FixedWidthTypes.MonthInterval, func(b array.Builder) { b.(*array.MonthIntervalBuilder).Append(-14) }, `{"days":0,"micros":0,"months":-14}`},
		"DAY_TIME": {arrow.FixedWidthTypes.DayTimeInterval, func(b array.Builder) {
			b.(*array.DayTimeIntervalBuilder).Append(arrow.DayTimeInterval{Days: 3, Milliseconds: -5})
		}, `{"days":3,"micros":-5000,"months":0}`},
		"MONTH_DAY_NANO": {arrow.FixedWidthTypes.MonthDayNanoInterval, func(b array.Builder) {
			b.(*array.MonthDayNanoIntervalBuilder).Append(arrow.MonthDayNanoInterval{Months: 1, Days: 2, Nanoseconds: 3999})
		}, `{"days":2,"micros":3,"months":1}`},
		"out of range": {arrow.FixedWidthTypes.MonthInterval, func(b array.Builder) { b.(*array.MonthIntervalBuilder).Append(120_001) }, "out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			read, s := arrowSchema(t, nullable("v", c.typ))
			p, err := CompileArrow(read, "t", tableOf(col("v", schema.Interval)))
			if err != nil {
				t.Fatal(err)
			}
			builder := array.NewBuilder(memory.DefaultAllocator, c.typ)
			c.fill(builder)
			bad := p.DecodeArrow(arrowBatch(t, array.NewRecordBatch(s, []arrow.Array{builder.NewArray()}, 1)), Request{})
			if bad != nil {
				if !strings.Contains(bad[0].Message, c.want) {
					t.Errorf("refused with %+v, want %s", bad, c.want)
				}
				return
			}
			if got := jsonOf(t, p.Take()); got != `{"v":`+c.want+`}` {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestArrowSchemas(t *testing.T) {
	ints := arrow.PrimitiveTypes
	for name, c := range map[string]struct {
		fields []arrow.Field
		want   string
	}{
		"LBQ-55 extra fields": {[]arrow.Field{nullable("ID", ints.Int64), nullable("x", ints.Int64), nullable("r", arrow.StructOf(nullable("y", ints.Int8)))},
			"Input schema has more fields than BigQuery schema, extra fields: 'x,r.y'"},
		"LBQ-57 REQUIRED left out": {[]arrow.Field{nullable("n", &arrow.Decimal128Type{Precision: 38, Scale: 9})}, "The required field id is missing in the input schema of table t"},
		"LBQ-74 uint64":            {[]arrow.Field{nullable("id", ints.Uint64)}, "mismatched with BigQuery field at t.id, the Arrow field type uint64, BigQuery field type INTEGER"},
		"nanoseconds":              {[]arrow.Field{nullable("id", ints.Int64), nullable("ts", arrow.FixedWidthTypes.Timestamp_ns)}, `the Arrow field type timestamp[ns, tz="UTC"], BigQuery field type TIMESTAMP`},
		"no time zone":             {[]arrow.Field{nullable("id", ints.Int64), nullable("ts", &arrow.TimestampType{Unit: arrow.Microsecond})}, `tz=""], BigQuery field type TIMESTAMP`},
		"large strings":            {[]arrow.Field{nullable("id", arrow.BinaryTypes.LargeString)}, "the Arrow field type large_utf8"},
		"decimals too wide":        {[]arrow.Field{nullable("id", ints.Int64), nullable("n", &arrow.Decimal128Type{Precision: 38, Scale: 8})}, "decimal128(38, 8), BigQuery field type NUMERIC"},
		"decimals too fine":        {[]arrow.Field{nullable("id", ints.Int64), nullable("n", &arrow.Decimal128Type{Precision: 20, Scale: 10})}, "decimal128(20, 10), BigQuery field type NUMERIC"},
		"a list for a scalar":      {[]arrow.Field{nullable("id", arrow.ListOf(ints.Int64))}, "the Arrow field type list of int64, BigQuery field type INTEGER"},
		"a scalar for a list":      {[]arrow.Field{nullable("id", ints.Int64), nullable("l", ints.Int64)}, "the Arrow field type int64, BigQuery field type REPEATED INTEGER"},
		"twice":                    {[]arrow.Field{nullable("id", ints.Int64), nullable("Id", ints.Int64)}, "more than one field for column id"},
		"an empty struct":          {[]arrow.Field{nullable("id", ints.Int64), nullable("r", arrow.StructOf())}, "the Arrow field type struct, BigQuery field type RECORD"},
		"no fields":                {nil, "no fields"},
		"change data capture":      {[]arrow.Field{nullable("id", ints.Int64), nullable("_change_type", arrow.BinaryTypes.String)}, "takes proto rows only"},
	} {
		t.Run(name, func(t *testing.T) {
			read, _ := arrowSchema(t, c.fields...)
			_, err := CompileArrow(read, "t", tableOf(required(col("id", schema.Int64)), structOf("r", col("z", schema.Int64)),
				col("ts", schema.Timestamp), col("n", schema.Numeric), many(col("l", schema.Int64))))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestArrowRows(t *testing.T) {
	ints := arrow.PrimitiveTypes
	table := tableOf(&schema.Field{Name: "s", Type: schema.String, MaxLength: 3}, required(col("i", schema.Int64)),
		&schema.Field{Name: "given", Type: schema.Int64, Default: "5"}, &schema.Field{Name: "absent", Type: schema.Int64, Default: "7"}, col("t", schema.String))
	read, s := arrowSchema(t, nullable("s", arrow.BinaryTypes.String), nullable("i", ints.Int64), nullable("given", ints.Int64), nullable("t", arrow.BinaryTypes.String))
	p, err := CompileArrow(read, "t", table)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("LBQ-52 every bad row, with its index and its first fault", func(t *testing.T) {
		bad := p.DecodeArrow(arrowRows(t, s, `[{"s": "long", "i": null}, {"s": "a", "i": 1}, {"s": "a", "i": null}]`), Request{})
		if len(bad) != 2 || bad[0].Index != 0 || !strings.Contains(bad[0].Message, "on field s") || bad[1].Index != 2 || bad[1].Message != "Field value of i cannot be empty." {
			t.Errorf("got %+v", bad)
		}
		p.Reset()
	})
	t.Run("LBQ-69 LBQ-70 NULL and what is absent", func(t *testing.T) {
		for _, q := range []struct {
			request Request
			given   string
		}{{Request{}, "null"}, {Request{Missing: MissingDefault, Now: time.Unix(0, 0)}, "5"}, {Request{Missing: MissingDefault, Columns: map[string]Missing{"GIVEN": MissingNull}}, "null"}} {
			if bad := p.DecodeArrow(arrowRows(t, s, `[{"s": null, "i": 1, "given": null, "t": "x"}]`), q.request); bad != nil {
				t.Fatal(bad)
			}
			b := p.Take()
			validate(t, b)
			if got, want := jsonOf(t, b), `{"absent":7,"given":`+q.given+`,"i":1,"s":null,"t":"x"}`; got != want {
				t.Errorf("%+v: got %s, want %s", q.request, got, want)
			}
		}
	})
	t.Run("batches of many make one", func(t *testing.T) {
		for _, rows := range []string{`[{"i": 1, "t": "x"}, {"i": 2, "t": ""}]`, `[{"i": 3, "t": null}]`, `[{"i": 4, "t": "y"}]`} {
			if bad := p.DecodeArrow(arrowRows(t, s, rows), Request{}); bad != nil {
				t.Fatal(bad)
			}
		}
		b := p.Take()
		validate(t, b)
		want := `{"absent":7,"given":null,"i":1,"s":null,"t":"x"}
{"absent":7,"given":null,"i":2,"s":null,"t":""}
{"absent":7,"given":null,"i":3,"s":null,"t":null}
{"absent":7,"given":null,"i":4,"s":null,"t":"y"}`
		if got := jsonOf(t, b); got != want {
			t.Errorf("got\n%s", got)
		}
	})
	t.Run("text that is not UTF-8", func(t *testing.T) {
		builder := array.NewRecordBuilder(memory.DefaultAllocator, s)
		builder.Field(0).AppendNull()
		builder.Field(1).(*array.Int64Builder).Append(1)
		builder.Field(2).AppendNull()
		builder.Field(3).(*array.StringBuilder).BinaryBuilder.Append([]byte{'a', 0xff})
		bad := p.DecodeArrow(arrowBatch(t, builder.NewRecordBatch()), Request{})
		if len(bad) != 1 || !strings.Contains(bad[0].Message, "not valid UTF-8") {
			t.Errorf("got %+v", bad)
		}
		p.Reset()
	})
}

// FuzzArrow feeds any batch of any schema to a table of every type: what is taken is well-formed.
func FuzzArrow(f *testing.F) {
	table := tableOf(col("i", schema.Int64), col("s", schema.String), col("n", schema.Numeric), col("ts", schema.Timestamp), many(col("l", schema.Int64)),
		structOf("r", col("d", schema.Date), many(structOf("m", col("j", schema.JSON)))), &schema.Field{Name: "g", Type: schema.Range, RangeElement: schema.Date})
	_, s := arrowSchema(f, nullable("i", arrow.PrimitiveTypes.Int64), nullable("s", arrow.BinaryTypes.String),
		nullable("n", &arrow.Decimal128Type{Precision: 10, Scale: 2}), nullable("ts", arrow.FixedWidthTypes.Timestamp_us), nullable("l", arrow.ListOf(arrow.PrimitiveTypes.Int8)),
		nullable("r", arrow.StructOf(nullable("d", arrow.FixedWidthTypes.Date32), nullable("m", arrow.ListOf(arrow.StructOf(nullable("j", arrow.BinaryTypes.String)))))),
		nullable("g", arrow.StructOf(nullable("start", arrow.FixedWidthTypes.Date32), nullable("end", arrow.FixedWidthTypes.Date32))))
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, s, strings.NewReader(
		`[{"i": 1, "s": "x", "n": "1.25", "ts": 5, "l": [1, 2], "r": {"d": 3, "m": [{"j": "1"}]}, "g": {"start": 1, "end": 2}}, {"l": []}]`))
	if err != nil {
		f.Fatal(err)
	}
	p, err := ipc.GetRecordBatchPayload(b)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(payload(f, ipc.GetSchemaPayload(s, memory.DefaultAllocator)), payload(f, p))
	f.Fuzz(func(t *testing.T, schemaMessage, batchMessage []byte) {
		// Compressed buffers may unpack to 240 MiB, which is not this room's.
		hostile.Proportional(t, len(schemaMessage)+len(batchMessage), 4096, 512<<20, func() {
			read, err := arrowipc.ParseSchema(schemaMessage)
			if err != nil {
				return
			}
			p, err := CompileArrow(read, "t", table)
			if err != nil {
				return
			}
			batch, err := arrowipc.Decode(batchMessage, read)
			if err != nil || batch.Rows > 1000 {
				return
			}
			if p.DecodeArrow(batch, Request{}) == nil {
				validate(t, p.Take())
			}
		})
	})
}
