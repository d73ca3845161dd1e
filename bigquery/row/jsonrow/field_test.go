package jsonrow

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
)

func TestField(t *testing.T) {
	for _, c := range []struct {
		doc, path, want string
		kind            row.Kind
	}{
		{`{"event":"push"}`, "event", "push", ""},
		{` { "a" : [ { "event" : 1 } ] , "event" : "push" } `, "event", "push", ""},
		{`{"payload":{"action":"open","event":1},"event":"push"}`, "payload.action", "open", ""},
		{`{"a":{"b":{"c":12.50}}}`, "a.b.c", "12.50", ""},
		{`{"a":true}`, "a", "true", ""},
		{`{"a":-1e5}`, "a", "-1e5", ""},
		{`{"a":""}`, "a", "", ""},
		{`{"a":"x\ty\ud83d\ude00"}`, "a", "x\ty😀", ""},
		{`{"\u0061":"x"}`, "a", "x", ""},
		{`{"a b":"x"}`, "a b", "x", ""},
		{`{"":"x"}`, "", "x", ""},
		{`{"A":"x"}`, "a", "", row.KindRequired},
		{`{"b":"x"}`, "a", "", row.KindRequired},
		{`{"a":null}`, "a", "", row.KindRequired},
		{`{"a":null}`, "a.b", "", row.KindRequired},
		{`{"a":{}}`, "a.b", "", row.KindRequired},
		{`{"a":{"b":1}}`, "a", "", row.KindType},
		{`{"a":[1]}`, "a", "", row.KindType},
		{`{"a":1}`, "a.b", "", row.KindType},
		{`{"a":[{"b":1}]}`, "a.b", "", row.KindType},
		{`{"a":"x","a":"y"}`, "a", "", row.KindDuplicate},
		{`{"a":{"b":1,"\u0062":2}}`, "a.b", "", row.KindDuplicate},
		{`{"a":{},"a":{"b":1}}`, "a.b", "", row.KindDuplicate},
		{`{"a":"x","b":1,"b":2}`, "a", "x", ""},
		// The damaged lines, each with its own reason.
		{`{"event":"push","payload":{"a`, "event", "", row.KindJSON},
		{`4711`, "event", "", row.KindJSON},
		{`{"event":"push"}{"event":"push"}`, "event", "", row.KindMulti},
		{`{"event":"push"} {"event":"push"}`, "event", "", row.KindMulti},
		{"{\"event\":\"push\",\"name\":\"caf\xe9\"}", "event", "", row.KindText},
		{`{}`, "event", "", row.KindEmptyDoc},
		{``, "event", "", row.KindJSON},
		{`["event"]`, "event", "", row.KindJSON},
		{`{"event":"push","a":tru}`, "event", "", row.KindJSON},
		{`{"event":"push","a":[1,]}`, "event", "", row.KindJSON},
		{`{"event":"push","a":"\ud800"}`, "event", "", row.KindText},
	} {
		got, err := Field([]byte(c.doc), c.path)
		if kind := kindOf(t, err); kind != c.kind || got != c.want {
			t.Errorf("Field(%s, %q) = %q, %v, want %q, %q", c.doc, c.path, got, err, c.want, c.kind)
		}
	}
}

func TestFieldErrors(t *testing.T) {
	seen := map[string]string{}
	for _, doc := range []string{`{"event":"push","payload":{"a`, `4711`, `{"event":"push"}{"event":"push"}`, "{\"event\":\"caf\xe9\"}"} {
		_, err := Field([]byte(doc), "event")
		if err == nil {
			t.Fatalf("%s is accepted", doc)
		}
		if other, twice := seen[err.Error()]; twice {
			t.Errorf("%s and %s give the same error, %v", doc, other, err)
		}
		seen[err.Error()] = doc
	}
	_, err := Field([]byte(`{"a":{"b":[]}}`), "a.b")
	if want := "R-TYPE: field a.b: found an object or an array, expected a string, number or boolean (at byte 10 of the record)"; err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestFieldAllocatesNothing(t *testing.T) {
	doc := []byte(benchLine)
	buf := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := AppendField(buf, doc, "event"); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestFieldAgainstSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := `{"x":` + rapid.SampledFrom(fragments).Draw(t, "x") + `,"a":{"b":` + rapid.SampledFrom(fragments).Draw(t, "b") + `}}`
		got, err := Field([]byte(doc), "a.b")
		root, slowErr := slowParse([]byte(doc))
		if slowErr != nil {
			if err == nil {
				t.Fatalf("%s: %q, want an error: %v", doc, got, slowErr)
			}
			return
		}
		b := root.children[1].children[0]
		if want, wantErr := b.scalarText(); b.kind == 't' || wantErr == nil {
			if b.kind == 't' {
				want = b.raw
			}
			if err != nil || got != want {
				t.Fatalf("%s: %q, %v, want %q", doc, got, err, want)
			}
		} else if err == nil {
			t.Fatalf("%s: %q, want an error", doc, got)
		}
	})
}

func FuzzField(f *testing.F) {
	for _, seed := range slowSeeds {
		f.Add([]byte(seed), "s")
	}
	f.Add([]byte(`{"a":{"b":1}}`), "a.b")
	f.Fuzz(func(t *testing.T, doc []byte, path string) {
		_, err := Field(doc, path)
		valid := Valid(doc)
		if err == nil && valid != nil {
			t.Errorf("Field takes %q, Valid says %v", doc, valid)
		}
		if valid == nil && !json.Valid(doc) {
			t.Errorf("Valid takes %q, encoding/json does not", doc)
		}
		_, slow := slowParse(doc)
		if n, _ := slowParse(doc); (valid == nil) != (slow == nil && n.kind == '{' && len(n.keys) > 0) {
			t.Errorf("Valid(%q) = %v, the slow version says %v", doc, valid, slow)
		}
	})
}

func BenchmarkField(b *testing.B) {
	doc := []byte(benchLine)
	b.SetBytes(int64(len(doc)))
	var buf []byte
	var err error
	for b.Loop() {
		if buf, err = AppendField(buf[:0], doc, "event"); err != nil {
			b.Fatal(err)
		}
	}
	reportRows(b)
}
