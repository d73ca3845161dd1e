package added_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/added"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

var dst = table.Destination{Project: "my-project", Dataset: "shop", Table: "orders"}

// base writes an INT64 column id. It counts what is asked of it.
type base struct {
	schema      *table.Schema
	message     *descriptorpb.DescriptorProto // nil: derived
	fingerprint uint64
	asked       atomic.Int64
}

func newBase(columns ...string) *base {
	b := &base{schema: &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64}}}}
	for _, c := range columns {
		b.schema.Fields = append(b.schema.Fields, table.Field{Name: c, Type: table.Int64})
	}
	return b
}

func (b *base) Schema(table.Destination) (*table.Schema, error) {
	b.asked.Add(1)
	return b.schema, nil
}

func (b *base) Descriptor(table.Destination) (*descriptorpb.DescriptorProto, error) {
	if b.message != nil {
		return b.message, nil
	}
	return row.Descriptor(b.schema)
}

func (b *base) Fingerprint(table.Destination) uint64 { return b.fingerprint }

func (b *base) AppendRow(buf []byte, _ table.Destination, rec int64) ([]byte, error) {
	if rec < 0 {
		return buf, row.ErrSkip
	}
	return row.AppendInt(append(buf, 8), rec), nil
}

var instant = time.Date(2026, 8, 14, 1, 2, 3, 123456789, time.UTC)

func text(v string) func(int64) (string, bool, error) {
	return func(int64) (string, bool, error) { return v, true, nil }
}

func clock(int64) (time.Time, bool, error) { return instant, true, nil }

func wantKind(t *testing.T, err error, kind row.Kind, path string) *row.Error {
	t.Helper()
	var e *row.Error
	if !errors.As(err, &e) || e.Kind != kind || e.Path != path {
		t.Fatalf("%v, want %s at %q", err, kind, path)
	}
	return e
}

