package avro_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	peer "github.com/twmb/avro"

	"github.com/millrace-dev/millrace/internal/avro"
)

func record(fields string) string { return `{"type":"record","name":"R","fields":[` + fields + `]}` }

func field(typ string) string { return record(`{"name":"f","type":` + typ + `}`) }

// TestWhatIsASchema holds the parser to what another library says of the same text.
func TestWhatIsASchema(t *testing.T) {
	good := []string{
		`"null"`, `"string"`, `{"type":"int"}`, `["null","int"]`, `{"type":"array","items":"string"}`, `{"type":"map","values":["null","string"]}`,
		record(``), field(`["null","R"]`), field(`{"type":"array","items":"R"}`), field(`{"type":"enum","name":"E","symbols":["A"],"default":"A"}`),
		field(`{"type":"fixed","name":"F","size":0}`), field(`{"type":"record","name":"ns.S","fields":[{"name":"g","type":["null","S"]}]}`),
		record(`{"name":"a","type":{"type":"fixed","name":"x.F","size":1}},{"name":"b","type":"x.F"}`),
		record(`{"name":"a","type":"int","default":1,"aliases":["z"]}`),
		`{"type":"record","name":"R","namespace":"a.b","fields":[{"name":"a","type":{"type":"enum","name":"E","symbols":["A"]}},{"name":"b","type":"E"},{"name":"c","type":"a.b.E"}]}`,
	}
	bad := []string{
		``, `{`, `7`, `null`, `"nowhere"`, `{}`, `{"type":"record"}`, `{"type":"record","name":"R"}`, `{"type":"record","fields":[]}`,
		record(`{"name":"a","type":"int"},{"name":"a","type":"int"}`), record(`{"name":"1a","type":"int"}`), record(`{"type":"int"}`),
		record(`{"name":"a"}`), record(`{"name":"a","type":"x.F"}`), field(`["int","int"]`), field(`["int",["null"]]`),
		field(`{"type":"enum","name":"E","symbols":["A","A"]}`), field(`{"type":"enum","name":"E","symbols":["a-b"]}`),
		field(`{"type":"enum","name":"E","symbols":["A"],"default":"B"}`), field(`{"type":"fixed","name":"F","size":-1}`),
		field(`{"type":"fixed","name":"F"}`), field(`{"type":"record","name":"R","fields":[]}`), field(`{"type":"array"}`), field(`{"type":"map"}`),
		`{"type":"record","name":"a b","fields":[]}`, `{"type":"record","name":"a..b","fields":[]}`, `["null",`, `"string" "string"`,
	}
	for _, text := range good {
		if _, err := peer.Parse(text); err != nil {
			t.Errorf("%s: the other library says %v", text, err)
		}
		if _, err := avro.Parse(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range bad {
		if _, err := peer.Parse(text); err == nil {
			t.Errorf("%s: the other library takes it", text)
		}
		_, err := avro.Parse(text)
		if _, ok := errors.AsType[*avro.SchemaError](err); !ok {
			t.Errorf("%s: %v, want a *SchemaError", text, err)
		}
	}
}

func TestErrorsNameTheField(t *testing.T) {
	_, err := avro.Parse(field(`{"type":"record","name":"S","fields":[{"name":"g","type":{"type":"array","items":"T"}}]}`))
	if err == nil || !strings.Contains(err.Error(), "field f.g") || !strings.Contains(err.Error(), `"T"`) {
		t.Errorf("%v, want the field f.g and the type T", err)
	}
}

func TestHostileSchemas(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("[", 100_000), strings.Repeat(`{"type":`, 20_000) + `"int"` + strings.Repeat("}", 20_000),
		"\xff", field("\"\x00\""), field(`"../../etc/passwd"`), field("\"`;drop\\n\""),
		field(`{"type":"fixed","name":"F","size":9223372036854775807}`), field(`{"type":"fixed","name":"F","size":1e300}`),
	} {
		if _, err := avro.Parse(text); err == nil {
			t.Errorf("%.60q is taken", text)
		}
	}
}

func TestNamesAcrossSchemas(t *testing.T) {
	names := avro.Names{}
	if _, err := names.Parse(`{"type":"record","name":"a.Inner","fields":[{"name":"x","type":"int"}]}`); err != nil {
		t.Fatal(err)
	}
	s, err := names.Parse(`{"type":"record","name":"a.Outer","fields":[{"name":"i","type":"Inner"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if inner := s.Fields[0].Type; inner.Name != "a.Inner" || len(inner.Fields) != 1 {
		t.Errorf("i is %+v", inner)
	}
}

func TestSkipFindsTheEnd(t *testing.T) {
	text := record(`{"name":"u","type":["null","string"]},{"name":"m","type":{"type":"map","values":{"type":"array","items":"long"}}},
		{"name":"r","type":["null","R"]},{"name":"nulls","type":{"type":"array","items":"null"}},{"name":"fl","type":"float"},{"name":"x","type":{"type":"fixed","name":"F","size":2}}`)
	value := map[string]any{"u": "tea", "m": map[string]any{"k": []any{int64(1), int64(300)}}, "nulls": []any{nil, nil}, "fl": float32(1), "x": []byte{1, 2}}
	value["r"] = map[string]any{"u": nil, "m": map[string]any{}, "nulls": []any{}, "fl": float32(1), "x": []byte{1, 2}, "r": nil}
	datum, err := peer.MustParse(text).AppendEncode(nil, value)
	if err != nil {
		t.Fatal(err)
	}
	s, err := avro.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	s.Prepare()
	if got := s.Skip(append(datum, 0xff), 0); got != len(datum) {
		t.Errorf("the datum ends at %d, want %d", got, len(datum))
	}
	for n := range datum {
		if got := s.Skip(datum[:n], 0); got != avro.Failed {
			t.Errorf("cut at %d of %d: it ends at %d, want failure", n, len(datum), got)
		}
	}
}

func TestHostileDatums(t *testing.T) {
	self, err := avro.Parse(field(`["null","R"]`))
	if err != nil {
		t.Fatal(err)
	}
	self.Prepare()
	deep := make([]byte, 1<<22)
	for i := range deep {
		deep[i] = 2
	}
	if got := self.Skip(deep, 0); got != avro.Failed {
		t.Errorf("four million records inside one another end at %d, want failure", got)
	}
	// Records of records of nothing, which grow with a power of two.
	double := `{"type":"record","name":"R0","fields":[]}`
	for i := range 60 {
		double = fmt.Sprintf(`{"type":"record","name":"R%d","fields":[{"name":"a","type":%s,"default":{}},{"name":"b","type":"R%d","default":{}}]}`, i+1, double, i)
	}
	doubles, err := avro.Parse(double)
	if err != nil {
		t.Fatal(err)
	}
	doubles.Prepare()
	if got := doubles.Skip(nil, 0); got != 0 {
		t.Errorf("nothing ends at %d", got)
	}
	if _, err := avro.AppendDefault(nil, doubles, []byte("{}")); err == nil {
		t.Error("a default of 2^60 values is taken")
	}
	nulls, err := avro.Parse(`{"type":"array","items":"null"}`)
	if err != nil {
		t.Fatal(err)
	}
	nulls.Prepare()
	huge := append(avro.AppendLong(nil, 1<<62), 0)
	if got := nulls.Skip(huge, 0); got != len(huge) {
		t.Errorf("a great many nulls end at %d, want %d", got, len(huge))
	}
}

func FuzzParse(f *testing.F) {
	f.Add(field(`["null","R"]`))
	f.Add(record(`{"name":"a","type":{"type":"fixed","name":"x.F","size":1}},{"name":"b","type":"x.F","default":"a"}`))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := avro.Parse(text)
		if err != nil {
			return
		}
		s.Prepare()
		s.Skip([]byte(text), 0)
		for i := range s.Fields {
			if d := s.Fields[i].Default; d != nil {
				if b, err := avro.AppendDefault(nil, s.Fields[i].Type, d); err == nil && s.Fields[i].Type.Skip(b, 0) != len(b) {
					t.Errorf("the default %s is %x, which does not end there", d, b)
				}
			}
		}
	})
}
