package csvrow

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"math"
	"slices"
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

// drawSchema draws a schema of columns that have a form in a cell.
func drawSchema(t *rapid.T) *table.Schema {
	types := slices.DeleteFunc(rowtest.Types(), func(t table.Type) bool { return t == table.Struct })
	s := rowtest.Schemas(types, 0).Draw(t, "schema")
	rowtest.Flexible(t, s)
	for i := range s.Fields {
		if s.Fields[i].Mode == table.Repeated {
			s.Fields[i].Mode = table.Nullable
		}
	}
	return s
}

func drawOptions(t *rapid.T) Options {
	return Options{
		Delimiter:        rapid.SampledFrom([]byte{0, ';', '\t', '|'}).Draw(t, "delimiter"),
		Quote:            rapid.SampledFrom([]byte{0, '\''}).Draw(t, "quote"),
		NullMarkers:      rapid.SampledFrom([][]string{nil, {`\N`}, {"NULL", ""}}).Draw(t, "null"),
		AllowJaggedRows:  rapid.Bool().Draw(t, "jagged"),
		TimestampNumbers: rapid.SampledFrom([]TimestampNumbers{RejectNumbers, Micros}).Draw(t, "numbers"),
	}
}

// spelling writes records of values in any of the forms that cells have.
type spelling struct {
	*rapid.T
	options Options
}

func (s *spelling) one(of ...string) string { return rapid.SampledFrom(of).Draw(s.T, "form") }

// header names the columns in some order, or is nil for their own.
func (s *spelling) header(fields []table.Field) (header []byte, order []int) {
	for i := range fields {
		order = append(order, i)
	}
	if rapid.Bool().Draw(s.T, "no header") {
		return nil, order
	}
	order = rapid.Permutation(order).Draw(s.T, "order")
	names := make([]string, len(order))
	for k, i := range order {
		names[k] = s.enclosed(s.one(fields[i].Name, strings.ToUpper(fields[i].Name)), false)
	}
	return []byte(strings.Join(names, s.delimiter())), order
}

func (s *spelling) delimiter() string {
	if s.options.Delimiter == 0 {
		return ","
	}
	return string(s.options.Delimiter)
}

// record writes a row.
func (s *spelling) record(fields []table.Field, order []int, values []row.Value) []byte {
	cells := make([]string, len(order))
	for k, i := range order {
		if values[i].Null {
			cells[k] = s.null()
			continue
		}
		text := s.cell(&fields[i], &values[i])
		cells[k] = s.enclosed(text, slices.Contains(s.nulls(), text))
	}
	for s.options.AllowJaggedRows && len(cells) > 1 && values[order[len(cells)-1]].Null && rapid.Bool().Draw(s.T, "shorter") {
		cells = cells[:len(cells)-1]
	}
	return []byte(strings.Join(cells, s.delimiter()))
}

func (s *spelling) nulls() []string {
	if len(s.options.NullMarkers) == 0 {
		return []string{""}
	}
	return s.options.NullMarkers
}

func (s *spelling) null() string { return s.one(s.nulls()...) }

// enclosed puts quotes around a text that needs them, and around others now and then.
func (s *spelling) enclosed(text string, must bool) string {
	quote := `"`
	if s.options.Quote != 0 {
		quote = string(s.options.Quote)
	}
	if must || strings.ContainsAny(text, quote+s.delimiter()+"\r\n") || rapid.Bool().Draw(s.T, "quoted") {
		return quote + strings.ReplaceAll(text, quote, quote+quote) + quote
	}
	return text
}

func (s *spelling) cell(f *table.Field, v *row.Value) string {
	switch f.Type {
	case table.Bool:
		word := strconv.FormatBool(v.Int != 0)
		return s.one(word, strings.ToUpper(word))
	case table.Int64:
		return strconv.FormatInt(v.Int, 10)
	case table.Float64:
		switch x := math.Float64frombits(uint64(v.Int)); {
		case math.IsNaN(x):
			return "NaN"
		case math.IsInf(x, 0):
			return strings.TrimPrefix(strconv.FormatFloat(x, 'g', -1, 64), "+") + "inity"
		default:
			return strconv.FormatFloat(x, s.one("g", "e", "E", "f")[0], -1, 64)
		}
	case table.Numeric, table.BigNumeric:
		n, err := row.ScaledFromBigEndian(v.Bytes)
		if err != nil {
			panic(err)
		}
		return n.Rat(int(v.Int)).FloatString(int(v.Int)) + s.one("", "000", "e0")
	case table.Bytes:
		encodings := []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding}
		return rapid.SampledFrom(encodings).Draw(s.T, "base64").EncodeToString(v.Bytes)
	case table.Interval:
		return string(row.AppendInterval(nil, v.List[0].Int, v.List[1].Int, v.List[2].Int))
	case table.Range:
		ends := [2]string{s.one("UNBOUNDED", "unbounded"), "UNBOUNDED"}
		for i := range ends {
			if end := &v.List[i]; !end.Null {
				ends[i] = s.cell(&row.Members(f)[i], end)
			}
		}
		return "[" + ends[0] + ", " + ends[1] + ")"
	case table.Date:
		return time.Unix(v.Int*86400, 0).UTC().Format(s.one("2006-01-02", "2006-1-2"))
	case table.Time:
		return time.UnixMicro(v.Int).UTC().Format("15:04:05.999999")
	case table.DateTime:
		return time.UnixMicro(v.Int).UTC().Format(s.one("2006-01-02T15:04:05.999999", "2006-1-2 15:4:5.999999"))
	case table.Timestamp:
		if s.options.TimestampNumbers == Micros && rapid.Bool().Draw(s.T, "number") {
			return strconv.FormatInt(v.Int, 10)
		}
		return time.UnixMicro(v.Int).UTC().Format(s.one("2006-01-02T15:04:05.999999Z", "2006/1/2 15:04:05.000000", "2006-01-02t15:04:05.999999-07:00"))
	}
	return string(v.Bytes)
}

