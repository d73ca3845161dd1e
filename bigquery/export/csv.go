package export

import (
	"bytes"
	"encoding/json"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Texts makes texts of the values of rows, each for itself: texts and JSON as they are, numbers, times and bytes as NDJSON has them
// without quotes, ranges as [start, end), lists and STRUCTs as JSON. It may be used from many goroutines.
type Texts []textColumn

type textColumn struct {
	field  *table.Field
	schema *table.Schema   // of this column alone, called v
	json   *jsonrow.Writer // of it
	raw    bool            // the value's bytes are the text
}

// NewTexts is for rows of a schema.
func NewTexts(s *table.Schema) Texts {
	t := make(Texts, len(s.Fields))
	for i := range s.Fields {
		f := &s.Fields[i]
		alone := *f
		alone.Name = "v"
		t[i] = textColumn{field: f, schema: &table.Schema{Fields: []table.Field{alone}}, json: jsonrow.NewWriter(jsonrow.WriteOptions{Nulls: true}),
			raw: f.Mode != table.Repeated && (f.Type == table.String || f.Type == table.Geography || f.Type == table.JSON)}
	}
	return t
}

// Append appends the text of the value of column i. NULL has none.
func (t Texts) Append(buf []byte, r *row.Row, i int) (_ []byte, null bool, err error) {
	v, c := &r.Values[i], &t[i]
	switch {
	case v.Null && c.field.Mode != table.Repeated:
		return buf, true, nil
	case c.raw:
		return append(buf, v.Bytes...), false, nil
	}
	at := len(buf)
	if buf, err = c.json.AppendJSON(buf, &row.Row{Schema: c.schema, Values: r.Values[i : i+1]}); err != nil {
		if e, ok := err.(*row.Error); ok {
			e.Path = c.field.Name + e.Path[min(len(e.Path), 1):]
		}
		return buf, false, err
	}
	value := buf[at+len(`{"v":`) : len(buf)-1]
	if c.field.Type == table.Range && c.field.Mode != table.Repeated {
		text, err := rangeText(value)
		return append(buf[:at], text...), false, err
	}
	if value[0] == '"' { // numbers of another kind, times, base64: nothing is escaped
		value = value[1 : len(value)-1]
	}
	return append(buf[:at], value...), false, nil
}

// rangeText is a range as casts of SQL write it.
func rangeText(value []byte) (string, error) {
	var r struct{ Start, End *string }
	if err := json.Unmarshal(value, &r); err != nil {
		return "", err
	}
	end := func(s *string) string {
		if s == nil {
			return "UNBOUNDED"
		}
		return *s
	}
	return "[" + end(r.Start) + ", " + end(r.End) + ")", nil
}

// csvLine appends a row as a record of CSV (RFC 4180, but for the line end).
func (t Texts) csvLine(buf []byte, r *row.Row) ([]byte, error) {
	for i := range t {
		if i > 0 {
			buf = append(buf, ',')
		}
		at := len(buf)
		b, null, err := t.Append(buf, r, i)
		if err != nil {
			return b, err
		}
		if buf = b; !null {
			buf = quoted(buf, at)
		}
	}
	return append(buf, '\n'), nil
}

func csvHeader(s *table.Schema) (line []byte) {
	for i, f := range s.Fields {
		if i > 0 {
			line = append(line, ',')
		}
		at := len(line)
		line = quoted(append(line, f.Name...), at)
	}
	return append(line, '\n')
}

// quoted puts quotes around what has been appended from at on, if it needs them. An empty text does: nothing is NULL.
func quoted(buf []byte, at int) []byte {
	cell := buf[at:]
	if len(cell) > 0 && !bytes.ContainsAny(cell, ",\"\r\n") && cell[0] != ' ' && cell[len(cell)-1] != ' ' {
		return buf
	}
	doubled := bytes.ReplaceAll(cell, []byte(`"`), []byte(`""`))
	return append(append(append(buf[:at], '"'), doubled...), '"')
}