// TestSuite has a column of every type.
func TestSuite(t *testing.T) {
	absent := func(rec int64) bool { return rec == 0 }
	field := func(name string, typ table.Type, v any) added.Field[int64] {
		return added.Dynamic(name, added.Nullable, typ, func(rec int64) (any, error) {
			if absent(rec) {
				return nil, nil
			}
			return v, nil
		})
	}
	date, clock := civil.Date{Year: 2026, Month: 7, Day: 26}, civil.Time{Hour: 1, Minute: 2, Second: 3, Nanosecond: 456789000}
	fields := []added.Field[int64]{
		added.Bool("bool", added.Nullable, func(rec int64) (bool, bool, error) { return true, !absent(rec), nil }),
		added.Int64("int", added.Nullable, func(rec int64) (int64, bool, error) { return -42, !absent(rec), nil }),
		added.Float64("float", added.Nullable, func(rec int64) (float64, bool, error) { return 1.5, !absent(rec), nil }),
		added.Numeric("num", added.Nullable, func(rec int64) (*big.Rat, bool, error) { return big.NewRat(5, 4), !absent(rec), nil }),
		added.BigNumeric("big", added.Nullable, func(rec int64) (*big.Rat, bool, error) { return big.NewRat(-5, 4), !absent(rec), nil }),
		added.String("text", added.Nullable, func(rec int64) (string, bool, error) { return "hé", !absent(rec), nil }),
		added.Bytes("bytes", added.Nullable, func(rec int64) ([]byte, bool, error) { return []byte{0xff}, !absent(rec), nil }),
		added.Date("date", added.Nullable, func(rec int64) (civil.Date, bool, error) { return date, !absent(rec), nil }),
		added.Time("time", added.Nullable, func(rec int64) (civil.Time, bool, error) { return clock, !absent(rec), nil }),
		added.DateTime("dt", added.Nullable, func(rec int64) (civil.DateTime, bool, error) {
			return civil.DateTime{Date: date, Time: clock}, !absent(rec), nil
		}),
		added.Timestamp("ts", added.Nullable, func(rec int64) (time.Time, bool, error) { return instant, !absent(rec), nil }),
		added.JSON("js", added.Nullable, func(rec int64) ([]byte, bool, error) { return []byte(`{"k":1}`), !absent(rec), nil }),
		added.Geography("geo", added.Nullable, func(rec int64) (string, bool, error) { return "POINT(1 2)", !absent(rec), nil }),
		field("any_bool", table.Bool, false), field("any_int", table.Int64, int64(7)), field("any_float", table.Float64, 2.5),
		field("any_num", table.Numeric, big.NewRat(1, 1)), field("any_big", table.BigNumeric, big.NewRat(1, 1)),
		field("any_text", table.String, ""), field("any_bytes", table.Bytes, []byte{}), field("any_date", table.Date, date),
		field("any_time", table.Time, clock), field("any_dt", table.DateTime, civil.DateTime{Date: date, Time: clock}),
		field("any_ts", table.Timestamp, instant), field("any_js", table.JSON, "7"), field("any_geo", table.Geography, "{}"),
	}
	const micros, day = 3723456789, 20660
	full := []row.Value{{Int: 5}, {Int: 1}, {Int: -42}, rowtest.Float(1.5), rowtest.Decimal(table.Numeric, "1.25"),
		rowtest.Decimal(table.BigNumeric, "-1.25"), rowtest.Text("hé"), rowtest.Text("\xff"), {Int: day}, {Int: micros},
		{Int: day*86_400_000_000 + micros}, {Int: 1786669323123456}, rowtest.Text(`{"k":1}`), rowtest.Text("POINT(1 2)"),
		{Int: 0}, {Int: 7}, rowtest.Float(2.5), rowtest.Decimal(table.Numeric, "1"), rowtest.Decimal(table.BigNumeric, "1"),
		rowtest.Text(""), rowtest.Text(""), {Int: day}, {Int: micros}, {Int: day*86_400_000_000 + micros}, {Int: 1786669323123456},
		rowtest.Text("7"), rowtest.Text("{}")}
	none := []row.Value{{Int: 0}}
	for range fields {
		none = append(none, rowtest.Null)
	}
	rowtest.Test(t, rowtest.Format[int64]{
		New:         func() (row.Serializer[int64], error) { return added.New(&base{schema: newBase().schema}, fields...) },
		Destination: dst,
		Cases: []rowtest.Case[int64]{
			{Name: "every type", Record: func() int64 { return 5 }, Values: full},
			{Name: "nothing added", Record: func() int64 { return 0 }, Values: none},
			{Name: "SER-130 skipped", Record: func() int64 { return -1 }, Skip: true},
		},
	})
}

func TestColumnsComeBehind(t *testing.T) {
	var order []string
	log := func(name string) func(int64) (string, bool, error) {
		return func(int64) (string, bool, error) {
			order = append(order, name)
			return name, true, nil
		}
	}
	t.Run("SER-127 schema, descriptor, modes and order", func(t *testing.T) {
		s, err := added.New(newBase(),
			added.String("__uuid", added.Required, log("u")),
			added.Timestamp("__timestamp", added.Nullable, func(int64) (time.Time, bool, error) {
				order = append(order, "t")
				return instant, true, nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		schema, err := s.Schema(dst)
		if err != nil {
			t.Fatal(err)
		}
		want := &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64},
			{Name: "__uuid", Type: table.String, Mode: table.Required}, {Name: "__timestamp", Type: table.Timestamp}}}
		if !schema.Equal(want) {
			t.Errorf("schema %+v, want %+v", schema, want)
		}
		d, err := s.Descriptor(dst)
		derived, _ := row.Descriptor(want)
		if err != nil || !proto.Equal(d, derived) {
			t.Errorf("descriptor %v, %v, want %v", d, err, derived)
		}
		got, err := s.AppendRow(nil, dst, 1)
		if want := "\x08\x01\x12\x01u\x18\x80\xdb\x9b"; err != nil || !strings.HasPrefix(string(got), want[:5]) || strings.Join(order, "") != "ut" {
			t.Errorf("row %x, %v, order %v", got, err, order)
		}
	})
	t.Run("SER-128 TIMESTAMP is cut to microseconds", func(t *testing.T) {
		s, err := added.New(newBase(), added.Timestamp("ts", added.Nullable, clock))
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.AppendRow(nil, dst, 1)
		if want := row.AppendInt([]byte{8, 1, 16}, 1786669323123456); err != nil || string(got) != string(want) {
			t.Errorf("%x, %v, want %x", got, err, want)
		}
	})
	t.Run("SER-136 names are lowered whatever the locale", func(t *testing.T) {
		s, err := added.New(newBase(), added.String("INGESTION_ID", added.Nullable, text("x")))
		if err != nil {
			t.Fatal(err)
		}
		d, err := s.Descriptor(dst)
		if err != nil || d.Field[1].GetName() != "ingestion_id" {
			t.Errorf("%v, %v, want ingestion_id", d, err)
		}
	})
}

