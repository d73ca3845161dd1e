package structrow

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"testing"
	"time"
	"unsafe"

	"cloud.google.com/go/civil"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// goTypes are the types of fields that become a column.
var goTypes = map[table.Type][]reflect.Type{
	table.Bool: {reflect.TypeFor[bool]()},
	table.Int64: {reflect.TypeFor[int64](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](),
		reflect.TypeFor[uint64](), reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32]()},
	table.Float64:   {reflect.TypeFor[float64](), reflect.TypeFor[float32]()},
	table.Numeric:   {reflect.TypeFor[*big.Rat]()},
	table.String:    {reflect.TypeFor[string]()},
	table.Bytes:     {reflect.TypeFor[[]byte]()},
	table.Date:      {reflect.TypeFor[civil.Date]()},
	table.Time:      {reflect.TypeFor[civil.Time]()},
	table.DateTime:  {reflect.TypeFor[civil.DateTime]()},
	table.Timestamp: {reflect.TypeFor[time.Time]()},
	table.JSON:      {reflect.TypeFor[json.RawMessage]()},
}

// nullTypes are the Null types of columns.
var nullTypes = map[table.Type]reflect.Type{
	table.Bool: reflect.TypeFor[NullBool](), table.Int64: reflect.TypeFor[NullInt64](), table.Float64: reflect.TypeFor[NullFloat64](),
	table.String: reflect.TypeFor[NullString](), table.Date: reflect.TypeFor[NullDate](), table.Time: reflect.TypeFor[NullTime](),
	table.DateTime: reflect.TypeFor[NullDateTime](), table.Timestamp: reflect.TypeFor[NullTimestamp](), table.JSON: reflect.TypeFor[NullJSON](),
	table.Geography: reflect.TypeFor[NullGeography](),
}

// drawStruct draws a struct type with the schema that it derives to.
func drawStruct(t *rapid.T, o Options) (reflect.Type, *table.Schema) {
	types := []table.Type{table.Geography, table.Struct}
	for c := range goTypes {
		types = append(types, c)
	}
	slices.Sort(types)
	s := rowtest.Schemas(types, 5).Draw(t, "schema")
	rowtest.Flexible(t, s)
	return structOf(t, s.Fields, o), s
}

// structOf draws a struct type for columns, whose modes and types it brings in line with what structs say.
func structOf(t *rapid.T, columns []table.Field, o Options) reflect.Type {
	fields := make([]reflect.StructField, len(columns))
	for i := range columns {
		c := &columns[i]
		tag := c.Name
		if c.Type == table.Geography && c.Mode != table.Nullable {
			c.Type = table.String // only a Null type says GEOGRAPHY
		}
		canBeNil := c.Type == table.Numeric || c.Type == table.JSON
		if c.Mode == table.Required && (canBeNil || !o.DeriveRequired) {
			c.Mode = table.Nullable
		}
		typ := nullTypes[c.Type]
		if c.Type == table.Struct || c.Type != table.Geography && (typ == nil || c.Mode != table.Nullable || rapid.Bool().Draw(t, "not a Null type")) {
			typ = plainType(t, c, o)
			switch {
			case c.Mode == table.Nullable && c.Type == table.Bytes:
				tag += ",nullable"
			case c.Mode == table.Nullable && !canBeNil, c.Mode == table.Repeated && !canBeNil && c.Type != table.Bytes && rapid.Bool().Draw(t, "pointers"):
				typ = reflect.PointerTo(typ)
			}
		}
		if c.Mode == table.Repeated {
			typ = reflect.SliceOf(typ)
		}
		fields[i] = reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: typ, Tag: reflect.StructTag(fmt.Sprintf("bigquery:%q", tag))}
	}
	return embedding(t, fields)
}

func plainType(t *rapid.T, c *table.Field, o Options) reflect.Type {
	if c.Type == table.Struct {
		return structOf(t, c.Fields, o)
	}
	types := goTypes[c.Type]
	if c.Type == table.Int64 && c.Mode == table.Repeated {
		types = slices.DeleteFunc(slices.Clone(types), func(t reflect.Type) bool { return t.Kind() == reflect.Uint8 }) // a slice of them is BYTES
	}
	return rapid.SampledFrom(types).Draw(t, "go type")
}

// embedding is a struct of fields, the last of which may lie in an embedded struct.
func embedding(t *rapid.T, fields []reflect.StructField) reflect.Type {
	if at := rapid.IntRange(0, 2*len(fields)).Draw(t, "embed"); at < len(fields) {
		inner := reflect.StructField{Name: "Inner", Type: reflect.StructOf(fields[at:]), Anonymous: true}
		fields = append(slices.Clone(fields[:at]), inner)
	}
	return reflect.StructOf(fields)
}

