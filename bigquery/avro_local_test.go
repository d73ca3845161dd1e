package bigquery

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/avrorow"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// avroOfEverything is what TestAvroThroughTheLocalService writes; field by field what the cases SER-69 to SER-86 are about.
const avroOfEverything = `{"type":"record","name":"R","fields":[
	{"name":"n","type":"long"},{"name":"f","type":"float"},{"name":"b","type":"boolean"},{"name":"s","type":["null","string"]},
	{"name":"by","type":"bytes"},{"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"]}},
	{"name":"d","type":{"type":"int","logicalType":"date"}},{"name":"t","type":{"type":"int","logicalType":"time-millis"}},
	{"name":"ts","type":{"type":"long","logicalType":"timestamp-millis"}},{"name":"dt","type":{"type":"long","logicalType":"local-timestamp-micros"}},
	{"name":"num","type":{"type":"bytes","logicalType":"decimal","precision":20,"scale":4}},
	{"name":"big","type":{"type":"bytes","logicalType":"decimal","precision":35,"scale":2}},
	{"name":"j","type":"string"},{"name":"st","type":["null",{"type":"record","name":"S","fields":[{"name":"x","type":"int"}]}]},
	{"name":"m","type":{"type":"map","values":{"type":"array","items":"long"}}},{"name":"l","type":["null",{"type":"array","items":"string"}]}]}`

// datum writes what its arguments are: int64 and int as numbers, text and bytes with their lengths, float32 as it is, and bytes of
// length 1 arrays as they are.
func datum(parts ...any) (b []byte) {
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = binary.AppendVarint(b, int64(p))
		case string:
			b = append(binary.AppendVarint(b, int64(len(p))), p...)
		case float32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(p))
		case [1]byte:
			b = append(b, p[0])
		}
	}
	return b
}

// TestAvroThroughTheLocalService: what is stored of the cases SER-69, SER-70, SER-71, SER-73, SER-74, SER-75, SER-77, SER-82, SER-85,
// SER-86 and SER-89, and the way back with a reader's schema, SER-159 to SER-161.
func TestAvroThroughTheLocalService(t *testing.T) {
	l := startLocal(t, localbq.Config{})
	rows, err := avrorow.New(avroOfEverything, func(b []byte) []byte { return b }, avrorow.Options{JSONPaths: []string{"j"}})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := NewSink(To[[]byte](*readTable.table), rows, SinkOptions{Connection: l.connection})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sink.NewWriter(t.Context(), stream.WriterContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	full := datum(1, float32(1.5), [1]byte{1}, 1, "tea", "\xff", 1, 19000, 45296789, 1785027723456, -1, "\x00\xbc\x61\x4e", "\xff", `{"a":1}`, 1, 7,
		2, "z", 0, "a", 2, 1, 300, 0, 0, 1, 1, "x", 0)
	least := datum(2, float32(0), [1]byte{0}, 0, "", 0, 0, 0, 0, 0, "\x00", "\x00", `null`, 0, 0, 0)
	for _, d := range [][]byte{full, least} {
		if err := w.Write(t.Context(), &stream.Record[[]byte]{Value: d}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(t.Context(), true), w.Close()); err != nil {
		t.Fatal(err)
	}
	got := read(t, l.source(t, SourceOptions{}))
	want := []string{
		`{"n":1,"f":1.5,"b":true,"s":"tea","by":"/w==","e":"B","d":"2022-01-08","t":"12:34:56.789","ts":"2026-07-26T01:02:03.456Z",` +
			`"dt":"1969-12-31T23:59:59.999999","num":1234.5678,"big":-0.01,"j":{"a":1},"st":{"x":7},` +
			`"m":[{"key":"a","value":[1,300]},{"key":"z","value":[]}],"l":["x"]}`,
		`{"n":2,"f":0,"b":false,"by":"","e":"A","d":"1970-01-01","t":"00:00:00","ts":"1970-01-01T00:00:00Z",` +
			`"dt":"1970-01-01T00:00:00","num":0,"big":0,"j":null,"m":[],"l":[]}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	t.Run("with a reader's schema", func(t *testing.T) {
		reader := func(fields string) SourceOptions {
			return SourceOptions{ReaderSchema: `{"type":"record","name":"Mine","fields":[` + fields + `]}`}
		}
		got := read(t, l.source(t, reader(`{"name":"key","aliases":["n"],"type":["null","double"]},{"name":"more","type":"int","default":5},{"name":"s","type":["null","bytes"]}`)))
		if diff := cmp.Diff([]string{`{"key":1,"more":5,"s":"dGVh"}`, `{"key":2,"more":5}`}, got); diff != "" {
			t.Error(diff)
		}
		for fields, kind := range map[string]row.Kind{
			`{"name":"n","type":["null","int"]}`: row.KindResolve, `{"name":"no","type":"int"}`: row.KindResolve, `{"name":"s","type":"string"}`: row.KindNull,
		} {
			var last error
			for _, err := range l.source(t, reader(fields)).Rows(t.Context()) {
				last = err
			}
			if e, ok := errors.AsType[*row.Error](last); !ok || e.Kind != kind {
				t.Errorf("%s: %v, want %s", fields, last, kind)
			}
		}
		if _, err := NewSource(readTable, texts{}, SourceOptions{ReaderSchema: `"int"`}); err == nil {
			t.Error("a reader's schema that is no record is taken")
		}
	})
	t.Run("the session's schema makes the table again", func(t *testing.T) {
		s, err := l.source(t, SourceOptions{}).Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		again, err := avrorow.Schema(s.AvroSchema(), avrorow.Options{RecognizeSQLTypes: true})
		if err != nil {
			t.Fatal(err)
		}
		stored, err := TableSchema(t.Context(), l.connection, *readTable.table)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(stored, again); diff != "" {
			t.Error(diff)
		}
	})
}
