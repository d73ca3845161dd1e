package jsonrow

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest/stored"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// spelling writes documents of values in any of the forms that the columns take.
type spelling struct {
	*rapid.T
	options Options
	spans   []memberSpan // of the columns, in the document that was written last
}

// memberSpan is where a column's value lies in a document.
type memberSpan struct {
	name     string
	from, to int
}

func (s *spelling) one(of ...string) string { return rapid.SampledFrom(of).Draw(s.T, "form") }

func (s *spelling) yes() bool { return rapid.Bool().Draw(s.T, "yes") }

func (s *spelling) space() string { return s.one("", "", "", " ", "\n\t") }

func quoted(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

// document writes a row. At least one key is in it.
func (s *spelling) document(fields []table.Field, values []row.Value) []byte {
	before := s.space()
	object := s.object(fields, values, true)
	for i := range s.spans {
		s.spans[i].from += len(before)
		s.spans[i].to += len(before)
	}
	return []byte(before + object + s.space())
}

func (s *spelling) object(fields []table.Field, values []row.Value, root bool) string {
	out, separator := "{"+s.space(), ""
	for _, i := range rapid.Permutation(indexes(len(fields))).Draw(s.T, "order") {
		f, v := &fields[i], &values[i]
		empty := v.Null || f.Mode == table.Repeated && len(v.List) == 0
		if empty && s.yes() && (!root || separator != "") {
			continue
		}
		key := s.one(f.Name, strings.ToLower(f.Name), strings.ToUpper(f.Name))
		out += separator + quoted(key) + s.space() + ":" + s.space()
		from := len(out)
		switch {
		case f.Mode != table.Repeated && empty, empty && s.yes():
			out += "null"
		case f.Mode == table.Repeated:
			out += s.list(f, v.List)
		default:
			out += s.value(f, v)
		}
		if root {
			s.spans = append(s.spans, memberSpan{f.Name, from, len(out)})
		}
		out += s.space()
		separator = "," + s.space()
	}
	return out + "}"
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func (s *spelling) list(f *table.Field, list []row.Value) string {
	parts := make([]string, len(list))
	for i := range list {
		parts[i] = s.value(f, &list[i]) + s.space()
	}
	return "[" + strings.Join(parts, ","+s.space()) + "]"
}

// maybe is a number or a string of it.
func (s *spelling) maybe(number string) string { return s.one(number, `"`+number+`"`) }

func (s *spelling) value(f *table.Field, v *row.Value) string {
	switch f.Type {
	case table.Bool:
		word := strconv.FormatBool(v.Int != 0)
		return s.one(word, `"`+word+`"`, `"`+strings.ToUpper(word)+`"`)
	case table.Int64:
		return s.maybe(strconv.FormatInt(v.Int, 10))
	case table.Float64:
		return s.float(math.Float64frombits(uint64(v.Int)))
	case table.Numeric, table.BigNumeric:
		return s.decimal(v)
	case table.Bytes:
		return s.bytes(v.Bytes)
	case table.JSON:
		return s.json(string(v.Bytes))
	case table.Date:
		return s.one(strconv.FormatInt(v.Int, 10), `"`+time.Unix(v.Int*86400, 0).UTC().Format(s.one("2006-01-02", "2006-1-2"))+`"`)
	case table.Time:
		return `"` + time.UnixMicro(v.Int).UTC().Format("15:04:05.999999") + `"`
	case table.DateTime:
		return `"` + time.UnixMicro(v.Int).UTC().Format(s.one("2006-01-02T15:04:05.999999", "2006-1-2 15:4:5.999999", "2006-01-02t15:04:05.000000000")) + `"`
	case table.Timestamp:
		return s.instant(v.Int)
	case table.Interval:
		return `"` + string(row.AppendInterval(nil, v.List[0].Int, v.List[1].Int, v.List[2].Int)) + `"`
	case table.Struct, table.Range:
		return s.object(row.Members(f), v.List, false)
	}
	return quoted(string(v.Bytes))
}

func (s *spelling) float(x float64) string {
	switch {
	case math.IsNaN(x):
		return `"NaN"`
	case math.IsInf(x, 0):
		return `"` + map[bool]string{true: "", false: "-"}[x > 0] + `Infinity"`
	}
	return s.maybe(strconv.FormatFloat(x, s.one("g", "e", "E", "f")[0], -1, 64))
}

func (s *spelling) decimal(v *row.Value) string {
	n, err := row.ScaledFromBigEndian(v.Bytes)
	if err != nil {
		panic(err)
	}
	r := n.Rat(int(v.Int))
	plain := r.FloatString(int(v.Int))
	whole := new(big.Int).Div(new(big.Int).Mul(r.Num(), new(big.Int).Exp(big.NewInt(10), big.NewInt(v.Int), nil)), r.Denom())
	tenfold := new(big.Int).Mul(whole, big.NewInt(10))
	return s.maybe(s.one(plain, plain+"000", fmt.Sprintf("%se-%d", whole, v.Int), fmt.Sprintf("%sE-%d", tenfold, v.Int+1)))
}

func (s *spelling) bytes(b []byte) string {
	if s.yes() {
		parts := make([]string, len(b))
		for i, c := range b {
			parts[i] = strconv.Itoa(int(c))
			if c > 127 && s.yes() {
				parts[i] = strconv.Itoa(int(int8(c)))
			}
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	encodings := []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding}
	return `"` + rapid.SampledFrom(encodings).Draw(s.T, "base64").EncodeToString(b) + `"`
}

// json is a value, or a string of its text where the options read it so.
func (s *spelling) json(text string) string {
	if s.options.JSONColumns != Values && (text[0] == '"' || s.yes()) {
		return quoted(text)
	}
	return text
}

// instant is a number of microseconds, or a date and time in some zone where its year has four digits.
func (s *spelling) instant(micros int64) string {
	if s.yes() {
		return s.maybe(strconv.FormatInt(micros, 10))
	}
	zone := time.FixedZone("", rapid.IntRange(-14*60, 14*60).Draw(s.T, "zone")*60)
	at := time.UnixMicro(micros).In(zone)
	if year := at.Year(); year < 1 || year > 9999 {
		at = at.UTC()
	}
	return `"` + at.Format(s.one("2006-01-02T15:04:05.999999Z07:00", "2006/1/2 15:04:05.000000 -0700", "2006-01-02t15:04:05.999999-07:00")) + `"`
}

// drawDocument draws a schema, a row of it and a document that says the row.
func drawDocument(t *rapid.T, s *table.Schema, o Options) (doc []byte, want []row.Value, spans []memberSpan) {
	want = rowtest.Rows(s).Draw(t, "row")
	nullText(s.Fields, want)
	w := spelling{T: t, options: o}
	doc = w.document(s.Fields, want)
	return doc, want, w.spans
}

// nullText makes the text null of JSON columns another one: a document whose values are taken as they are says NULL by it.
func nullText(fields []table.Field, values []row.Value) {
	for i := range fields {
		f, list := &fields[i], values[i].List
		if f.Mode != table.Repeated {
			list = values[i : i+1]
		}
		for k := range list {
			switch v := &list[k]; {
			case v.Null:
			case f.Type == table.JSON && string(v.Bytes) == "null":
				v.Bytes = []byte(`"null"`)
			case f.Type == table.Struct:
				nullText(f.Fields, v.List)
			}
		}
	}
}

// TestDocumentsStored: whatever the schema and however a document spells its values, they are stored bit for bit over the default
// stream and by way of staged files; and the documents that are made of what was read say the same rows.
func TestDocumentsStored(t *testing.T) {
	l := stored.Start(t)
	rowtest.Sparingly(t, func(r *rapid.T) {
		o := Options{JSONColumns: rapid.SampledFrom([]JSONColumns{TextOrValue, Values}).Draw(r, "json")}
		schema := rowtest.Schemas(rowtest.Types(), 5).Draw(r, "schema")
		rowtest.Flexible(r, schema)
		rows, err := New(itself, Fixed(schema), o)
		if err != nil {
			r.Fatal(err)
		}
		var docs [][]byte
		var want [][]row.Value
		for range rapid.IntRange(1, 4).Draw(r, "rows") {
			doc, values, _ := drawDocument(r, schema, o)
			docs, want = append(docs, doc), append(want, values)
		}
		dst, err := stored.Check(t.Context(), l, rows, want, docs...)
		if err != nil {
			r.Fatalf("%s: %v", docs, err)
		}
		way := NewDeserializer(itself, WriteOptions{Nulls: true})
		for how, read := range map[string]func() ([][]byte, error){
			"Avro":  func() ([][]byte, error) { return stored.Read(t.Context(), l, dst, way) },
			"Arrow": func() ([][]byte, error) { return stored.ReadArrow(t.Context(), l, dst, way) },
		} {
			got, err := read()
			if how == "Arrow" && strings.Contains(fmt.Sprint(err), "INTERVAL") {
				continue // of more nanoseconds than Arrow counts
			}
			if err != nil {
				r.Fatalf("read in %s: %v", how, err)
			}
			saysTheSame(r, schema, got, want)
		}
	})
}

// saysTheSame reads documents that a Writer has made.
func saysTheSame(t *rapid.T, s *table.Schema, docs [][]byte, want [][]row.Value) {
	rows, err := New(itself, Fixed(s), Options{JSONColumns: Values})
	if err != nil {
		t.Fatal(err)
	}
	d, err := row.NewDecoder(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) != len(want) {
		t.Fatalf("%d documents, want %d", len(docs), len(want))
	}
	for i, doc := range docs {
		data, err := rows.AppendRow(nil, table.Destination{}, doc)
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		got, err := d.Decode(data)
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		if diff := rowtest.Diff(s, want[i], got.Values); diff != "" {
			t.Fatalf("%s: %s", doc, diff)
		}
	}
}

// TestDamagedDocuments: a document in which bytes were changed, cut out or put in is refused, with the column where the damage is, or
// is the row that the slow version reads in it. What no reader of JSON can tell is a change that leaves a document of the same
// columns: another letter in a string, another digit in a number.
func TestDamagedDocuments(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		o := Options{JSONColumns: rapid.SampledFrom([]JSONColumns{TextOrValue, Values}).Draw(r, "json"), IgnoreUnknownFields: rapid.Bool().Draw(r, "ignore")}
		schema := rowtest.Schemas(rowtest.Types(), 5).Draw(r, "schema")
		rowtest.Flexible(r, schema)
		s, err := New(itself, Fixed(schema), o)
		if err != nil {
			r.Fatal(err)
		}
		d, err := row.NewDecoder(schema)
		if err != nil {
			r.Fatal(err)
		}
		doc, _, spans := drawDocument(r, schema, o)
		for range 10 {
			bad, at := rowtest.Damaged(r, doc)
			if _, err := slowRow(schema.Fields, o, bad); err == nil || !hasInterval(schema.Fields) {
				compareWithSlow(r, s, d, o, bad)
			}
			_, err := s.AppendRow(nil, table.Destination{}, bad)
			var e *row.Error
			if !errors.As(err, &e) {
				continue
			}
			if e.Path == "" && e.Kind != row.KindJSON && e.Kind != row.KindMulti && e.Kind != row.KindEmptyDoc && e.Kind != row.KindText && e.Kind != row.KindUnknown { // of no name
				r.Fatalf("%q: %v names no field", bad, err)
			}
			for _, m := range spans {
				if off := int(e.Offset); m.from <= at && at < m.to && m.from <= off && off <= at && !strings.HasPrefix(strings.ToLower(e.Path), strings.ToLower(m.name)) {
					r.Fatalf("%q: %v, want the field %s", bad, err, m.name)
				}
			}
		}
	})
}

// hasInterval: text for INTERVAL columns is passed on as it is, and the service says what is none.
func hasInterval(fields []table.Field) bool {
	for i := range fields {
		if fields[i].Type == table.Interval || hasInterval(fields[i].Fields) {
			return true
		}
	}
	return false
}
