package avrorow

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	peer "github.com/twmb/avro"
	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
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

// drawn is a type with what draws a raw value of it, and the value of its column.
type drawn struct {
	schema string
	list   bool // an array or a map
	value  func() (raw any, want row.Value)
}

func (r *random) record(depth int) drawn {
	n := rapid.IntRange(1, 4).Draw(r.t, "fields")
	fields, values := make([]string, n), make([]func() (any, row.Value), n)
	for i := range n {
		f := r.field(depth - 1)
		fields[i], values[i] = fmt.Sprintf(`{"name":"f%d","type":%s}`, i, f.schema), f.value
	}
	return drawn{fmt.Sprintf(`{"type":"record","name":%q,"fields":[%s]}`, r.name(), strings.Join(fields, ",")), false, func() (any, row.Value) {
		m, want := map[string]any{}, row.Value{}
		for i, v := range values {
			raw, value := v()
			m[fmt.Sprintf("f%d", i)], want.List = raw, append(want.List, value)
		}
		return m, want
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
		d = r.array(depth)
	case 1:
		d = r.mapping(depth)
	default:
		d = r.element(depth)
	}
	union := r.pick(5, "union")
	if union == 4 && !d.list {
		return drawn{"[" + d.schema + "]", false, d.value}
	}
	if union < 2 {
		return d
	}
	branches := `["null",` + d.schema + `]`
	if union == 3 {
		branches = `[` + d.schema + `,"null"]`
	}
	return drawn{branches, d.list, func() (any, row.Value) {
		if rapid.Bool().Draw(r.t, "null") {
			return nil, row.Value{Null: !d.list}
		}
		return d.value()
	}}
}

func (r *random) array(depth int) drawn {
	items := r.element(depth - 1)
	return drawn{`{"type":"array","items":` + items.schema + `}`, true, func() (any, row.Value) {
		list, want := make([]any, r.pick(4, "length")), row.Value{}
		for i := range list {
			raw, v := items.value()
			list[i], want.List = raw, append(want.List, v)
		}
		return list, want
	}}
}

func (r *random) mapping(depth int) drawn {
	values := r.field(depth - 1)
	return drawn{`{"type":"map","values":` + values.schema + `}`, true, func() (any, row.Value) {
		m, wants := map[string]any{}, map[string]row.Value{}
		for range r.pick(4, "entries") {
			key := rapid.String().Draw(r.t, "key")
			m[key], wants[key] = values.value()
		}
		var want row.Value
		for _, key := range slices.Sorted(maps.Keys(m)) {
			want.List = append(want.List, rowtest.List(rowtest.Text(key), wants[key]))
		}
		return m, want
	}}
}

// element is what an array may hold: no list, and never null.
func (r *random) element(depth int) drawn {
	if depth > 0 && r.pick(5, "record") == 0 {
		return r.record(depth)
	}
	switch r.pick(11, "type") {
	case 0:
		return one(`"boolean"`, func() (any, row.Value) {
			b := rapid.Bool().Draw(r.t, "value")
			return b, map[bool]row.Value{true: {Int: 1}}[b]
		})
	case 1:
		return one(`"float"`, func() (any, row.Value) {
			f := rapid.Float32().Draw(r.t, "value")
			return f, rowtest.Float(float64(f))
		})
	case 2:
		return one(`"double"`, func() (any, row.Value) {
			f := rapid.Float64().Draw(r.t, "value")
			return f, rowtest.Float(f)
		})
	case 3:
		return one(`"bytes"`, func() (any, row.Value) {
			b := rapid.SliceOf(rapid.Byte()).Draw(r.t, "value")
			return b, row.Value{Bytes: b}
		})
	case 4:
		return one(fmt.Sprintf(`{"type":"fixed","name":%q,"size":3}`, r.name()), func() (any, row.Value) {
			b := rapid.SliceOfN(rapid.Byte(), 3, 3).Draw(r.t, "value")
			return b, row.Value{Bytes: b}
		})
	case 5:
		return r.text(fmt.Sprintf(`{"type":"enum","name":%q,"symbols":["A","BB","C"]}`, r.name()), rapid.SampledFrom([]string{"A", "BB", "C"}))
	case 6:
		return r.text(logical("string", "uuid"), rapid.Just("0198c1f0-0000-7000-8000-00000000002a"))
	case 7:
		return r.text(`"string"`, rapid.String())
	case 8:
		return r.decimal()
	}
	return r.number()
}

func one(schema string, value func() (any, row.Value)) drawn { return drawn{schema, false, value} }

func (r *random) text(schema string, g *rapid.Generator[string]) drawn {
	return one(schema, func() (any, row.Value) {
		s := g.Draw(r.t, "value")
		return s, rowtest.Text(s)
	})
}

// decimal is NUMERIC or BIGNUMERIC, on bytes or on fixed. So many bytes never hold more than its digits.
func (r *random) decimal() drawn {
	d := rapid.SampledFrom([]struct{ precision, scale, bytes int }{{18, 4, 7}, {38, 9, 15}, {9, 9, 3}, {35, 2, 14}, {76, 38, 31}}).Draw(r.t, "decimal")
	schema, least := decimalType(d.precision, d.scale), 1
	fixed := rapid.Bool().Draw(r.t, "fixed")
	if fixed {
		schema, least = fmt.Sprintf(`{"type":"fixed","name":%q,"size":%d,"logicalType":"decimal","precision":%d,"scale":%d}`, r.name(), d.bytes+1, d.precision, d.scale), d.bytes
	}
	return one(schema, func() (any, row.Value) {
		b := rapid.SliceOfN(rapid.Byte(), least, d.bytes).Draw(r.t, "value")
		if fixed {
			b = slices.Insert(b, 0, byte(int8(b[0])>>7)) // room for all digits
		}
		return b, row.Value{Bytes: b, Int: int64(d.scale)}
	})
}

// number is a type of whole numbers, some of which are times in units of so many microseconds.
func (r *random) number() drawn {
	n := rapid.SampledFrom([]struct {
		schema    string
		low, high int64
		unit      int64
	}{
		{`"int"`, math.MinInt32, math.MaxInt32, 1}, {`"long"`, math.MinInt64, math.MaxInt64, 1}, {logical("int", "date"), row.MinDays, row.MaxDays, 1},
		{logical("int", "time-millis"), 0, 86_400_000 - 1, 1000}, {logical("long", "time-micros"), 0, 86_400_000_000 - 1, 1},
		{logical("long", "timestamp-millis"), row.MinMicros / 1000, row.MaxMicros / 1000, 1000}, {logical("long", "timestamp-micros"), row.MinMicros, row.MaxMicros, 1},
		{logical("long", "local-timestamp-millis"), row.MinMicros / 1000, row.MaxMicros / 1000, 1000}, {logical("long", "local-timestamp-micros"), row.MinMicros, row.MaxMicros, 1},
	}).Draw(r.t, "number")
	return one(n.schema, func() (any, row.Value) {
		v := rapid.OneOf(rapid.Just(n.low), rapid.Just(n.high), rapid.Int64Range(n.low, n.high)).Draw(r.t, "value")
		if strings.Contains(n.schema, `"int"`) {
			return int32(v), row.Value{Int: v * n.unit}
		}
		return v, row.Value{Int: v * n.unit}
	})
}

// anyRecord is a schema with records of it: raw, as the other library reads them, as datums, and the rows they are.
type anyRecord struct {
	schema         string
	datums         [][]byte
	raw, converted []map[string]any
	want           [][]row.Value
	fromDatum      *Serializer[[]byte]
	fromRecord     *RecordSerializer[map[string]any]
}

func drawRecords(t *rapid.T, n int) anyRecord {
	r := random{t: t}
	d := r.record(5)
	a := anyRecord{schema: d.schema}
	o := Options{DeriveRequired: rapid.Bool().Draw(t, "required")}
	var err error
	if a.fromDatum, err = New(d.schema, itself[[]byte], o); err != nil {
		t.Fatalf("%s: %v", d.schema, err)
	}
	if a.fromRecord, err = NewRecords(d.schema, itself[map[string]any], o); err != nil {
		t.Fatal(err)
	}
	for range n {
		raw, want := d.value()
		datum := encode(nil, a.fromDatum.reader, raw)
		a.raw, a.datums, a.want = append(a.raw, raw.(map[string]any)), append(a.datums, datum), append(a.want, want.List)
		a.converted = append(a.converted, peerReads(t, d.schema, datum))
	}
	return a
}

// peerReads has another library read a datum.
func peerReads(t *rapid.T, schema string, datum []byte) map[string]any {
	var read any
	if _, err := peer.MustParse(schema).Decode(datum, &read); err != nil {
		t.Fatalf("%s: %x: the other library: %v", schema, datum, err)
	}
	return read.(map[string]any)
}

// TestRandomDatums: whatever the schema, a datum's row holds its values, and is the row of what another library reads of it.
func TestRandomDatums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawRecords(t, 1)
		want, err := a.fromDatum.AppendRow(nil, table.Destination{}, a.datums[0])
		if err != nil {
			t.Fatalf("%s: %x: %v", a.schema, a.datums[0], err)
		}
		decoded, err := mustDecoder(t, a.fromDatum.schema).Decode(want)
		if err != nil {
			t.Fatalf("%s: %x: the row %x: %v", a.schema, a.datums[0], want, err)
		}
		if diff := rowtest.Diff(a.fromDatum.schema, a.want[0], decoded.Values); diff != "" {
			t.Fatalf("%s: %x: %s", a.schema, a.datums[0], diff)
		}
		for what, m := range map[string]map[string]any{"raw": a.raw[0], "converted": a.converted[0]} {
			if got, err := a.fromRecord.AppendRow(nil, table.Destination{}, m); err != nil || string(got) != string(want) {
				t.Fatalf("%s: %s %v gives %s, %v, the datum %s", a.schema, what, m, hex.EncodeToString(got), err, hex.EncodeToString(want))
			}
		}
	})
}