func TestRecordsThatFail(t *testing.T) {
	cause := errors.New("the clock is broken")
	fail := func(name string, f added.Field[int64]) error {
		t.Helper()
		s, err := added.New(newBase(), f)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err = s.AppendRow(nil, dst, 1)
		return err
	}
	t.Run("SER-129 Required without a value", func(t *testing.T) {
		err := fail("none", added.String("required_value", added.Required, func(int64) (string, bool, error) { return "", false, nil }))
		wantKind(t, err, row.KindRequired, "required_value")
		if !strings.Contains(err.Error(), "field required_value") {
			t.Errorf("%v, want it to name the field", err)
		}
	})
	t.Run("SER-129 Nullable without a value", func(t *testing.T) {
		s, err := added.New(newBase(), added.Numeric("n", added.Nullable, func(int64) (*big.Rat, bool, error) { return nil, true, nil }))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.AppendRow(nil, dst, 1); err != nil || string(got) != "\x08\x01" {
			t.Errorf("%x, %v, want the inner row alone", got, err)
		}
	})
	t.Run("SER-130 a skipped record calls nothing", func(t *testing.T) {
		called := false
		s, err := added.New(newBase(), added.String("x", added.Required, func(int64) (string, bool, error) {
			called = true
			return "", true, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.AppendRow(nil, dst, -1); !errors.Is(err, row.ErrSkip) || called {
			t.Errorf("%v, called: %v", err, called)
		}
	})
	t.Run("SER-130 the function's error is kept", func(t *testing.T) {
		err := fail("cause", added.Time("x", added.Nullable, func(int64) (civil.Time, bool, error) { return civil.Time{}, false, cause }))
		wantKind(t, err, row.KindProvider, "x")
		if !errors.Is(err, cause) {
			t.Errorf("%v does not hold its cause", err)
		}
		err = fail("cause", added.Dynamic("x", added.Nullable, table.Int64, func(int64) (any, error) { return nil, cause }))
		wantKind(t, err, row.KindProvider, "x")
	})
	t.Run("SER-130 the first failure stops", func(t *testing.T) {
		called := false
		s, err := added.New(newBase(),
			added.String("a", added.Required, func(int64) (string, bool, error) { return "", false, nil }),
			added.String("b", added.Required, func(int64) (string, bool, error) { called = true; return "", true, nil }))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.AppendRow(nil, dst, 1)
		wantKind(t, err, row.KindRequired, "a")
		if called {
			t.Error("the second function was called")
		}
	})
	t.Run("SER-131 another Go type", func(t *testing.T) {
		err := fail("int64", added.Dynamic("s", added.Nullable, table.String, func(int64) (any, error) { return int64(1), nil }))
		wantKind(t, err, row.KindType, "s")
		if !strings.Contains(err.Error(), "requires string but received int64") {
			t.Errorf("%v", err)
		}
		for typ, v := range map[table.Type]any{table.Int64: 1, table.Timestamp: civil.Date{}, table.Date: time.Now(), table.Bool: "true",
			table.Bytes: "x", table.Geography: []byte("x"), table.Float64: float32(1), table.Numeric: 1.5, table.Time: instant, table.DateTime: instant} {
			wantKind(t, fail(typ.String(), added.Dynamic("s", added.Nullable, typ, func(int64) (any, error) { return v, nil })), row.KindType, "s")
		}
	})
	for name, c := range map[string]struct {
		field added.Field[int64]
		kind  row.Kind
	}{
		"TIME below the microsecond": {added.Time("x", added.Nullable, func(int64) (civil.Time, bool, error) { return civil.Time{Nanosecond: 1}, true, nil }), row.KindScale},
		"no such time":               {added.Time("x", added.Nullable, func(int64) (civil.Time, bool, error) { return civil.Time{Hour: 24}, true, nil }), row.KindRange},
		"no such date":               {added.Date("x", added.Nullable, func(int64) (civil.Date, bool, error) { return civil.Date{Year: 2027, Month: 2, Day: 29}, true, nil }), row.KindRange},
		"no such DATETIME":           {added.DateTime("x", added.Nullable, func(int64) (civil.DateTime, bool, error) { return civil.DateTime{}, true, nil }), row.KindRange},
		"the year 10000":             {added.Timestamp("x", added.Nullable, func(int64) (time.Time, bool, error) { return time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), true, nil }), row.KindRange},
		"a third":                    {added.Numeric("x", added.Nullable, func(int64) (*big.Rat, bool, error) { return big.NewRat(1, 3), true, nil }), row.KindScale},
		"no UTF-8":                   {added.String("x", added.Nullable, text("\xff")), row.KindText},
		"JSON that is no UTF-8":      {added.JSON("x", added.Nullable, func(int64) ([]byte, bool, error) { return []byte("\xff"), true, nil }), row.KindText},
	} {
		t.Run(name, func(t *testing.T) { wantKind(t, fail(name, c.field), c.kind, "x") })
	}
}

func TestNewRefuses(t *testing.T) {
	for name, fields := range map[string][]added.Field[int64]{
		"SER-132 none":                 nil,
		"SER-132 twice by case":        {added.String("__uuid", added.Nullable, text("")), added.String("__UUID", added.Nullable, text(""))},
		"SER-132 no identifier":        {added.String("not-a-proto-name", added.Nullable, text(""))},
		"empty name":                   {added.String("", added.Nullable, text(""))},
		"NUL in the name":              {added.String("a\x00b", added.Nullable, text(""))},
		"name of a CDC pseudo-column":  {added.String("_CHANGE_type", added.Nullable, text(""))},
		"reserved prefix":              {added.String("_table_x", added.Nullable, text(""))},
		"no function":                  {added.String[int64]("x", added.Nullable, nil)},
		"no function for a decimal":    {added.Numeric[int64]("x", added.Nullable, nil)},
		"no dynamic function":          {added.Dynamic[int64]("x", added.Nullable, table.Int64, nil)},
		"a type that is no scalar":     {added.Dynamic("x", added.Nullable, table.Struct, func(int64) (any, error) { return nil, nil })},
		"a type that cannot be added":  {added.Dynamic("x", added.Nullable, table.Interval, func(int64) (any, error) { return nil, nil })},
		"a policy that does not exist": {added.String("x", 7, text(""))},
		"the zero Field":               {{}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := added.New(newBase(), fields...)
			var e *row.Error
			if !errors.As(err, &e) || e.Kind != row.KindField {
				t.Errorf("%v, want %s", err, row.KindField)
			}
		})
	}
	if _, err := added.New[int64](nil, added.String("x", added.Nullable, text(""))); err == nil {
		t.Error("no serializer: want an error")
	}
	if _, err := added.NewChanges(newBase(), added.Changes[int64]{}); err == nil {
		t.Error("no function for the change type: want an error")
	}
}

func TestCollisions(t *testing.T) {
	called := false
	f := added.String("computed", added.Nullable, func(int64) (string, bool, error) { called = true; return "", true, nil })
	t.Run("SER-133 with a column", func(t *testing.T) {
		s, err := added.New(newBase("COMPUTED"), f)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Schema(dst)
		wantKind(t, err, row.KindCase, "computed")
		_, err = s.AppendRow(nil, dst, 1)
		wantKind(t, err, row.KindCase, "computed")
		if called {
			t.Error("the function was called")
		}
	})
	t.Run("SER-133 with a field of the descriptor", func(t *testing.T) {
		b := newBase()
		b.message, _ = row.Descriptor(newBase("Computed").schema)
		s, err := added.New(b, f)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Descriptor(dst)
		wantKind(t, err, row.KindCase, "computed")
	})
	t.Run("SER-133 with a flexible name", func(t *testing.T) {
		// The Kelvin sign is K to BigQuery.
		s, err := added.New(newBase("\u212Aey"), added.String("key", added.Nullable, text("")))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Schema(dst)
		wantKind(t, err, row.KindCase, "key")
	})
	t.Run("a physical column called as a pseudo-column", func(t *testing.T) {
		b := newBase("_Change_Type")
		s, err := added.NewChanges(b, added.Changes[int64]{Type: func(int64) (string, error) { return "UPSERT", nil }})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Schema(dst)
		wantKind(t, err, row.KindCase, "_change_type")
	})
}

func TestFieldNumbers(t *testing.T) {
	field := func(n int32) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{Name: proto.String("id"), Number: proto.Int32(n),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum()}
	}
	reserved := func(from, to int32) *descriptorpb.DescriptorProto_ReservedRange {
		return &descriptorpb.DescriptorProto_ReservedRange{Start: proto.Int32(from), End: proto.Int32(to + 1)}
	}
	extensions := func(from, to int32) *descriptorpb.DescriptorProto_ExtensionRange {
		return &descriptorpb.DescriptorProto_ExtensionRange{Start: proto.Int32(from), End: proto.Int32(to + 1)}
	}
	for name, c := range map[string]struct {
		message *descriptorpb.DescriptorProto
		want    []int32 // none: C-DESC
	}{
		"SER-134 reserved and extensions": {&descriptorpb.DescriptorProto{Field: []*descriptorpb.FieldDescriptorProto{field(4)},
			ReservedRange: []*descriptorpb.DescriptorProto_ReservedRange{reserved(5, 6)}, ExtensionRange: []*descriptorpb.DescriptorProto_ExtensionRange{extensions(7, 8)}}, []int32{9, 10}},
		"SER-134 protobuf's own range": {&descriptorpb.DescriptorProto{Field: []*descriptorpb.FieldDescriptorProto{field(18999)},
			ReservedRange: []*descriptorpb.DescriptorProto_ReservedRange{reserved(20000, 20001)}}, []int32{20002, 20003}},
		"in any order": {&descriptorpb.DescriptorProto{Field: []*descriptorpb.FieldDescriptorProto{field(1)},
			ReservedRange: []*descriptorpb.DescriptorProto_ReservedRange{reserved(4, 9), reserved(2, 2)}}, []int32{3, 10}},
		"none left": {&descriptorpb.DescriptorProto{Field: []*descriptorpb.FieldDescriptorProto{field(1<<29 - 1)}}, nil},
		"none left behind extensions": {&descriptorpb.DescriptorProto{Field: []*descriptorpb.FieldDescriptorProto{field(1)},
			ExtensionRange: []*descriptorpb.DescriptorProto_ExtensionRange{extensions(2, 1<<29-1)}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBase()
			c.message.Name = proto.String("Row")
			b.message = c.message
			before := proto.Clone(c.message)
			s, err := added.New(b, added.Int64("x", added.Nullable, func(rec int64) (int64, bool, error) { return rec, true, nil }),
				added.Int64("y", added.Nullable, func(rec int64) (int64, bool, error) { return rec, true, nil }))
			if err != nil {
				t.Fatal(err)
			}
			d, err := s.Descriptor(dst)
			if c.want == nil {
				wantKind(t, err, row.KindDesc, "x")
				return
			}
			if err != nil || d.Field[1].GetNumber() != c.want[0] || d.Field[2].GetNumber() != c.want[1] {
				t.Errorf("%v, %v, want the numbers %v", d, err, c.want)
			}
			if !proto.Equal(before, c.message) {
				t.Error("the inner serializer's descriptor was changed")
			}
			// The row has what is added under those numbers.
			got, err := s.AppendRow(nil, dst, 5)
			want := row.AppendInt([]byte{8}, 5)
			for _, n := range c.want {
				want = protowire.AppendVarint(protowire.AppendTag(want, protowire.Number(n), protowire.VarintType), 5)
			}
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("row %x, %v, want %x", got, err, want)
			}
		})
	}
}