// memberAt is field i of a struct that embedding has made.
func memberAt(v reflect.Value, i int) reflect.Value {
	if n := v.NumField(); i >= n-1 && v.Type().Field(n-1).Anonymous {
		return v.Field(n - 1).Field(i - (n - 1))
	}
	return v.Field(i)
}

// filler sets structs to values, and can put a value that is none into one of their fields.
type filler struct {
	*rapid.T
	left   int // values before the one that is spoilt; negative is none
	spoilt string
	kind   row.Kind
}

// fill sets the struct v, and changes values that its fields do not hold to some that they do.
func (f *filler) fill(v reflect.Value, columns []table.Field, values []row.Value, path string) {
	for i := range columns {
		c, in, at := &columns[i], &values[i], memberAt(v, i)
		where := table.Join(path, c.Name)
		switch {
		case c.Mode == table.Repeated:
			list := reflect.MakeSlice(at.Type(), len(in.List), len(in.List))
			for k := range in.List {
				f.set(list.Index(k), c, &in.List[k], fmt.Sprintf("%s[%d]", where, k))
			}
			at.Set(list)
		case !in.Null:
			f.set(at, c, in, where)
		}
	}
}

func (f *filler) set(v reflect.Value, c *table.Field, in *row.Value, path string) {
	if v.Kind() == reflect.Pointer && v.Type() != reflect.TypeFor[*big.Rat]() {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if _, null := nullType(v.Type()); null {
		v.Field(1).SetBool(true)
		v = v.Field(0)
	}
	if c.Type == table.Struct {
		f.fill(v, c.Fields, in.List, path)
		return
	}
	f.left--
	switch n := in.Int; c.Type {
	case table.Bool:
		v.SetBool(n != 0)
	case table.Int64:
		f.setInt(v, in)
	case table.Float64:
		if v.Kind() == reflect.Float32 {
			in.Int = int64(math.Float64bits(float64(float32(math.Float64frombits(uint64(n))))))
		}
		v.SetFloat(math.Float64frombits(uint64(in.Int)))
	case table.Numeric:
		f.setRat(v, in)
	case table.Date:
		v.Set(reflect.ValueOf(dateOf(n)))
	case table.Time:
		v.Set(reflect.ValueOf(civil.TimeOf(time.UnixMicro(n).UTC())))
	case table.DateTime:
		v.Set(reflect.ValueOf(civil.DateTimeOf(time.UnixMicro(n).UTC())))
	case table.Timestamp:
		fine := time.Duration(rapid.IntRange(0, 999).Draw(f.T, "nanoseconds")) // cut off
		v.Set(reflect.ValueOf(time.UnixMicro(n).Add(fine).In(time.FixedZone("", rapid.IntRange(-50000, 50000).Draw(f.T, "zone")))))
	default:
		f.setText(v, in)
	}
	if f.left == -1 && f.spoilt == "" {
		f.spoil(v, c, path)
	}
}

func dateOf(days int64) civil.Date { return civil.DateOf(time.Unix(days*86400, 0).UTC()) }

func (f *filler) setInt(v reflect.Value, in *row.Value) {
	if v.CanUint() {
		v.SetUint(uint64(in.Int) & math.MaxInt64)
		in.Int = int64(v.Uint())
		return
	}
	v.SetInt(in.Int)
	in.Int = v.Int()
}

// setRat takes parameters off a NUMERIC: structs have none.
func (f *filler) setRat(v reflect.Value, in *row.Value) {
	s, err := row.ScaledFromBigEndian(in.Bytes)
	if err != nil {
		panic(err)
	}
	v.Set(reflect.ValueOf(s.Rat(int(in.Int))))
}

func (f *filler) setText(v reflect.Value, in *row.Value) {
	if v.Kind() == reflect.String {
		v.SetString(string(in.Bytes))
		return
	}
	v.SetBytes(append([]byte{}, in.Bytes...))
}

// spoil puts what is no value of the column into a field, where its Go type has such a thing.
func (f *filler) spoil(v reflect.Value, c *table.Field, path string) {
	f.kind = row.KindRange
	switch {
	case v.Kind() == reflect.String:
		v.SetString("a\xff")
		f.kind = row.KindText
	case c.Type == table.JSON:
		v.SetBytes([]byte(`{"a":`))
		f.kind = row.KindJSON
	case v.Kind() == reflect.Uint64:
		v.SetUint(1 << 63)
	case c.Type == table.Numeric:
		f.kind = row.KindScale
		v.Set(reflect.ValueOf(big.NewRat(1, 3)))
	case c.Type == table.Date:
		v.Set(reflect.ValueOf(civil.Date{Year: 2026, Month: 2, Day: 30}))
	case c.Type == table.Time:
		v.Set(reflect.ValueOf(civil.Time{Hour: 24}))
	case c.Type == table.DateTime:
		v.Set(reflect.ValueOf(civil.DateTime{Date: civil.Date{Year: 10000, Month: 1, Day: 1}}))
	case c.Type == table.Timestamp:
		v.Set(reflect.ValueOf(time.Date(0, 12, 31, 23, 59, 59, 0, time.UTC)))
	default:
		f.left = 0 // every value of its Go type is one: the next may do
		return
	}
	f.spoilt = path
}

// valuesOf reads a struct as the values of columns.
func valuesOf(v reflect.Value, columns []table.Field) []row.Value {
	out := make([]row.Value, len(columns))
	for i := range columns {
		c, at := &columns[i], memberAt(v, i)
		if c.Mode != table.Repeated {
			out[i] = valueOf(at, c)
			continue
		}
		for k := range at.Len() {
			out[i].List = append(out[i].List, valueOf(at.Index(k), c))
		}
	}
	return out
}

func valueOf(v reflect.Value, c *table.Field) row.Value {
	if _, null := nullType(v.Type()); null {
		if !v.Field(1).Bool() {
			return rowtest.Null
		}
		v = v.Field(0)
	}
	if (v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice) && v.IsNil() {
		return rowtest.Null
	}
	if r, ok := v.Interface().(*big.Rat); ok {
		return rowtest.Decimal(table.Numeric, r.FloatString(9))
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case civil.Date:
		return row.Value{Int: x.In(time.UTC).Unix() / 86400}
	case civil.Time:
		return row.Value{Int: int64(((x.Hour*60+x.Minute)*60+x.Second)*1_000_000 + x.Nanosecond/1000)}
	case civil.DateTime:
		return row.Value{Int: x.In(time.UTC).UnixMicro()}
	case time.Time:
		return row.Value{Int: x.UnixMicro()}
	}
	switch {
	case v.Kind() == reflect.Bool:
		return map[bool]row.Value{true: {Int: 1}}[v.Bool()]
	case v.CanInt():
		return row.Value{Int: v.Int()}
	case v.CanUint():
		return row.Value{Int: int64(v.Uint())}
	case v.CanFloat():
		return rowtest.Float(v.Float())
	case v.Kind() == reflect.Struct:
		return row.Value{List: valuesOf(v, c.Fields)}
	case v.Kind() == reflect.String:
		return rowtest.Text(v.String())
	}
	return row.Value{Bytes: v.Bytes()}
}

// anyStruct makes the serializer and the deserializer of a type that only exists while the test runs. Records are pointers to it.
func anyStruct(t *rapid.T, typ reflect.Type, o Options) (*Serializer[unsafe.Pointer], *Deserializer[unsafe.Pointer]) {
	p, s, err := compile(typ, o)
	if err != nil {
		t.Fatal(err)
	}
	d, err := row.Descriptor(s)
	if err != nil {
		t.Fatal(err)
	}
	return &Serializer[unsafe.Pointer]{plan: p, pointer: true, schema: s, descriptor: d}, &Deserializer[unsafe.Pointer]{plan: p, typ: typ, pointer: true}
}

// withoutParameters takes off what no struct says.
func withoutParameters(columns []table.Field) {
	for i := range columns {
		columns[i].Precision, columns[i].Scale = 0, 0
		withoutParameters(columns[i].Fields)
	}
}

// TestStructsStored: structs of any type are stored bit for bit, and read as the structs they were, in Avro and in Arrow.
func TestStructsStored(t *testing.T) {
	l := stored.Start(t)
	rowtest.Sparingly(t, func(r *rapid.T) {
		o := Options{DeriveRequired: rapid.Bool().Draw(r, "required")}
		typ, schema := drawStruct(r, o)
		withoutParameters(schema.Fields)
		s, d := anyStruct(r, typ, o)
		if got, _ := s.Schema(table.Destination{}); !got.Equal(schema) {
			r.Fatalf("%v is\n%+v, want\n%+v", typ, got, schema)
		}
		want := rapid.SliceOfN(rowtest.Rows(schema), 1, 4).Draw(r, "rows")
		var records []unsafe.Pointer
		for _, values := range want {
			rec := reflect.New(typ)
			f := filler{T: r, left: -1}
			f.fill(rec.Elem(), schema.Fields, values, "")
			records = append(records, rec.UnsafePointer())
		}
		dst, err := stored.Check(t.Context(), l, s, want, records...)
		if err != nil {
			r.Fatalf("%v: %v", typ, err)
		}
		avro, err1 := stored.Read(t.Context(), l, dst, d)
		arrow, err2 := stored.ReadArrow(t.Context(), l, dst, d)
		if err := errors.Join(err1, err2); err != nil || len(avro) != len(want) || len(arrow) != len(want) {
			r.Fatalf("%v: %v, %d and %d records, want %d", typ, err, len(avro), len(arrow), len(want))
		}
		for i, rec := range append(avro, arrow...) {
			got := valuesOf(reflect.NewAt(typ, rec).Elem(), schema.Fields)
			if diff := rowtest.Diff(schema, want[i%len(want)], got); diff != "" {
				r.Fatalf("%v is read: %s", typ, diff)
			}
		}
	})
}

// TestSpoiltStructs: a value that is none of its column's is refused wherever it is, and its path named.
func TestSpoiltStructs(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		typ, schema := drawStruct(r, Options{})
		withoutParameters(schema.Fields)
		s, _ := anyStruct(r, typ, Options{})
		rec := reflect.New(typ)
		f := filler{T: r, left: rapid.IntRange(0, 5).Draw(r, "before")}
		f.fill(rec.Elem(), schema.Fields, rowtest.Rows(schema).Draw(r, "row"), "")
		_, err := s.AppendRow(nil, table.Destination{}, rec.UnsafePointer())
		var e *row.Error
		switch {
		case f.spoilt == "" && err != nil:
			r.Fatal(err)
		case f.spoilt != "" && (!errors.As(err, &e) || e.Path != f.spoilt || e.Kind != f.kind):
			r.Fatalf("%v, want %s at %s", err, f.kind, f.spoilt)
		}
	})
}

