package column

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func field(name string, t schema.Type, mode ...schema.Mode) *schema.Field {
	f := &schema.Field{Name: name, Type: t}
	if len(mode) > 0 {
		f.Mode = mode[0]
	}
	return f
}

func built(t *testing.T, b *Builder) string {
	t.Helper()
	var out strings.Builder
	if err := array.RecordToJSON(b.Take(), &out); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

func TestConversions(t *testing.T) {
	for _, c := range []struct {
		field *schema.Field
		in    any
		want  string // a JSON value, or a part of the error behind "!"
	}{
		{field("v", schema.Int64), "12", `12`},
		{field("v", schema.Int64), Number("1.0"), `1`},
		{field("v", schema.Int64), Number("1.5"), "!Could not parse '1.5' as INT64"},
		{field("v", schema.Int64), "9223372036854775808", "!Could not parse"},
		{field("v", schema.Int64), "1/1", "!Could not parse"},
		{field("v", schema.Int64), true, "!Could not convert boolean to INT64"},
		{field("v", schema.Bool), "Yes", `true`},
		{field("v", schema.Bool), "perhaps", "!Could not parse 'perhaps' as BOOL"},
		{field("v", schema.Float64), Number("1e3"), `1000`},
		{field("v", schema.Float64), "0x1p4", "!Could not parse"},
		{field("v", schema.String), Number("1.50"), `"1.50"`},
		{field("v", schema.String), "\xff", "!not valid UTF-8"},
		{field("v", schema.String), "a\x00\"`'\n", `"a\u0000\"` + "`" + `'\n"`},
		{&schema.Field{Name: "v", Type: schema.String, MaxLength: 2}, "äöü", "!STRING(2) has maximum length 2 but got a value with length 3"},
		{field("v", schema.Bytes), "AQI=", `"AQI="`},
		{field("v", schema.Bytes), "no base64!", "!Could not decode base64"},
		{field("v", schema.Numeric), Decimal{big.NewInt(-125), 2}, `"-1.25"`},
		{field("v", schema.Numeric), Number("1e40"), "!"},
		{field("v", schema.BigNumeric), "0.1", `"0.1"`},
		{field("v", schema.Date), Date(300), `"1970-10-28"`},
		{field("v", schema.Date), Date(3_000_000), "!out of range"},
		{field("v", schema.Date), "2020-02-30", "!"},
		{field("v", schema.Date), Number("1"), "!"},
		{field("v", schema.Time), Time(-1), "!out of range"},
		{field("v", schema.Timestamp), Number("1577934245.5"), `"2020-01-02T03:04:05.5Z"`},
		{field("v", schema.Timestamp), int64(1 << 62), "!out of range"},
		{field("v", schema.Timestamp), "2020-01-02 03:04:05 UTC", `"2020-01-02T03:04:05Z"`},
		{field("v", schema.JSON), Raw(`{"b":1,"a":[2]}`), `"{\"a\":[2],\"b\":1}"`},
		{field("v", schema.JSON), "nonsense", "!"},
		{field("v", schema.Geography), "POINT(1 2)", `"POINT(1 2)"`},
		{field("v", schema.Int64, schema.Repeated), List{int64(1), nil}, "!Only optional fields can be set to NULL"},
		{field("v", schema.Int64, schema.Repeated), int64(1), "!Field v is REPEATED"},
		{field("v", schema.Int64, schema.Repeated), nil, `[]`},
		{field("v", schema.Int64, schema.Required), nil, "!Missing required field: v."},
		{&schema.Field{Name: "v", Type: schema.Range, RangeElement: schema.Date}, "[2020-01-01, UNBOUNDED)", `{"end":null,"start":"2020-01-01"}`},
		{&schema.Field{Name: "v", Type: schema.Range, RangeElement: schema.Date}, "[2020-01-02, 2020-01-01)", "!must be before"},
		{&schema.Field{Name: "v", Type: schema.Struct, Fields: []*schema.Field{field("a", schema.Int64, schema.Required)}}, Record{}, "!Missing required field: v.a."},
		{&schema.Field{Name: "v", Type: schema.Struct, Fields: []*schema.Field{field("a", schema.Int64, schema.Required)}}, nil, `null`},
		{&schema.Field{Name: "v", Type: schema.Struct, Fields: []*schema.Field{field("a", schema.Int64)}}, "x", "!Field v is a RECORD"},
	} {
		b, err := New(&schema.Schema{Fields: []*schema.Field{c.field}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = b.Add(Record{{Name: "V", Value: c.in}})
		if part, refused := strings.CutPrefix(c.want, "!"); refused {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%v into %s: got %v, want %q", c.in, c.field.Type, err, part)
			}
			if b.Rows() != 0 {
				t.Errorf("%v into %s: refused, and a row is left", c.in, c.field.Type)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v into %s: %v", c.in, c.field.Type, err)
			continue
		}
		if got := built(t, b); got != `{"v":`+c.want+`}` {
			t.Errorf("%v into %s: got %s, want %s", c.in, c.field.Type, got, c.want)
		}
	}
}

func TestDefaults(t *testing.T) {
	n := field("n", schema.Int64, schema.Required)
	n.Default = "7"
	id := field("id", schema.String)
	id.Default = "GENERATE_UUID()"
	at := field("at", schema.Timestamp)
	at.Default = "CURRENT_TIMESTAMP()"
	list := field("list", schema.String, schema.Repeated)
	list.Default = "['a', 'b']"
	b, err := New(&schema.Schema{Fields: []*schema.Field{n, id, at, list}}, Options{Now: time.UnixMicro(1_000_000), KnownOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.Add(nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Add(Record{{Name: "n", Value: int64(1)}, {Name: "id"}, {Name: "at"}, {Name: "list"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Add(Record{{Name: "other"}}); err == nil || err.Error() != "No such field: other." {
		t.Errorf("an unknown field: %v", err)
	}
	rows := strings.Split(built(t, b), "\n")
	if len(rows) != 3 || rows[0] == rows[1] || !strings.HasPrefix(rows[0], `{"at":"1970-01-01T00:00:01Z"`) || !strings.HasSuffix(rows[0], `"list":["a","b"],"n":7}`) {
		t.Errorf("defaults are %v", rows)
	}
	if rows[2] != `{"at":null,"id":null,"list":[],"n":1}` {
		t.Errorf("NULL where there are defaults: %s", rows[2])
	}
}

// TestMembersBehindNull: members of the rows behind a STRUCT that is NULL keep their places.
func TestMembersBehindNull(t *testing.T) {
	inner := field("r", schema.Struct)
	inner.Fields = []*schema.Field{field("x", schema.Float64), field("must", schema.Int64, schema.Required)}
	outer := field("s", schema.Struct)
	outer.Fields = []*schema.Field{inner, field("list", schema.String, schema.Repeated)}
	b, err := New(&schema.Schema{Fields: []*schema.Field{outer}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	there := Record{{Name: "s", Value: Record{{Name: "r", Value: Record{{Name: "x", Value: 8.5}, {Name: "must", Value: int64(1)}}}, {Name: "list", Value: List{"a"}}}}}
	for _, r := range []Record{nil, {{Name: "s", Value: Record{{Name: "list", Value: List{"b"}}}}}, nil, there} {
		if err := b.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"s":null}` + "\n" + `{"s":{"list":["b"],"r":null}}` + "\n" + `{"s":null}` + "\n" + `{"s":{"list":["a"],"r":{"must":1,"x":8.5}}}`
	if got := built(t, b); got != want {
		t.Errorf("the rows are\n%s\nwant\n%s", got, want)
	}
}