// TestPlansAreKept (SER-135): a plan is derived once for each destination and fingerprint.
func TestPlansAreKept(t *testing.T) {
	b := newBase()
	b.fingerprint = 1
	s, err := added.New(b, added.String("x", added.Nullable, text("v")))
	if err != nil {
		t.Fatal(err)
	}
	write := func(d table.Destination) string {
		t.Helper()
		got, err := s.AppendRow(nil, d, 1)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", got)
	}
	for range 100 {
		if got := write(dst); got != "0801120176" {
			t.Fatal(got)
		}
	}
	if b.asked.Load() != 1 {
		t.Errorf("SER-135: the schema was asked for %d times, want once", b.asked.Load())
	}
	other := dst
	other.Table = "others"
	write(other)
	if b.asked.Load() != 2 {
		t.Errorf("SER-135: asked %d times for two destinations", b.asked.Load())
	}
	b.schema, b.fingerprint = newBase("more").schema, 2
	if got := write(dst); got != "08011a0176" {
		t.Errorf("SER-135: %s, want the added column behind the new one", got)
	}
	if schema, err := s.Schema(dst); err != nil || len(schema.Fields) != 3 || b.asked.Load() != 3 {
		t.Errorf("SER-135: %v, %v after a new fingerprint, asked %d times", schema, err, b.asked.Load())
	}
}

