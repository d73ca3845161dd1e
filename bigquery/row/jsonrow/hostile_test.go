package jsonrow

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// hostile are documents made to hurt, and the kind of error each gives; "" is none.
var hostile = []struct {
	name, doc string
	kind      row.Kind
}{
	{"arrays 10,000 deep", `{"j":` + strings.Repeat("[", 10_000), row.KindJSON},
	{"objects 10,000 deep", strings.Repeat(`{"j":`, 10_000), row.KindJSON},
	{"objects and arrays 10,000 deep, closed", `{"j":` + strings.Repeat(`[{"a":`, 5_000) + "1" + strings.Repeat("}]", 5_000) + "}", row.KindJSON},
	{"511 arrays in an object", `{"j":` + strings.Repeat("[", 511) + strings.Repeat("]", 511) + "}", ""},
	{"512 arrays in an object", `{"j":` + strings.Repeat("[", 512) + strings.Repeat("]", 512) + "}", row.KindJSON},
	{"unknown keys 10,000 deep", strings.Repeat(`{"x":`, 10_000), row.KindJSON},
	{"a number of a million digits", `{"n":` + strings.Repeat("9", 1_000_000) + "}", row.KindRange},
	{"a fraction of a million digits", `{"n":0.` + strings.Repeat("3", 1_000_000) + "}", row.KindScale},
	{"a million zeros", `{"n":1.` + strings.Repeat("0", 1_000_000) + "}", ""},
	{"a huge exponent", `{"n":1e` + strings.Repeat("9", 1_000_000) + "}", row.KindRange},
	{"a huge negative exponent", `{"n":1e-` + strings.Repeat("9", 1_000_000) + "}", row.KindScale},
	{"nothing times a huge exponent", `{"n":0e` + strings.Repeat("9", 1_000_000) + "}", ""},
	{"an INT64 of a million digits", `{"i":` + strings.Repeat("9", 1_000_000) + "}", row.KindRange},
	{"an INT64 of a million zeros", `{"i":"` + strings.Repeat("0", 1_000_000) + `"}`, ""},
	{"a FLOAT64 of a million digits", `{"f":0.` + strings.Repeat("3", 1_000_000) + "}", ""},
	{"a TIMESTAMP of a million digits", `{"ts":"` + strings.Repeat("9", 1_000_000) + `"}`, row.KindRange},
	{"a zone of a million letters", `{"ts":"2026-07-26 01:02:03 ` + strings.Repeat("x", 1_000_000) + `"}`, row.KindType},
	{"NULs", strings.Repeat("\x00", 1000), row.KindJSON},
	{"NULs in a string", `{"s":"` + strings.Repeat("\x00", 1000) + `"}`, row.KindJSON},
	{"escaped NULs", `{"s":"` + strings.Repeat(`\u0000`, 100_000) + `"}`, ""},
	{"halves of pairs", `{"s":"` + strings.Repeat(`\udc00`, 100_000) + `"}`, row.KindText},
	{"a key of a million bytes", `{"` + strings.Repeat("k", 1_000_000) + `":1}`, row.KindUnknown},
	{"a million commas", `{"j":[` + strings.Repeat("1,", 500_000) + "1]}", ""},
	{"a million empty arrays", `{"j":[` + strings.Repeat("[],", 500_000) + "[]]}", ""},
	{"white space", strings.Repeat(" ", 1_000_000) + `{"s":"a"}` + strings.Repeat("\n", 1_000_000), ""},
	{"nothing but quotes", strings.Repeat(`"`, 100_001), row.KindJSON},
	{"nothing but backslashes", `{"s":"` + strings.Repeat(`\`, 100_001), row.KindJSON},
	{"overlong UTF-8", "{\"s\":\"\xc0\x80\"}", row.KindText},
	{"UTF-8 surrogates", "{\"s\":\"\xed\xa0\x80\"}", row.KindText},
}

func TestHostileDocuments(t *testing.T) {
	s, err := New(itself, Fixed(allTypes), Options{})
	if err != nil {
		t.Fatal(err)
	}
	inferring := NewInference(InferOptions{})
	if err := inferring.Add([]byte(`{"s":"a"}`)); err != nil {
		t.Fatal(err)
	}
	for _, c := range hostile {
		_, err := s.AppendRow(nil, table.Destination{}, []byte(c.doc))
		if kind := kindOf(t, err); kind != c.kind {
			t.Errorf("%s: %.200v, want %q", c.name, err, c.kind)
		}
		if err != nil && len(err.Error()) > 500 {
			t.Errorf("%s: the error is %d bytes long", c.name, len(err.Error()))
		}
		// The others must take the same, too.
		valid := Valid([]byte(c.doc))
		if _, err := Field([]byte(c.doc), "s.x"); (kindOf(t, valid) == row.KindJSON) != (kindOf(t, err) == row.KindJSON) {
			t.Errorf("%s: Valid says %v, Field %v", c.name, valid, err)
		}
		if err := inferring.Add([]byte(c.doc)); kindOf(t, err) != kindOf(t, valid) {
			t.Errorf("%s: Valid says %.200v, Add %.200v", c.name, valid, err)
		}
	}
}

func TestHugeStrings(t *testing.T) {
	s, err := New(itself, Fixed(allTypes), Options{})
	if err != nil {
		t.Fatal(err)
	}
	const size = 100 << 20
	doc := append(append([]byte(`{"s":"`), bytes.Repeat([]byte("x"), size)...), `"}`...)
	buf := make([]byte, 0, size+64)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := s.AppendRow(buf, table.Destination{}, doc)
	runtime.ReadMemStats(&after)
	if err != nil || len(got) != size+5 {
		t.Fatalf("%d bytes, %v, want %d", len(got), err, size+5)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("a string of %d bytes cost %d bytes of memory, want next to none", size, grown)
	}
	doc[6] = 0xff
	if _, err := s.AppendRow(buf, table.Destination{}, doc); kindOf(t, err) != row.KindText {
		t.Errorf("%v, want %s", err, row.KindText)
	}
}

func TestScratchMemoryIsGivenBack(t *testing.T) {
	p := &parser{options: &Options{}}
	pl, err := compile(&Mapping{Schema: allTypes, Rest: "j"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat(`\u0041`, maxKept+maxKept/4)
	if _, err := p.row(pl, nil, []byte(`{"i":"`+strings.Repeat(`\u0030`, maxKept+maxKept/4)+`","`+big+`":1}`)); err != nil {
		t.Fatal(err)
	}
	if cap(p.text) > maxKept || cap(p.folded) > maxKept || cap(p.rest.text) > maxKept || cap(p.rest.pointer) > maxKept {
		t.Errorf("kept %d, %d, %d and %d bytes, want at most %d each", cap(p.text), cap(p.folded), cap(p.rest.text), cap(p.rest.pointer), maxKept)
	}
}
