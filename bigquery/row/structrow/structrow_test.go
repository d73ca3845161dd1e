package structrow

import (
	"database/sql"
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// The Null types of the official client, as they are declared there.
type (
	NullInt64 struct {
		Int64 int64
		Valid bool
	}
	NullFloat64 struct {
		Float64 float64
		Valid   bool
	}
	NullBool struct {
		Bool  bool
		Valid bool
	}
	NullString struct {
		StringVal string
		Valid     bool
	}
	NullTimestamp struct {
		Timestamp time.Time
		Valid     bool
	}
	NullDate struct {
		Date  civil.Date
		Valid bool
	}
	NullTime struct {
		Time  civil.Time
		Valid bool
	}
	NullDateTime struct {
		DateTime civil.DateTime
		Valid    bool
	}
	NullJSON struct {
		JSONVal string
		Valid   bool
	}
	NullGeography struct {
		GeographyVal string
		Valid        bool
	}
)

type inner struct {
	X     int64
	Names []string `bigquery:"names"`
}

type Lent struct{ FromLent string }

type LentByPointer struct {
	FromPointer int32
	Deep        *inner
}

// all has a field of every kind.
type all struct {
	Flag   bool `bigquery:"flag"`
	I      int
	I8     int8
	I16    int16
	I32    int32
	U      uint
	U8     uint8
	U16    uint16
	U32    uint32
	U64    uint64
	F32    float32
	F64    float64
	S      string
	B      []byte
	J      json.RawMessage
	T      time.Time
	D      civil.Date
	C      civil.Time
	DT     civil.DateTime
	R      *big.Rat
	PI     *int64
	PT     *time.Time
	In     inner
	PIn    *inner
	L      []int32
	LS     []string
	LB     [][]byte
	LT     []time.Time
	LIn    []inner
	LPIn   []*inner
	A      [2]int64
	NI     NullInt64
	NF     NullFloat64
	NB     NullBool
	NS     NullString
	NT     NullTimestamp
	ND     NullDate
	NC     NullTime
	NDT    NullDateTime
	NJ     NullJSON
	NG     NullGeography
	Hidden string `bigquery:"-"`
	secret string //nolint:unused // not exported, so no column
	Lent
	*LentByPointer
}

func full() all {
	at := time.Date(2026, 7, 26, 3, 2, 3, 456789999, time.FixedZone("", 7200))
	n := int64(-7)
	return all{
		Flag: true, I: -1, I8: math.MinInt8, I16: math.MinInt16, I32: math.MinInt32, U: 1, U8: math.MaxUint8, U16: math.MaxUint16,
		U32: math.MaxUint32, U64: math.MaxInt64, F32: 1.1, F64: math.Inf(-1), S: "é", B: []byte("hi"), J: json.RawMessage(`{"a": 1}`),
		T: at, D: civil.Date{Year: 2026, Month: 7, Day: 26}, C: civil.Time{Hour: 1, Minute: 2, Second: 3, Nanosecond: 456789000},
		DT: civil.DateTime{Date: civil.Date{Year: 1969, Month: 12, Day: 31}, Time: civil.Time{Hour: 23, Minute: 59, Second: 59, Nanosecond: 999999000}},
		R:  big.NewRat(5, 4), PI: &n, PT: &at, In: inner{X: 5, Names: []string{"a", ""}}, PIn: &inner{}, L: []int32{1, 2, 300}, LS: []string{"x"},
		LB: [][]byte{{1}, nil}, LT: []time.Time{time.Unix(0, 0), at}, LIn: []inner{{X: 1}, {Names: []string{"b"}}}, LPIn: []*inner{{X: 2}}, A: [2]int64{8, 9},
		NI: NullInt64{Int64: 1, Valid: true}, NF: NullFloat64{Float64: 1.5, Valid: true}, NB: NullBool{Bool: true, Valid: true}, NS: NullString{StringVal: "s", Valid: true},
		NT: NullTimestamp{Timestamp: at, Valid: true}, ND: NullDate{Date: civil.Date{Year: 1970, Month: 1, Day: 2}, Valid: true}, NC: NullTime{Time: civil.Time{Second: 1}, Valid: true},
		NDT: NullDateTime{DateTime: civil.DateTime{Date: civil.Date{Year: 1970, Month: 1, Day: 1}}, Valid: true}, NJ: NullJSON{JSONVal: "[]", Valid: true}, NG: NullGeography{GeographyVal: "POINT(1 2)", Valid: true},
		Hidden: "h", Lent: Lent{"lent"}, LentByPointer: &LentByPointer{FromPointer: 3, Deep: &inner{X: 4}},
	}
}

const atMicros = 1785027723456789

func text(s string) row.Value { return rowtest.Text(s) }
func whole(n int64) row.Value { return row.Value{Int: n} }
func in(n int64, names ...string) row.Value {
	var list []row.Value
	for _, s := range names {
		list = append(list, text(s))
	}
	return rowtest.List(whole(n), rowtest.List(list...))
}

func fullValues() []row.Value {
	return []row.Value{
		whole(1), whole(-1), whole(math.MinInt8), whole(math.MinInt16), whole(math.MinInt32), whole(1), whole(math.MaxUint8), whole(math.MaxUint16),
		whole(math.MaxUint32), whole(math.MaxInt64), rowtest.Float(float64(float32(1.1))), rowtest.Float(math.Inf(-1)), text("é"), text("hi"), text(`{"a": 1}`),
		whole(atMicros), whole(20660), whole(3723456789), whole(-1), rowtest.Decimal(table.Numeric, "1.25"), whole(-7), whole(atMicros), in(5, "a", ""), in(0),
		rowtest.List(whole(1), whole(2), whole(300)), rowtest.List(text("x")), rowtest.List(text("\x01"), text("")), rowtest.List(whole(0), whole(atMicros)),
		rowtest.List(in(1), in(0, "b")), rowtest.List(in(2)), rowtest.List(whole(8), whole(9)),
		whole(1), rowtest.Float(1.5), whole(1), text("s"), whole(atMicros), whole(1), whole(1_000_000), whole(0), text("[]"), text("POINT(1 2)"),
		text("lent"), whole(3), in(4),
	}
}

// emptyValues is the row of all{}, apart from what has no value at all.
func emptyValues() []row.Value {
	v := fullValues()
	for i := range v {
		v[i] = whole(0)
	}
	for _, i := range []int{13, 14, 19, 20, 21, 23, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 42, 43} {
		v[i] = rowtest.Null
	}
	v[15], v[16], v[18] = whole(row.MinMicros), whole(20660), whole(0)
	v[22] = in(0)
	v[30] = rowtest.List(whole(0), whole(0))
	return v
}

func empty() all {
	return all{D: civil.Date{Year: 2026, Month: 7, Day: 26}, DT: civil.DateTime{Date: civil.Date{Year: 1970, Month: 1, Day: 1}}}
}

func bad(name string, change func(*all), kind row.Kind, path string) rowtest.Case[*all] {
	return rowtest.Case[*all]{Name: name, Err: &row.Error{Kind: kind, Path: path}, Record: func() *all {
		a := full()
		change(&a)
		return &a
	}}
}

func TestSuite(t *testing.T) {
	rowtest.Test(t, rowtest.Format[*all]{
		New: func() (row.Serializer[*all], error) { return New[*all](Options{}) },
		Cases: []rowtest.Case[*all]{
			{Name: "full", Record: func() *all { return new(full()) }, Values: fullValues()},
			{Name: "empty", Record: func() *all { return new(empty()) }, Values: emptyValues()},
			{Name: "nil", Record: func() *all { return nil }, Err: &row.Error{Kind: row.KindType}},
			bad("text", func(a *all) { a.S = "\xff" }, row.KindText, "S"),
			bad("text in a list", func(a *all) { a.LIn[1].Names[0] = "\xff" }, row.KindText, "LIn[1].names[0]"),
			bad("unsigned", func(a *all) { a.U64 = 1 << 63 }, row.KindRange, "U64"),
			bad("JSON", func(a *all) { a.J = json.RawMessage("{") }, row.KindJSON, "J"),
			bad("JSON text", func(a *all) { a.J = json.RawMessage("\"\xff\"") }, row.KindJSON, "J"),
			bad("year 10000", func(a *all) { a.T = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, row.KindRange, "T"),
			bad("year 0", func(a *all) { a.T = time.Date(0, 12, 31, 23, 59, 59, 999999999, time.UTC) }, row.KindRange, "T"),
			bad("the far past", func(a *all) { a.T = time.Unix(math.MinInt64/2, 0) }, row.KindRange, "T"),
			bad("no date", func(a *all) { a.D = civil.Date{} }, row.KindRange, "D"),
			bad("30 February", func(a *all) { a.DT.Date = civil.Date{Year: 2026, Month: 2, Day: 30} }, row.KindRange, "DT"),
			bad("hour 24", func(a *all) { a.C.Hour = 24 }, row.KindRange, "C"),
			bad("SER-94 nanosecond", func(a *all) { a.C.Nanosecond = 1 }, row.KindScale, "C"),
			bad("SER-94 nanosecond of a DATETIME", func(a *all) { a.DT.Time.Nanosecond = 1 }, row.KindScale, "DT"),
			bad("a third", func(a *all) { a.R = big.NewRat(1, 3) }, row.KindScale, "R"),
			bad("nil element", func(a *all) { a.LPIn = []*inner{{}, nil} }, row.KindNullElem, "LPIn[1]"),
			bad("below an embedded pointer", func(a *all) { a.Deep.Names = []string{"\xff"} }, row.KindText, "Deep.names[0]"),
		},
		Scribble: func(a *all) {
			if a != nil {
				clear(a.B)
				clear(a.J)
				clear(a.L)
				clear(a.LIn)
				a.PIn, a.S = nil, ""
			}
		},
	})
	// By value, too: the record then lies on the stack.
	rowtest.Test(t, rowtest.Format[all]{
		New:   func() (row.Serializer[all], error) { return New[all](Options{}) },
		Cases: []rowtest.Case[all]{{Name: "full", Record: full, Values: fullValues()}, {Name: "empty", Record: empty, Values: emptyValues()}},
	})
	rowtest.Test(t, rowtest.Format[struct{ A, B []int64 }]{
		New:   func() (row.Serializer[struct{ A, B []int64 }], error) { return New[struct{ A, B []int64 }](Options{}) },
		Cases: []rowtest.Case[struct{ A, B []int64 }]{{Name: "nothing", Record: func() (r struct{ A, B []int64 }) { return r }, Values: []row.Value{{}, {}}}},
	})
}

// The schema is what InferSchema of the official client (v1.86) makes of the same struct.
func TestSchemaIsTheClients(t *testing.T) {
	type lent struct{ FromLent string }
	type shared struct {
		Flag bool `bigquery:"flag"`
		I    int
		U32  uint32
		F32  float32
		S    string
		B    []byte `bigquery:",nullable"`
		T    time.Time
		D    civil.Date
		C    civil.Time
		DT   civil.DateTime
		R    *big.Rat `bigquery:"rat,nullable"`
		In   inner
		PIn  *inner `bigquery:",nullable"`
		L    []int32
		LIn  []inner
		A    [2]int64
		NI   NullInt64
		NS   sql.NullString
		NT   sql.Null[time.Time]
		NJ   NullJSON
		NG   NullGeography
		No   string `bigquery:"-"`
		lent
	}
	members := "{X INTEGER REQUIRED{}, names STRING REPEATED{}}"
	want := []string{
		"flag BOOLEAN REQUIRED{}", "I INTEGER REQUIRED{}", "U32 INTEGER REQUIRED{}", "F32 FLOAT REQUIRED{}", "S STRING REQUIRED{}", "B BYTES NULLABLE{}",
		"T TIMESTAMP REQUIRED{}", "D DATE REQUIRED{}", "C TIME REQUIRED{}", "DT DATETIME REQUIRED{}", "rat NUMERIC NULLABLE{}",
		"In RECORD REQUIRED" + members, "PIn RECORD NULLABLE" + members, "L INTEGER REPEATED{}", "LIn RECORD REPEATED" + members, "A INTEGER REPEATED{}",
		"NI INTEGER NULLABLE{}", "NS STRING NULLABLE{}", "NT TIMESTAMP NULLABLE{}", "NJ JSON NULLABLE{}", "NG GEOGRAPHY NULLABLE{}", "FromLent STRING REQUIRED{}",
	}
	s, err := New[shared](Options{DeriveRequired: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, ourColumns(s.schema.Fields)); diff != "" {
		t.Errorf("columns (-client +ours):\n%s", diff)
	}
	s, err = New[shared](Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.schema.Fields {
		if f.Mode == table.Required {
			t.Errorf("column %s is REQUIRED without DeriveRequired", f.Name)
		}
	}
}

func ourColumns(fields []table.Field) (out []string) {
	for _, f := range fields {
		out = append(out, f.Name+" "+f.Type.RESTName()+" "+f.Mode.String()+"{"+strings.Join(ourColumns(f.Fields), ", ")+"}")
	}
	return out
}

type recursive struct {
	A    int64
	Next []*recursive
}

type SelfEmbedded struct{ *SelfEmbedded }

func TestNewRefuses(t *testing.T) {
	type twice struct {
		ID int64
		Id int64
	}
	type one struct{ Same int64 }
	type two struct{ Same int64 }
	type ambiguous struct {
		one
		two
	}
	type many struct {
		M map[string]int64
		S struct{ C chan int }
		F func()
	}
	kinds := func(err error) (out []string) {
		list := []error{err}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			list = joined.Unwrap()
		}
		for _, e := range list {
			if re, ok := e.(*row.Error); ok {
				out = append(out, strings.TrimSpace(string(re.Kind)+" "+re.Path))
			} else {
				out = append(out, "not a *row.Error: "+e.Error())
			}
		}
		return out
	}
	of := func(_ any, err error) error { return err }
	for _, c := range []struct {
		name string
		err  error
		want []string
	}{
		{"SER-3 every fault at once", of(New[many](Options{})), []string{"C-TYPE M", "C-TYPE S.C", "C-TYPE F"}},
		{"names that differ in case", of(New[twice](Options{})), []string{"C-CASE Id"}},
		{"embedded twice", of(New[ambiguous](Options{})), []string{"C-CASE Same"}},
		{"recursive", of(New[recursive](Options{})), []string{"C-RECURSIVE Next"}},
		{"embeds itself", of(New[SelfEmbedded](Options{})), []string{"C-RECURSIVE SelfEmbedded"}},
		{"no fields", of(New[struct{ a int }](Options{})), []string{"C-EMPTY"}},
		{"empty STRUCT", of(New[struct{ S struct{} }](Options{})), []string{"C-EMPTY S"}},
		{"arrays of arrays", of(New[struct{ A [][]int64 }](Options{})), []string{"C-ARRAY A"}},
		{"array of Null", of(New[struct{ A []NullInt64 }](Options{})), []string{"C-ARRAY A"}},
		{"pointer to a slice", of(New[struct{ A *[]int64 }](Options{})), []string{"C-TYPE A"}},
		{"pointer to a pointer", of(New[struct{ A **int64 }](Options{})), []string{"C-TYPE A"}},
		{"interface", of(New[struct{ A any }](Options{})), []string{"C-TYPE A"}},
		{"complex", of(New[struct{ A complex128 }](Options{})), []string{"C-TYPE A"}},
		{"bad name", of(New[struct {
			A int64 `bigquery:"a.b"`
		}](Options{})), []string{"C-NAME a.b"}},
		{"json option", of(New[struct {
			A struct{ B int } `bigquery:"a,json"`
		}](Options{})), []string{"C-TYPE A"}},
		{"unknown option", of(New[struct {
			A int64 `bigquery:"a,omitempty"`
		}](Options{})), []string{"C-TYPE A"}},
		{"nullable number", of(New[struct {
			A int64 `bigquery:"a,nullable"`
		}](Options{})), []string{"C-TYPE a"}},
		{"no struct", of(New[int64](Options{})), []string{"C-TYPE"}},
		{"time", of(New[time.Time](Options{})), []string{"C-TYPE"}},
		{"pointer to a pointer", of(New[**inner](Options{})), []string{"C-TYPE"}},
		{"deserializer", of(NewDeserializer[recursive]()), []string{"C-RECURSIVE Next"}},
		{"deserializer of no struct", of(NewDeserializer[string]()), []string{"C-TYPE"}},
	} {
		if c.err == nil {
			t.Errorf("%s is accepted", c.name)
			continue
		}
		if diff := cmp.Diff(c.want, kinds(c.err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%v", c.name, diff, c.err)
		}
	}
}

func TestEmbeddedFieldsWinByDepth(t *testing.T) {
	type Deep struct{ A, B string }
	type Mid struct {
		Deep
		A int64
	}
	type top struct {
		Mid
		B float64
	}
	s, err := New[top](Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"A INTEGER NULLABLE{}", "B FLOAT NULLABLE{}"}
	if diff := cmp.Diff(want, ourColumns(s.schema.Fields)); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

func TestDeriveRequired(t *testing.T) {
	type rec struct {
		B []byte
		P *int64
		L []int64
		S inner
	}
	s, err := New[rec](Options{DeriveRequired: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"B BYTES REQUIRED{}", "P INTEGER NULLABLE{}", "L INTEGER REPEATED{}", "S RECORD REQUIRED{X INTEGER REQUIRED{}, names STRING REPEATED{}}"}
	if diff := cmp.Diff(want, ourColumns(s.schema.Fields)); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	got, err := s.AppendRow(nil, table.Destination{}, rec{})
	if want := "\x0a\x00\x22\x02\x08\x00"; err != nil || string(got) != want {
		t.Errorf("%x, %v, want %x: no bytes are an empty value where NULL is not allowed", got, err, want)
	}
}

func TestAppendRowAllocatesNothing(t *testing.T) {
	byValue, err := New[benchRow](Options{})
	if err != nil {
		t.Fatal(err)
	}
	byPointer, err := New[*benchRow](Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec, buf := benchRecord(), make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := byValue.AppendRow(buf, table.Destination{}, rec); err != nil {
			t.Fatal(err)
		}
		if _, err := byPointer.AppendRow(buf, table.Destination{}, &rec); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

type benchRow struct {
	ID      int64
	Event   string
	User    string
	Status  int32
	Seconds float64
	Cached  bool
	At      time.Time
	Tags    []string
}

func benchRecord() benchRow {
	return benchRow{4711, "page_view", "u-58213", 200, 0.0837, true, time.Unix(1785027723, 456789000), []string{"web", "returning"}}
}

func BenchmarkAppendRow(b *testing.B) {
	s, err := New[benchRow](Options{})
	if err != nil {
		b.Fatal(err)
	}
	rec := benchRecord()
	var buf []byte
	for b.Loop() {
		if buf, err = s.AppendRow(buf[:0], table.Destination{}, rec); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkDynamic is the obvious alternative: a dynamic message, its fields set by reflection.
func BenchmarkDynamic(b *testing.B) {
	s, err := New[benchRow](Options{})
	if err != nil {
		b.Fatal(err)
	}
	f, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("row.proto"), Syntax: proto.String("proto2"), MessageType: []*descriptorpb.DescriptorProto{s.descriptor},
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	md := f.Messages().Get(0)
	rec := benchRecord()
	var buf []byte
	for b.Loop() {
		m := dynamicpb.NewMessage(md)
		v := reflect.ValueOf(&rec).Elem()
		for i := range v.NumField() {
			setDynamic(m, md.Fields().Get(i), v.Field(i))
		}
		if buf, err = (proto.MarshalOptions{}).MarshalAppend(buf[:0], m); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func setDynamic(m *dynamicpb.Message, fd protoreflect.FieldDescriptor, v reflect.Value) {
	switch x := v.Interface().(type) {
	case time.Time:
		m.Set(fd, protoreflect.ValueOfInt64(x.UnixMicro()))
	case []string:
		list := m.Mutable(fd).List()
		for _, s := range x {
			list.Append(protoreflect.ValueOfString(s))
		}
	case int32:
		m.Set(fd, protoreflect.ValueOfInt64(int64(x)))
	default:
		m.Set(fd, protoreflect.ValueOf(x))
	}
}