// TestDamagedDatums: a datum in which bytes were changed, cut out or put in is refused, with a byte of it and, unless all fields are
// read, the field; or another library takes it too, and reads the same. What no reader of Avro can tell is a change that leaves a datum
// of the schema: another value, and another length that borrows from what follows.
func TestDamagedDatums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawRecords(t, 1)
		if len(a.datums[0]) == 0 {
			return
		}
		decoder := mustDecoder(t, a.fromDatum.schema)
		for range 10 {
			bad, _ := rowtest.Damaged(t, a.datums[0])
			got, err := a.fromDatum.AppendRow(nil, table.Destination{}, bad)
			if err != nil {
				e, ok := errors.AsType[*row.Error](err)
				if !ok || e.Offset < 0 || e.Offset > int64(len(bad)) || e.Path == "" && !strings.Contains(e.Msg, "left behind") {
					t.Fatalf("%x: %v, want a field and a byte", bad, err)
				}
				continue
			}
			if _, err := decoder.Decode(got); err != nil {
				t.Fatalf("%x gives the row %x, which is none: %v", bad, got, err)
			}
			same, err := a.fromRecord.AppendRow(nil, table.Destination{}, peerReads(t, a.schema, bad))
			if err != nil || string(same) != string(got) {
				t.Fatalf("%s: %x gives %x, and what another library reads in it %x, %v", a.schema, bad, got, same, err)
			}
		}
	})
}

func mustDecoder(t *rapid.T, s *table.Schema) *row.Decoder {
	d, err := row.NewDecoder(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
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
