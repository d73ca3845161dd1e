package avrorow

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	peer "github.com/twmb/avro"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// random makes schemas and values of them.
type random struct {
	t     *rapid.T
	names int
}

func (r *random) pick(n int, what string) int { return rapid.IntRange(0, n-1).Draw(r.t, what) }

func (r *random) name() string {
	r.names++
	return fmt.Sprintf("N%d", r.names)
}

// drawn is a type with what draws a raw value of it.
type drawn struct {
	schema string
	value  func() any
}

func (r *random) record(depth int) drawn {
	n := rapid.IntRange(1, 4).Draw(r.t, "fields")
	fields, values := make([]string, n), make([]func() any, n)
	for i := range n {
		f := r.field(depth - 1)
		fields[i], values[i] = fmt.Sprintf(`{"name":"f%d","type":%s}`, i, f.schema), f.value
	}
	return drawn{fmt.Sprintf(`{"type":"record","name":%q,"fields":[%s]}`, r.name(), strings.Join(fields, ",")), func() any {
		m := map[string]any{}
		for i, v := range values {
			m[fmt.Sprintf("f%d", i)] = v()
		}
		return m
	}}
}

// field is anything a field may be.
func (r *random) field(depth int) drawn {
	kind := r.pick(6, "kind")
	if depth <= 0 {
		kind = 3 + kind%3
	}
	var d drawn
	switch kind {
	case 0:
		items := r.element(depth - 1)
		d = drawn{`{"type":"array","items":` + items.schema + `}`, func() any {
			list := make([]any, r.pick(4, "length"))
			for i := range list {
				list[i] = items.value()
			}
			return list
		}}
	case 1:
		values := r.field(depth - 1)
		d = drawn{`{"type":"map","values":` + values.schema + `}`, func() any {
			m := map[string]any{}
			for range r.pick(4, "entries") {
				m[rapid.String().Draw(r.t, "key")] = values.value()
			}
			return m
		}}
	default:
		d = r.element(depth)
	}
	if rapid.Bool().Draw(r.t, "nullable") {
		return drawn{`["null",` + d.schema + `]`, func() any {
			if rapid.Bool().Draw(r.t, "null") {
				return nil
			}
			return d.value()
		}}
	}
	return d
}

// element is what an array may hold: no list, and never null.
func (r *random) element(depth int) drawn {
	n := r.pick(14, "type")
	if n == 13 && depth > 0 {
		return r.record(depth)
	}
	integer := func(low, high int64) func() any {
		return func() any { return rapid.Int64Range(low, high).Draw(r.t, "value") }
	}
	small := func(low, high int32) func() any {
		return func() any { return rapid.Int32Range(low, high).Draw(r.t, "value") }
	}
	switch n {
	case 0:
		return drawn{`"boolean"`, func() any { return rapid.Bool().Draw(r.t, "value") }}
	case 1:
		return drawn{`"int"`, func() any { return rapid.Int32().Draw(r.t, "value") }}
	case 2:
		return drawn{`"float"`, func() any { return rapid.Float32().Draw(r.t, "value") }}
	case 3:
		return drawn{`"double"`, func() any { return rapid.Float64().Draw(r.t, "value") }}
	case 4:
		return drawn{`"bytes"`, func() any { return rapid.SliceOf(rapid.Byte()).Draw(r.t, "value") }}
	case 5:
		return drawn{fmt.Sprintf(`{"type":"enum","name":%q,"symbols":["A","BB","C"]}`, r.name()), func() any {
			return rapid.SampledFrom([]string{"A", "BB", "C"}).Draw(r.t, "value")
		}}
	case 6:
		return drawn{fmt.Sprintf(`{"type":"fixed","name":%q,"size":3}`, r.name()), func() any {
			return rapid.SliceOfN(rapid.Byte(), 3, 3).Draw(r.t, "value")
		}}
	case 7:
		return drawn{logical("int", "date"), small(row.MinDays, row.MaxDays)}
	case 8:
		return drawn{logical("long", "time-micros"), integer(0, 86_400_000_000-1)}
	case 9:
		return drawn{logical("long", "timestamp-micros"), integer(row.MinMicros, row.MaxMicros)}
	case 10:
		return drawn{logical("long", "local-timestamp-millis"), integer(row.MinMicros/1000, row.MaxMicros/1000)}
	case 11:
		return drawn{decimalType(18, 4), func() any {
			b := rapid.SliceOfN(rapid.Byte(), 1, 7).Draw(r.t, "value")
			return b
		}}
	case 12:
		return drawn{`"string"`, func() any { return rapid.String().Draw(r.t, "value") }}
	}
	return drawn{`"long"`, func() any { return rapid.Int64().Draw(r.t, "value") }}
}

