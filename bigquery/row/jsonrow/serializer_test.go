package jsonrow

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPerDestination(t *testing.T) {
	var asked sync.Map
	errNone := errors.New("no such table")
	s, err := New(itself, PerDestination(func(dst table.Destination) (*Mapping, error) {
		n, _ := asked.LoadOrStore(dst, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		switch dst.Table {
		case "none":
			return nil, errNone
		case "broken":
			return Fixed(&table.Schema{}), nil
		}
		return Fixed(&table.Schema{Fields: []table.Field{{Name: dst.Table, Type: table.Int64}}}), nil
	}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { // owned by this test, ends after its rows
			for i := range 20 {
				name := fmt.Sprintf("t%d", i%5)
				dst := table.Destination{Project: "p", Dataset: "d", Table: name}
				got, err := s.AppendRow(nil, dst, []byte(`{"`+name+`":7}`))
				if err != nil || string(got) != "\x08\x07" {
					t.Errorf("%s: %x, %v, want 0807", name, got, err)
				}
				schema, err := s.Schema(dst)
				if err != nil || schema.Fields[0].Name != name {
					t.Errorf("schema of %s: %v, %v", name, schema, err)
				}
				if d, err := s.Descriptor(dst); err != nil || d.Field[0].GetName() != name {
					t.Errorf("descriptor of %s: %v, %v", name, d, err)
				}
			}
		})
	}
	wg.Wait()
	asked.Range(func(dst, n any) bool {
		if got := n.(*atomic.Int64).Load(); got != 1 {
			t.Errorf("the mapping of %v was asked for %d times, want once", dst, got)
		}
		return true
	})
	if _, err := s.AppendRow(nil, table.Destination{Table: "none"}, []byte(`{"a":1}`)); !errors.Is(err, errNone) {
		t.Errorf("%v, want the provider's error", err)
	}
	broken := table.Destination{Project: "p", Dataset: "d", Table: "broken"}
	if _, err := s.Schema(broken); kindOf(t, err) != row.KindEmpty || !strings.Contains(err.Error(), "p.d.broken") {
		t.Errorf("%v, want %s and the table's name", err, row.KindEmpty)
	}
	if _, err := s.Descriptor(broken); kindOf(t, err) != row.KindEmpty {
		t.Errorf("%v, want %s", err, row.KindEmpty)
	}
}

func TestNewRefusesNothing(t *testing.T) {
	if _, err := New[[]byte](nil, Fixed(allTypes), Options{}); kindOf(t, err) != row.KindSchema {
		t.Errorf("no document function: %v, want %s", err, row.KindSchema)
	}
	if _, err := New(itself, nil, Options{}); kindOf(t, err) != row.KindSchema {
		t.Errorf("no schemas: %v, want %s", err, row.KindSchema)
	}
}

func TestAppendRowAllocatesNothing(t *testing.T) {
	inf := NewInference(InferOptions{Rest: "rest"})
	if err := inf.Add([]byte(`{"a":{"b":[{"c":"x"}]},"at":"2026-07-26T01:02:03Z","f":0.25}`)); err != nil {
		t.Fatal(err)
	}
	inferred, err := inf.Schema()
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("long é ", 100)
	for _, c := range []struct {
		name string
		m    *Mapping
		o    Options
		doc  string
	}{
		{"a line of 12 fields", Fixed(benchSchema), Options{}, benchLine},
		{"every type", Fixed(allTypes), Options{}, slowSeeds[0]},
		{"nested", Fixed(allTypes), Options{}, slowSeeds[2]},
		{"lists", Fixed(allTypes), Options{}, slowSeeds[3]},
		{"escapes and other case", Fixed(allTypes), Options{}, slowSeeds[4]},
		{"named zone", Fixed(allTypes), Options{}, `{"ts":"2026-07-26 01:02:03 Europe/Berlin"}`},
		{"long text", Fixed(allTypes), Options{}, `{"s":"` + long + `","j":{ "a" : "` + long + `" }}`},
		{"ignored keys", Fixed(allTypes), Options{IgnoreUnknownFields: true}, `{"X":1,"Ünknown":{"a":[1]},"i":1}`},
		{"inferred", inferred.Mapping, Options{}, `{"a":{"b":[{"c":"x"},{"c":"y"}]},"at":"2026-07-26T01:02:03Z","f":0.1}`},
		{"rest", inferred.Mapping, Options{}, `{"new":1,"a":{"b":[{"c":"x"},{"d":{ "e":1 }}],"/~":null}}`},
	} {
		pl, err := compile(c.m, c.o)
		if err != nil {
			t.Fatal(err)
		}
		p := &parser{options: &c.o} // the pool that holds them forgets some under the race detector
		doc, buf := []byte(c.doc), make([]byte, 0, 1<<14)
		n := testing.AllocsPerRun(100, func() {
			if _, err := p.row(pl, buf, doc); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations a row, want none", c.name, n)
		}
	}
}

func TestErrorOffsets(t *testing.T) {
	s, err := New(itself, Fixed(allTypes), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		doc, want string
	}{
		{`{"i":1,"s":{}}`, "R-TYPE: field s: found an object, expected a string (at byte 11 of the record)"},
		{`{"i":1,  "x":{}}`, "R-UNKNOWN: field x: the table has no column for this key (at byte 9 of the record)"},
		{`{"i":1,"i":2}`, "R-DUPKEY: field i: the key is given twice, ignoring case where columns do (at byte 7 of the record)"},
		{`{"i":1}{"i":2}`, "R-MULTI: something follows the JSON object: expected exactly one in a record (at byte 7 of the record)"},
		{`{"i":1`, "R-JSON: field i: the JSON is cut: it ends where a comma or } is expected (at byte 6 of the record)"},
		{`17`, "R-JSON: the document is a number, expected a JSON object (at byte 0 of the record)"},
		{"{\"s\":\"ab\xffcd\"}", "R-TEXT: field s: the text is not valid UTF-8 (at byte 8 of the record)"},
		{`{"st":{"s":"x","in":[{"j":[]},{"j":[1,null]}]}}`, "R-NULLELEM: field st.in[1].j[1]: null within an array: a REPEATED column holds none (at byte 38 of the record)"},
	} {
		if _, err := s.AppendRow(nil, table.Destination{}, []byte(c.doc)); err == nil || err.Error() != c.want {
			t.Errorf("%s gives\n%v, want\n%s", c.doc, err, c.want)
		}
	}
}

func TestErrorsLeaveNothingBehind(t *testing.T) {
	s, err := New(itself, &Mapping{Schema: allTypes, Rest: "j"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	good := []byte(`{"st":{"s":"x"},"new":[1]}`)
	want, err := s.AppendRow(nil, table.Destination{}, good)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{`{"st":{"s":"x","in":[{"j":[1,{"a":`, `{"st":{"extra":1,"s":{}}}`, `{"new":1,"new":2}`, `{"lf":[1,"x"]}`} {
		if _, err := s.AppendRow(nil, table.Destination{}, []byte(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
		if got, err := s.AppendRow(nil, table.Destination{}, good); err != nil || string(got) != string(want) {
			t.Errorf("after %s a good document is %x, %v, want %x", bad, got, err, want)
		}
	}
}

func TestRest(t *testing.T) {
	m := &Mapping{
		Schema: &table.Schema{Fields: []table.Field{
			{Name: "a", Type: table.Struct, Mode: table.Repeated, Fields: col(table.Int64)},
			{Name: "Rest", Type: table.JSON},
			{Name: "z", Type: table.Int64},
		}},
		Rest: "rest",
	}
	s, err := New(itself, m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := row.NewDecoder(m.Schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ doc, want string }{
		{`{"z":1}`, ""},
		{`{"new":1}`, `{"/new":1}`},
		{`{"new":null,"z":1,"b":[],"c":{ "d" : "x y" }}`, `{"/new":null,"/b":[],"/c":{"d":"x y"}}`},
		{`{"a":[{"c":1},{"c":2,"d~/":true,"c.":"\u00e9"}],"":0}`, `{"/a/1/d~0~1":true,"/a/1/c.":"\u00e9","/":0}`},
		{`{"rest":5,"Rest":6}`, `{"/rest":5,"/Rest":6}`},
		{`{"\"\n":1}`, `{"/\"\n":1}`},
	} {
		data, err := s.AppendRow(nil, table.Destination{}, []byte(c.doc))
		if err != nil {
			t.Errorf("%s: %v", c.doc, err)
			continue
		}
		r, err := d.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(r.Values[1].Bytes); got != c.want || r.Values[1].Null != (c.want == "") {
			t.Errorf("%s leaves %s, want %s", c.doc, got, c.want)
		}
	}
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, `"k%d":%d,`, i, i)
	}
	for _, doc := range []string{`{"x":1,"x":2}`, `{"a":[{"x":1,"\u0078":2}]}`, `{` + many.String() + `"k50":1}`} {
		if _, err := s.AppendRow(nil, table.Destination{}, []byte(doc)); kindOf(t, err) != row.KindDuplicate {
			t.Errorf("%.60s: %v, want %s", doc, err, row.KindDuplicate)
		}
	}
	if _, err := s.AppendRow(nil, table.Destination{}, []byte(`{"a":[{"x":1},{"x":1}],"x":1}`)); err != nil {
		t.Errorf("the same key in three objects: %v", err)
	}
}