// TestRecordsStored: whatever the columns, the options and the spelling, what cells say is stored bit for bit.
func TestRecordsStored(t *testing.T) {
	l := stored.Start(t)
	rowtest.Sparingly(t, func(r *rapid.T) {
		schema := drawSchema(r)
		w := spelling{r, drawOptions(r)}
		s, err := New(read, Fixed(schema), w.options)
		if err != nil {
			r.Fatal(err)
		}
		header, order := w.header(schema.Fields)
		var records []record
		want := rapid.SliceOfN(rowtest.Rows(schema), 1, 4).Draw(r, "rows")
		for _, values := range want {
			records = append(records, record{header, w.record(schema.Fields, order, values)})
		}
		if _, err := stored.Check(t.Context(), l, s, want, records...); err != nil {
			r.Fatalf("%q: %v", records, err)
		}
	})
}

// TestDamagedRecords: a record in which bytes were changed, cut out or put in is refused, with the column where that can be told, or
// holds what the standard library reads in it, cell by cell. What no reader of CSV can tell is another letter in a text, another digit
// in a number, and a text that is cut off at the end of the record.
func TestDamagedRecords(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		schema := drawSchema(r)
		w := spelling{r, Options{}}
		s := newSerializer(t, Options{}, schema.Fields...)
		_, order := w.header(schema.Fields)
		slices.Sort(order)
		good := w.record(schema.Fields, order, rowtest.Rows(schema).Draw(r, "row"))
		if len(good) == 0 {
			return
		}
		for range 10 {
			bad, _ := rowtest.Damaged(r, good)
			cells, valid := standardCells(bad)
			if !valid {
				_, _ = s.AppendRow(nil, dst, record{nil, bad}) // must not panic
				continue
			}
			got, err := values(t, s, record{nil, bad})
			if err == nil && len(cells) != len(schema.Fields) {
				r.Fatalf("%q is taken, of %d cells, for %d columns", bad, len(cells), len(schema.Fields))
			}
			if err != nil {
				named(r, schema, cells, bad, err)
				continue
			}
			alone(r, t, schema, cells, got)
		}
	})
}

// standardCells is what the standard library reads, if that is one record.
func standardCells(text []byte) (cells []string, ok bool) {
	if bytes.ContainsAny(text, "\r\n") || len(bytes.TrimSpace(text)) == 0 { // it changes line ends, and passes over blank records
		return nil, false
	}
	c := csv.NewReader(bytes.NewReader(text))
	cells, err := c.Read()
	return cells, err == nil
}

// named says that an error names a column whose cell is wrong by itself, unless it is the number of cells that is.
func named(t *rapid.T, schema *table.Schema, cells []string, bad []byte, err error) {
	var e *row.Error
	if !errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(len(bad)) {
		t.Fatalf("%q: %v, want a *row.Error with an offset", bad, err)
	}
	i := slices.IndexFunc(schema.Fields, func(f table.Field) bool { return f.Name == e.Path })
	if e.Path == "" && len(cells) != len(schema.Fields) {
		return
	}
	if i < 0 || i >= len(cells) {
		t.Fatalf("%q: %v, want a column named", bad, err)
	}
	one, err := New(read, Fixed(&table.Schema{Fields: schema.Fields[i : i+1]}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(`"` + strings.ReplaceAll(cells[i], `"`, `""`) + `"`)
	if _, err := one.AppendRow(nil, dst, record{nil, text}); err == nil && cells[i] != "" { // an empty cell may be NULL, or a text
		t.Fatalf("%q: %v, and the cell is right by itself", bad, e)
	}
}

// alone holds each value to what its cell says by itself.
func alone(r *rapid.T, t *testing.T, schema *table.Schema, cells []string, got []row.Value) {
	for i := range schema.Fields {
		f := schema.Fields[i]
		if cells[i] == "" && (got[i].Null || len(got[i].Bytes) == 0) {
			continue
		}
		one := newSerializer(t, Options{}, f)
		want, err := values(t, one, record{nil, []byte(`"` + strings.ReplaceAll(cells[i], `"`, `""`) + `"`)})
		if err != nil {
			r.Fatalf("%q is taken for %s in its record, and by itself %v", cells[i], f.Name, err)
		}
		if diff := rowtest.Diff(&table.Schema{Fields: []table.Field{f}}, want, got[i:i+1]); diff != "" {
			r.Fatalf("%q: %s", cells[i], diff)
		}
	}
}