// TestRandomDatums: whatever the schema, a datum's row is the row of what another library reads of it, and decodes; damage never
// brings anything down, and names the field unless all fields are read.
func TestRandomDatums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := random{t: t}
		d := r.record(5)
		fromDatum, err := New(d.schema, itself[[]byte], Options{})
		if err != nil {
			t.Fatalf("%s: %v", d.schema, err)
		}
		fromRecord, err := NewRecords(d.schema, itself[map[string]any], Options{})
		if err != nil {
			t.Fatal(err)
		}
		raw := d.value().(map[string]any)
		schema, decoder := fromDatum.reader, mustDecoder(t, fromDatum.schema)
		datum := encode(nil, schema, raw)
		want, err := fromDatum.AppendRow(nil, table.Destination{}, datum)
		if err != nil {
			t.Fatalf("%s: %x: %v", d.schema, datum, err)
		}
		if _, err := decoder.Decode(want); err != nil {
			t.Fatalf("%s: %x: the row %x: %v", d.schema, datum, want, err)
		}
		var read any
		if _, err := peer.MustParse(d.schema).Decode(datum, &read); err != nil {
			t.Fatalf("%s: %x: the other library: %v", d.schema, datum, err)
		}
		for what, m := range map[string]map[string]any{"raw": raw, "converted": read.(map[string]any)} {
			if got, err := fromRecord.AppendRow(nil, table.Destination{}, m); err != nil || string(got) != string(want) {
				t.Fatalf("%s: %s %v gives %s, %v, the datum %s", d.schema, what, m, hex.EncodeToString(got), err, hex.EncodeToString(want))
			}
		}
		damage(t, fromDatum, decoder, datum)
	})
}

func mustDecoder(t *rapid.T, s *table.Schema) *row.Decoder {
	d, err := row.NewDecoder(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func damage(t *rapid.T, s *Serializer[[]byte], decoder *row.Decoder, datum []byte) {
	if len(datum) == 0 {
		return
	}
	bad := append([]byte(nil), datum...)
	bad[rapid.IntRange(0, len(bad)-1).Draw(t, "where")] = rapid.Byte().Draw(t, "byte")
	bad = bad[:rapid.IntRange(0, len(bad)).Draw(t, "cut")]
	b, err := s.AppendRow(nil, table.Destination{}, bad)
	if err != nil {
		e, ok := errors.AsType[*row.Error](err)
		if !ok || e.Offset < 0 || e.Offset > int64(len(bad)) || e.Path == "" && !strings.Contains(e.Msg, "left behind") {
			t.Fatalf("%x: %v, want a field and a byte", bad, err)
		}
		return
	}
	if _, err := decoder.Decode(b); err != nil {
		t.Fatalf("%x gives the row %x, which is none: %v", bad, b, err)
	}
}

func FuzzAppendRow(f *testing.F) {
	s, err := New(everything, itself[[]byte], options)
	if err != nil {
		f.Fatal(err)
	}
	d, err := row.NewDecoder(s.schema)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encode(nil, parsed(f, everything), full()))
	f.Add(encode(nil, parsed(f, everything), empty()))
	f.Fuzz(func(t *testing.T, datum []byte) {
		b, err := s.AppendRow(nil, table.Destination{}, datum)
		if err != nil {
			return
		}
		if _, err := d.Decode(b); err != nil {
			t.Errorf("%x gives %x: %v", datum, b, err)
		}
	})
}