// columnsFor are Columns that read values.
func columnsFor(fields []table.Field) Columns[[]row.Value] {
	out := make(Columns[[]row.Value], len(fields))
	for i := range fields {
		f := fields[i]
		out[i] = Column[[]row.Value]{Name: f.Name, Mode: f.Mode}
		if f.Mode == table.Repeated {
			out[i].Value = List(func(r *[]row.Value) []row.Value { return (*r)[i].List }, columnFor(&f, func(v *row.Value) *row.Value { return v }))
		} else {
			out[i].Value = columnFor(&f, func(r *[]row.Value) *row.Value { return &(*r)[i] })
		}
	}
	return out
}

func columnFor[T any](f *table.Field, at func(*T) *row.Value) Value[T] {
	number := func(r *T) (int64, bool) { v := at(r); return v.Int, !v.Null }
	text := func(r *T) (string, bool) { v := at(r); return string(v.Bytes), !v.Null }
	raw := func(r *T) ([]byte, bool) { v := at(r); return v.Bytes, !v.Null }
	rat := func(r *T) *big.Rat {
		v := at(r)
		if v.Null {
			return nil
		}
		s, err := row.ScaledFromBigEndian(v.Bytes)
		if err != nil {
			panic(err)
		}
		return s.Rat(int(v.Int))
	}
	switch f.Type {
	case table.Bool:
		return Bool(func(r *T) (bool, bool) { n, ok := number(r); return n != 0, ok })
	case table.Int64:
		return Int64(number)
	case table.Float64:
		return Float64(func(r *T) (float64, bool) { n, ok := number(r); return math.Float64frombits(uint64(n)), ok })
	case table.Numeric:
		return Numeric(rat)
	case table.BigNumeric:
		return BigNumeric(rat)
	case table.Bytes:
		return Bytes(raw)
	case table.JSON:
		return JSON(raw)
	case table.Geography:
		return Geography(text)
	case table.Date:
		return Date(func(r *T) (civil.Date, bool) { n, ok := number(r); return dateOf(n), ok })
	case table.Time:
		return Time(func(r *T) (civil.Time, bool) { n, ok := number(r); return civil.TimeOf(time.UnixMicro(n).UTC()), ok })
	case table.DateTime:
		return DateTime(func(r *T) (civil.DateTime, bool) {
			n, ok := number(r)
			return civil.DateTimeOf(time.UnixMicro(n).UTC()), ok
		})
	case table.Timestamp:
		return Timestamp(func(r *T) (time.Time, bool) { n, ok := number(r); return time.UnixMicro(n), ok })
	case table.Struct:
		return Struct(columnsFor(f.Fields), func(r *T) *[]row.Value {
			if v := at(r); !v.Null {
				return &v.List
			}
			return nil
		})
	}
	return String(text)
}

// TestColumnsStored: what functions read of records is stored bit for bit.
func TestColumnsStored(t *testing.T) {
	l := stored.Start(t)
	types := slices.DeleteFunc(rowtest.Types(), func(t table.Type) bool { return t == table.Interval || t == table.Range })
	rowtest.Sparingly(t, func(r *rapid.T) {
		schema := rowtest.Schemas(types, 5).Draw(r, "schema")
		rowtest.Flexible(r, schema)
		withoutParameters(schema.Fields)
		s, err := columnsFor(schema.Fields).Serializer()
		if err != nil {
			r.Fatal(err)
		}
		want := rapid.SliceOfN(rowtest.Rows(schema), 1, 4).Draw(r, "rows")
		if _, err := stored.Check(t.Context(), l, s, want, want...); err != nil {
			r.Fatal(err)
		}
	})
}
