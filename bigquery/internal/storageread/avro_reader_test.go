package storageread

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/row"
)

const sessionOfAll = `{"type":"record","name":"__root__","fields":[
	{"name":"id","type":"long"},{"name":"n","type":["null","long"]},{"name":"s","type":["null","string"]},
	{"name":"d","type":["null",{"type":"int","logicalType":"date"}]},
	{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}]},
	{"name":"num","type":["null",{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}]},
	{"name":"st","type":["null",{"type":"record","name":"__s_0","fields":[{"name":"x","type":["null","long"]},{"name":"y","type":["null","string"]}]}]},
	{"name":"list","type":{"type":"array","items":"long"}},
	{"name":"r","type":["null",{"type":"record","namespace":"google.sqlType","name":"RANGE_DATE","sqlType":"RANGE","fields":[
		{"name":"start","type":["null",{"type":"int","logicalType":"date"}]},{"name":"end","type":["null",{"type":"int","logicalType":"date"}]}]}]},
	{"name":"ratio","type":"double"}]}`

// blockOfAll is a row: everything, or null where it can be.
func blockOfAll(nulls bool) []byte {
	b := avroLong(nil, 7)
	if nulls {
		return avroDouble(append(b, 0, 0, 0, 0, 0, 0, 0, 0), 1.5)
	}
	b = avroLong(append(b, 2), 5)
	b = avroBytes(append(b, 2), "tea")
	b = avroLong(append(b, 2), -1)
	b = avroLong(append(b, 2), 1785027723456789)
	b = avroBytes(append(b, 2), "\x3b\x9a\xca\x00")
	b = avroBytes(append(avroLong(append(b, 2, 2), 3), 2), "why")
	b = append(avroLong(avroLong(avroLong(b, 2), 1), 300), 0)
	return avroDouble(append(avroLong(append(b, 2, 2), -1), 0), 1.5)
}

func readerRecord(fields string) string {
	return `{"type":"record","name":"Row","namespace":"x","fields":[` + fields + `]}`
}

func readAs(t *testing.T, reader string, nulls bool) (*row.Row, error) {
	t.Helper()
	r, err := ParseReaderSchema(reader)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{ReaderSchema: r}
	d, err := c.Decoder(sessionOfAll)
	if err != nil {
		return nil, err
	}
	block := blockOfAll(nulls)
	n, err := d.Decode(block)
	if err == nil && n != len(block) {
		t.Errorf("took %d of %d bytes", n, len(block))
	}
	return d.Row(), err
}

func double(f float64) row.Value { return row.Value{Int: int64(math.Float64bits(f))} }

func TestAvroReaderSchema(t *testing.T) {
	for _, c := range []struct {
		name, fields string
		nulls        bool
		want         []row.Value
		types        string
	}{
		{"SER-159 some of the columns, of a record of another name", `{"name":"s","type":["null","string"]},{"name":"id","type":"long"}`, false,
			[]row.Value{{Bytes: []byte("tea")}, {Int: 7}}, "s STRING NULLABLE, id INT64 REQUIRED"},
		{"SER-159 no columns", ``, false, []row.Value{}, ""},
		{"SER-160 not null over null and another", `{"name":"n","type":"long"}`, false, []row.Value{{Int: 5}}, "n INT64 REQUIRED"},
		{"SER-160 long as double", `{"name":"n","type":["null","double"]}`, false, []row.Value{double(5)}, "n FLOAT64 NULLABLE"},
		{"long as float", `{"name":"id","type":"float"}`, false, []row.Value{double(7)}, "id FLOAT64 REQUIRED"},
		{"null of every type", `{"name":"n","type":["null","double"]},{"name":"st","type":["null",{"type":"record","name":"S","fields":[{"name":"x","type":["null","long"]}]}]}`, true,
			[]row.Value{{Null: true}, {Null: true}}, "n FLOAT64 NULLABLE, st STRUCT NULLABLE"},
		{"a column that is never null as nullable", `{"name":"id","type":["long","null"]}`, false, []row.Value{{Int: 7}}, "id INT64 NULLABLE"},
		{"string as bytes", `{"name":"s","type":["null","bytes"]}`, false, []row.Value{{Bytes: []byte("tea")}}, "s BYTES NULLABLE"},
		{"SER-161 a default of 0", `{"name":"zero","type":"int","default":0},{"name":"id","type":"long"}`, false,
			[]row.Value{{}, {Int: 7}}, "zero INT64 REQUIRED, id INT64 REQUIRED"},
		{"defaults of other types", `{"name":"none","type":["null","string"],"default":null},{"name":"text","type":"string","default":"x"},
			{"name":"fl","type":"float","default":1.5},{"name":"list","type":{"type":"array","items":"long"}},
			{"name":"more","type":{"type":"array","items":"int"},"default":[1]},
			{"name":"rec","type":{"type":"record","name":"D","fields":[{"name":"a","type":"long","default":9}]},"default":{}}`, false,
			[]row.Value{{Null: true}, {Bytes: []byte("x")}, double(1.5), {List: []row.Value{{Int: 1}, {Int: 300}}}, {List: []row.Value{{Int: 1}}}, {List: []row.Value{{Int: 9}}}},
			"none STRING NULLABLE, text STRING REQUIRED, fl FLOAT64 REQUIRED, list INT64 REPEATED, more INT64 REPEATED, rec STRUCT REQUIRED"},
		{"an alias", `{"name":"key","type":"long","aliases":["nope","id","n"]}`, false, []row.Value{{Int: 7}}, "key INT64 REQUIRED"},
		{"a default within a record", `{"name":"st","type":["null",{"type":"record","name":"Other","fields":[{"name":"z","type":"long","default":1},{"name":"y","type":["null","string"]}]}]}`, false,
			[]row.Value{{List: []row.Value{{Int: 1}, {Bytes: []byte("why")}}}}, "st STRUCT NULLABLE"},
		{"by the reader's annotation", `{"name":"d","type":["null","int"]},{"name":"id","type":{"type":"long","logicalType":"timestamp-micros"}}`, false,
			[]row.Value{{Int: -1}, {Int: 7}}, "d INT64 NULLABLE, id TIMESTAMP REQUIRED"},
		{"a decimal", `{"name":"num","type":["null",{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}]}`, false,
			[]row.Value{{Bytes: []byte("\x3b\x9a\xca\x00"), Int: 9}}, "num NUMERIC NULLABLE"},
		{"SER-162 a range", `{"name":"r","type":["null",{"type":"record","name":"R","fields":[
			{"name":"start","type":["null",{"type":"int","logicalType":"date"}]},{"name":"end","type":["null",{"type":"int","logicalType":"date"}]}]}]}`, false,
			[]row.Value{{List: []row.Value{{Int: -1}, {Null: true}}}}, "r RANGE NULLABLE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := readAs(t, readerRecord(c.fields), c.nulls)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Values); diff != "" {
				t.Error(diff)
			}
			var types []string
			for _, f := range got.Schema.Fields {
				types = append(types, f.Name+" "+f.Type.String()+" "+f.Mode.String())
			}
			if got := strings.Join(types, ", "); got != c.types {
				t.Errorf("columns %s, want %s", got, c.types)
			}
		})
	}
}

func TestReaderSchemaThatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		name, fields string
		nulls        bool
		kind         row.Kind
		path         string
	}{
		{"SER-160 null where it is not allowed", `{"name":"n","type":"long"}`, true, row.KindNull, "n"},
		{"SER-160 int over long", `{"name":"n","type":["null","int"]}`, false, row.KindResolve, "n"},
		{"SER-161 no default", `{"name":"nope","type":"long"}`, false, row.KindResolve, "nope"},
		{"a default of another type", `{"name":"nope","type":"long","default":"x"}`, false, row.KindResolve, "nope"},
		{"text as a number", `{"name":"s","type":["null","long"]}`, false, row.KindResolve, "s"},
		{"long as boolean", `{"name":"id","type":"boolean"}`, false, row.KindResolve, "id"},
		{"double as float", `{"name":"ratio","type":"float"}`, false, row.KindResolve, "ratio"},
		{"SER-160 double as long", `{"name":"ratio","type":"long"}`, false, row.KindResolve, "ratio"},
		{"a list as a number", `{"name":"list","type":"long"}`, false, row.KindResolve, "list"},
		{"elements", `{"name":"list","type":{"type":"array","items":"string"}}`, false, row.KindResolve, "list"},
		{"a decimal of another scale", `{"name":"num","type":["null",{"type":"bytes","logicalType":"decimal","precision":38,"scale":8}]}`, false, row.KindResolve, "num"},
		{"a decimal without a scale", `{"name":"num","type":["null",{"type":"bytes","logicalType":"decimal","precision":38}]}`, false, row.KindResolve, "num"},
		{"an enum", `{"name":"s","type":["null",{"type":"enum","name":"E","symbols":["tea"]}]}`, false, row.KindResolve, "s"},
		{"a timestamp as a date", `{"name":"at","type":["null",{"type":"int","logicalType":"date"}]}`, false, row.KindResolve, "at"},
		{"a date as a timestamp", `{"name":"d","type":["null",{"type":"long","logicalType":"timestamp-micros"}]}`, false, row.KindResolve, "d"},
		{"a member", `{"name":"st","type":["null",{"type":"record","name":"S","fields":[{"name":"x","type":["null","string"]}]}]}`, false, row.KindResolve, "st.x"},
		{"null alone", `{"name":"s","type":["null"]}`, false, row.KindResolve, "s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readAs(t, readerRecord(c.fields), c.nulls)
			if e, ok := errors.AsType[*row.Error](err); !ok || e.Kind != c.kind || e.Path != c.path {
				t.Errorf("%v, want %s at %s", err, c.kind, c.path)
			}
		})
	}
	for _, text := range []string{``, `{`, `"string"`, readerRecord(`{"name":"a"}`), "\xff"} {
		_, err := ParseReaderSchema(text)
		if e, ok := errors.AsType[*row.Error](err); !ok || e.Kind != row.KindRoot {
			t.Errorf("%q: %v, want C-ROOT", text, err)
		}
	}
}

// A record that contains itself resolves as far as the session goes, and needs no end of its own.
func TestReaderSchemaThatContainsItself(t *testing.T) {
	_, err := readAs(t, readerRecord(`{"name":"st","type":["null",{"type":"record","name":"S","fields":[{"name":"self","type":["null","S"],"default":null},{"name":"x","type":["null","long"]}]}]}`), false)
	if e, ok := errors.AsType[*row.Error](err); err != nil && (!ok || e.Kind != row.KindResolve) {
		t.Errorf("%v", err)
	}
}