func TestChanges(t *testing.T) {
	typ := func(rec int64) (string, error) {
		switch rec {
		case 1:
			return "UPSERT", nil
		case 2:
			return "DELETE", nil
		case 3:
			return "", nil
		case 4:
			return "", errors.New("unknown")
		}
		return "INSERT", nil
	}
	s, err := added.NewChanges(newBase(), added.Changes[int64]{Type: typ, Sequence: func(rec int64) (string, error) { return "1/FF", nil }},
		added.String("x", added.Nullable, text("v")))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := s.Schema(dst)
	if err != nil || len(schema.Fields) != 2 {
		t.Errorf("schema %v, %v: pseudo-columns are not in it", schema, err)
	}
	d, err := s.Descriptor(dst)
	if err != nil || len(d.Field) != 4 || d.Field[2].GetName() != "_change_type" || d.Field[3].GetName() != "_change_sequence_number" {
		t.Errorf("descriptor %v, %v", d, err)
	}
	if got, err := s.AppendRow(nil, dst, 2); err != nil || string(got) != "\x08\x02\x12\x01v\x1a\x06DELETE\x22\x041/FF" {
		t.Errorf("%q, %v", got, err)
	}
	t.Run("SER-1 a skipped record calls nothing", func(t *testing.T) {
		called := 0
		count := func(int64) (string, error) { called++; return "UPSERT", nil }
		s, err := added.NewChanges(newBase(), added.Changes[int64]{Type: count, Sequence: count})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.AppendRow([]byte("x"), dst, -1); !errors.Is(err, row.ErrSkip) || string(got) != "x" || called > 0 {
			t.Errorf("%q, %v, %d calls, want the skip and none", got, err, called)
		}
	})
	for rec, kind := range map[int64]row.Kind{3: row.KindRequired, 4: row.KindProvider, 5: row.KindRange} {
		_, err := s.AppendRow(nil, dst, rec)
		wantKind(t, err, kind, "_change_type")
	}
	bare, err := added.NewChanges(newBase(), added.Changes[int64]{Type: typ})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := bare.Descriptor(dst); err != nil || len(d.Field) != 2 {
		t.Errorf("descriptor %v, %v: without a sequence there is no field for it", d, err)
	}
}

func TestAppendRowAllocatesNothing(t *testing.T) {
	s, err := added.New(newBase(), added.String("a", added.Required, text("value")), added.Timestamp("b", added.Nullable, clock),
		added.Int64("c", added.Nullable, func(rec int64) (int64, bool, error) { return rec, true, nil }))
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { _, err = s.AppendRow(buf, dst, 1) }); n != 0 || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
}

func BenchmarkAppendRow(b *testing.B) {
	s, err := added.New(newBase(), added.String("a", added.Required, text("value")), added.Timestamp("b", added.Nullable, clock),
		added.Int64("c", added.Nullable, func(rec int64) (int64, bool, error) { return rec, true, nil }))
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.AppendRow(buf, dst, 1); err != nil {
			b.Fatal(err)
		}
	}
}
