package decode

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// named is a field for a column of any name.
func named(f *descriptorpb.FieldDescriptorProto, column string) *descriptorpb.FieldDescriptorProto {
	f.Options = &descriptorpb.FieldOptions{}
	proto.SetExtension(f.Options, storagepb.E_ColumnName, column)
	return f
}

func TestDescriptor(t *testing.T) {
	id := tableOf(col("id", schema.Int64))
	with := func(change func(*descriptorpb.FieldDescriptorProto)) *descriptorpb.DescriptorProto {
		f := field("id", "int64")
		change(f)
		return messageOf("Song", f)
	}
	cases := map[string]struct {
		d    *descriptorpb.DescriptorProto
		want string
	}{
		"LBQ-59 a reference to nothing": {messageOf("Song", of("composer", "message", ".Composer")),
			`Song.composer: ".Composer" is not defined.`},
		"LBQ-59 relative":        {messageOf("Song", of("composer", "message", "Composer")), `Song.composer: "Composer" is not defined.`},
		"LBQ-60 proto3_optional": {with(func(f *descriptorpb.FieldDescriptorProto) { f.Proto3Optional = new(true) }), "Song.id: proto3_optional is set in a proto2 file."},
		"LBQ-60 oneof left":      {with(func(f *descriptorpb.FieldDescriptorProto) { f.OneofIndex = new(int32(0)) }), "Song.id: oneof index 0 is out of range."},
		"number 0":               {with(func(f *descriptorpb.FieldDescriptorProto) { f.Number = new(int32(0)) }), "Song.id: field number 0 is not allowed."},
		"reserved number":        {with(func(f *descriptorpb.FieldDescriptorProto) { f.Number = new(int32(19000)) }), "Song.id: field number 19000 is not allowed."},
		"number too large":       {with(func(f *descriptorpb.FieldDescriptorProto) { f.Number = new(int32(1 << 29)) }), "Song.id: field number 536870912 is not allowed."},
		"no type":                {with(func(f *descriptorpb.FieldDescriptorProto) { f.Type = nil }), "Song.id: the field has no type."},
		"unknown type":           {with(func(f *descriptorpb.FieldDescriptorProto) { f.Type = new(descriptorpb.FieldDescriptorProto_Type(99)) }), "Song.id: field type 99 is unknown."},
		"bad name":               {with(func(f *descriptorpb.FieldDescriptorProto) { f.Name = new("a-b") }), `"Song.a-b" is not a valid identifier.`},
		"no message name":        {&descriptorpb.DescriptorProto{}, `"" is not a valid identifier.`},
		"two of one name":        {messageOf("Song", field("id", "int64"), field("id", "int64")), `"Song.id" is already defined.`},
		"bad default":            {messageOf("Song", withDefault(field("id", "int64"), "x")), `Song.id: default value "x" does not fit the type.`},
		"default of a list":      {messageOf("Song", withDefault(repeated(field("id", "int64")), "1")), "Song.id: only singular scalar fields have default values."},
		"enum as message":        {messageOf("Song", of("id", "message", "E"), enumOf("E", "A")), `Song.id: "E" is not of the type the field says.`},
		"empty enum":             {messageOf("Song", of("id", "enum", "E"), enumOf("E")), "Song.E: not a valid enum."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(c.d, "t", id)
			if want := "Invalid proto schema: BqMessage.proto: " + c.want; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	t.Run("two of one number", func(t *testing.T) {
		d := messageOf("Song", field("id", "int64"), field("b", "int64"))
		d.Field[1].Number = new(int32(1))
		if _, err := Compile(d, "t", id); err == nil || !strings.Contains(err.Error(), "field number 1 has already been used") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a real oneof is none of our business", func(t *testing.T) {
		d := with(func(f *descriptorpb.FieldDescriptorProto) { f.OneofIndex = new(int32(0)) })
		d.OneofDecl = []*descriptorpb.OneofDescriptorProto{{Name: new("choice")}}
		compile(t, d, id)
	})
}

func TestColumns(t *testing.T) {
	t.Run("LBQ-55 extra fields, by path, in one error", func(t *testing.T) {
		d := messageOf("Row", field("id", "int64"), field("a", "string"), of("s", "message", "S"), messageOf("S", field("x", "int64"), field("y", "int64")), field("b", "bytes"))
		_, err := Compile(d, "t", tableOf(col("id", schema.Int64), structOf("s", col("x", schema.Int64))))
		refused, ok := errors.AsType[*SchemaError](err)
		if !ok || refused.Message != "Input schema has more fields than BigQuery schema, extra fields: 'a,s.y,b'" || !slices.Equal(refused.Extra, []string{"a", "s.y", "b"}) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("LBQ-57 a required column left out", func(t *testing.T) {
		_, err := Compile(messageOf("Row", field("a", "int64")), "t", tableOf(col("a", schema.Int64), required(col("r", schema.Int64))))
		if err == nil || err.Error() != "The required field r is missing in the input schema of table t" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("LBQ-57 a required member left out", func(t *testing.T) {
		d := messageOf("Row", of("s", "message", "S"), messageOf("S", field("x", "int64")))
		_, err := Compile(d, "t", tableOf(structOf("s", col("x", schema.Int64), required(col("r", schema.Int64)))))
		if err == nil || !strings.Contains(err.Error(), "s.r") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("LBQ-64 names swapped by the option", func(t *testing.T) {
		d := messageOf("Row", named(field("a", "string"), "b"), named(field("b", "string"), "a"))
		p := compile(t, d, tableOf(col("a", schema.String), col("b", schema.String)))
		if got := decoded(t, p, Request{}, rows(t, d, `a: "1" b: "2"`)); got != `{"a":"2","b":"1"}` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("LBQ-65 names match without case", func(t *testing.T) {
		d := messageOf("Row", field("ID", "int64"))
		if got := decoded(t, compile(t, d, tableOf(col("id", schema.Int64))), Request{}, rows(t, d, `ID: 1`)); got != `{"id":1}` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("LBQ-91 flexible names, nested too", func(t *testing.T) {
		d := messageOf("Row", named(field("col_1", "int64"), "größe-%"), named(of("col_2", "message", "S"), "+1"), messageOf("S", named(field("col_1", "int64"), "-1")))
		p := compile(t, d, tableOf(col("größe-%", schema.Int64), structOf("+1", col("-1", schema.Int64))))
		if got := decoded(t, p, Request{}, rows(t, d, `col_1: 1 col_2 { col_1: 2 }`)); got != `{"+1":{"-1":2},"größe-%":1}` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("two fields for one column", func(t *testing.T) {
		_, err := Compile(messageOf("Row", field("a", "int64"), field("A", "int64")), "t", tableOf(col("a", schema.Int64)))
		if err == nil || !strings.Contains(err.Error(), "more than one field for column a") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a message that contains itself", func(t *testing.T) {
		d := messageOf("Row", of("s", "message", "Row"))
		_, err := Compile(d, "t", tableOf(structOf("s", structOf("s", col("x", schema.Int64)))))
		if err == nil || err.Error() != "Invalid proto schema: BqMessage.proto: Row contains itself." {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nested deeper than 15 levels", func(t *testing.T) {
		for depth, ok := range map[int]bool{15: true, 16: false} {
			d, s := deep(depth + 1)
			_, err := Compile(d, "t", s)
			if (err == nil) != ok {
				t.Errorf("%d levels: %v", depth, err)
			}
		}
	})
	t.Run("declared deeper than any row could be", func(t *testing.T) {
		d := messageOf("M")
		for range 1000 {
			d = messageOf("M", d)
		}
		if _, err := Compile(d, "t", nil); err == nil {
			t.Error("accepted")
		}
	})
	t.Run("a table without a schema has no columns", func(t *testing.T) {
		if _, err := Compile(messageOf("Row", field("a", "int64")), "t", nil); err == nil || !strings.Contains(err.Error(), "extra fields: 'a'") {
			t.Errorf("got %v", err)
		}
		p := compile(t, messageOf("Row"), nil)
		if bad := p.Decode([][]byte{{}, {}}, Request{}); bad != nil {
			t.Fatal(bad)
		}
		if n := p.Take().NumRows(); n != 2 {
			t.Errorf("%d rows, want 2", n)
		}
	})
	t.Run("nested types are found from the inside out", func(t *testing.T) {
		d := messageOf("Row", of("s", "message", "S"), messageOf("S", of("t", "message", "T")), messageOf("T", field("x", "int64")))
		p := compile(t, d, tableOf(structOf("s", structOf("t", col("x", schema.Int64)))))
		if got := decoded(t, p, Request{}, rows(t, d, "s { t { x: 1 } }")); got != `{"s":{"t":{"x":1}}}` {
			t.Errorf("got %s", got)
		}
	})
}

// deep is a message, and a table, of so many levels.
func deep(levels int) (*descriptorpb.DescriptorProto, *schema.Schema) {
	d := messageOf("M1")
	s := tableOf(col("x", schema.Int64))
	for level := levels; level > 1; level-- {
		inner := messageOf(fmt.Sprint("M", level), field("x", "int64"))
		if level < levels {
			inner = messageOf(fmt.Sprint("M", level), of("s", "message", fmt.Sprint("M", level+1)))
		}
		d.NestedType = append(d.NestedType, inner)
		s = tableOf(structOf("s", s.Fields...))
	}
	top := of("s", "message", "M2")
	top.Number = new(int32(1))
	d.Field = append(d.Field, top)
	return d, s
}

func TestMissing(t *testing.T) {
	d := messageOf("Row", field("id", "int64"), field("status", "string"), repeated(field("tags", "string")))
	withDefault := func(f *schema.Field, sql string) *schema.Field { f.Default = sql; return f }
	s := tableOf(
		required(col("id", schema.Int64)), withDefault(col("status", schema.String), "'new'"),
		withDefault(many(col("tags", schema.String)), "['a','b']"), withDefault(col("absent", schema.Date), "DATE '2024-01-02'"))
	row := rows(t, d, "id: 1")
	cases := map[string]struct {
		q    Request
		want string
	}{
		"LBQ-69 NULL, but the default where the descriptor has no field": {Request{}, `{"absent":"2024-01-02","id":1,"status":null,"tags":[]}`},
		"LBQ-70 defaults": {Request{Missing: MissingDefault}, `{"absent":"2024-01-02","id":1,"status":"new","tags":["a","b"]}`},
		"LBQ-71 one column overridden": {Request{Missing: MissingDefault, Columns: map[string]Missing{"STATUS": MissingNull}},
			`{"absent":"2024-01-02","id":1,"status":null,"tags":["a","b"]}`},
		"one column with its default": {Request{Columns: map[string]Missing{"status": MissingDefault}}, `{"absent":"2024-01-02","id":1,"status":"new","tags":[]}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := decoded(t, compile(t, d, s), c.q, row); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	t.Run("a value is a value, empty ones too", func(t *testing.T) {
		got := decoded(t, compile(t, d, s), Request{Missing: MissingDefault}, rows(t, d, `id: 1 status: "" tags: ""`))
		if got != `{"absent":"2024-01-02","id":1,"status":"","tags":[""]}` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("LBQ-58 a required value missing", func(t *testing.T) {
		bad := compile(t, d, s).Decode(rows(t, d, "id: 1", `status: "x"`, "id: 2"), Request{})
		if len(bad) != 1 || bad[0] != (RowError{1, "Field value of id cannot be empty."}) {
			t.Errorf("got %+v", bad)
		}
	})
	t.Run("a required column with a default takes it", func(t *testing.T) {
		s := tableOf(withDefault(required(col("id", schema.Int64)), "7"))
		p := compile(t, messageOf("Row", field("id", "int64")), s)
		if got := decoded(t, p, Request{Missing: MissingDefault}, [][]byte{{}}); got != `{"id":7}` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("a required member of a struct that is NULL is not missed", func(t *testing.T) {
		d := messageOf("Row", of("s", "message", "S"), messageOf("S", field("x", "int64")))
		p := compile(t, d, tableOf(structOf("s", required(col("x", schema.Int64)))))
		if got := decoded(t, p, Request{}, [][]byte{{}}); got != `{"s":null}` {
			t.Errorf("got %s", got)
		}
		bad := p.Decode(rows(t, d, "s { }"), Request{})
		if len(bad) != 1 || bad[0].Message != "Field value of s.x cannot be empty." {
			t.Errorf("got %+v", bad)
		}
	})
}

func TestCheckDefaults(t *testing.T) {
	for sql, f := range map[string]*schema.Field{
		"1": col("c", schema.Int64), "1.5": col("c", schema.Float64), "2": col("c", schema.Float64), "TRUE": col("c", schema.Bool), "'x'": col("c", schema.String),
		"b'x'": col("c", schema.Bytes), "'1.5'": col("c", schema.Numeric), "NUMERIC '1.5'": col("c", schema.BigNumeric), "CURRENT_DATE()": col("c", schema.Date),
		"CURRENT_TIME()": col("c", schema.Time), "CURRENT_DATETIME": col("c", schema.DateTime), "CURRENT_TIMESTAMP()": col("c", schema.Timestamp),
		"JSON '{}'": col("c", schema.JSON), "'POINT(1 2)'": col("c", schema.Geography), "GENERATE_UUID()": col("c", schema.String), "NULL": structOf("c", col("x", schema.Int64)),
		"[1,2]": many(col("c", schema.Int64)), "[]": many(col("c", schema.Date)), "'1-2'": col("c", schema.Interval),
	} {
		f.Default = sql
		if err := CheckDefaults(&schema.Definition{Schema: tableOf(f)}); err != nil {
			t.Errorf("%s of %s: %v", sql, f.Type, err)
		}
	}
	for sql, f := range map[string]*schema.Field{
		"'x'": col("c", schema.Int64), "'2024-02-30'": col("c", schema.Date), "1": many(col("c", schema.Int64)), "[1]": col("c", schema.Int64), "[NULL]": many(col("c", schema.Int64)),
		"NULL": required(col("c", schema.Int64)), "SESSION_USER()": col("c", schema.String), "'abc'": {Name: "c", Type: schema.String, MaxLength: 2},
		"(1,2)": structOf("c", col("x", schema.Int64)),
	} {
		f.Default = sql
		if err := CheckDefaults(&schema.Definition{Schema: tableOf(f)}); err == nil {
			t.Errorf("%s of %s is accepted", sql, f.Type)
		}
	}
}
