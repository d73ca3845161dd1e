package staging

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

type jsonFiles struct{}

func (jsonFiles) Format() Format    { return JSONL }
func (jsonFiles) Extension() string { return ".jsonl.gz" }
func (jsonFiles) Check(*Plan) error { return nil }

func (jsonFiles) NewFile(w io.Writer, p *Plan) (File, error) {
	e := &jsonEncoder{root: p.Root}
	return newTextFile(w, e.append), nil
}

// jsonEncoder turns rows into lines of JSON: one object each, without members for what is NULL or empty. It is for one goroutine.
type jsonEncoder struct {
	root *Message
	scan Scanner
	text bytes.Buffer // of a JSON column
}

func (e *jsonEncoder) append(buf, data []byte) ([]byte, error) {
	e.scan.Reset()
	buf, err := e.object(buf, e.root, data)
	return append(buf, '\n'), err
}

func (e *jsonEncoder) object(buf []byte, m *Message, data []byte) ([]byte, error) {
	f, err := e.scan.Open(m, data)
	if err != nil {
		return buf, err
	}
	buf = append(buf, '{')
	for i := range m.Columns {
		c := &m.Columns[i]
		slot := e.scan.Slot(f, i)
		switch {
		case slot.Count == 0 && c.required:
			return buf, c.Missing()
		case slot.Count == 0 || c.repeated && e.scan.Len(f, c, &slot) == 0:
			continue
		}
		if buf[len(buf)-1] != '{' {
			buf = append(buf, ',')
		}
		buf = append(row.AppendQuoted(buf, c.Field.Name), ':')
		if c.repeated {
			buf, err = e.list(buf, c, f, slot)
		} else {
			buf, err = e.value(buf, c, e.scan.Single(f, &slot))
		}
		if err != nil {
			return buf, c.Under(err)
		}
	}
	e.scan.Close(f)
	return append(buf, '}'), nil
}

func (e *jsonEncoder) list(buf []byte, c *Column, f Frame, slot Slot) ([]byte, error) {
	separator := byte('[')
	err := e.scan.Each(f, c, &slot, func(v Value) (err error) {
		buf, err = e.value(append(buf, separator), c, v)
		separator = ','
		return err
	})
	return append(buf, ']'), err
}

func (e *jsonEncoder) value(buf []byte, c *Column, v Value) ([]byte, error) {
	switch {
	case c.Kind == Record:
		return e.object(buf, c.Message, v.Bytes)
	case c.Kind == Text && c.Field.Type == table.JSON:
		return e.json(buf, c, v.Bytes)
	case c.Kind == Text:
		if err := c.Content(v.Bytes); err != nil {
			return buf, err
		}
		return row.AppendQuoted(buf, v.Bytes), nil
	}
	start := len(buf)
	buf, exact, err := c.appendLiteral(append(buf, '"'), v)
	if err != nil {
		return buf, err
	}
	if exact {
		return append(buf[:start], buf[start+1:]...), nil
	}
	return append(buf, '"'), nil
}

var (
	errJSON     = &row.ValueError{Kind: row.KindText, Msg: "expected JSON"}
	errJSONNull = &row.ValueError{Kind: row.KindRange, Msg: "file loads in JSONL cannot carry the JSON value null, which becomes NULL: stage Avro"}
)

// json writes the value of a JSON column as it is, in one line: as text it would become a JSON string.
func (e *jsonEncoder) json(buf []byte, c *Column, text []byte) ([]byte, error) {
	if err := c.Content(text); err != nil {
		return buf, err
	}
	e.text.Reset()
	if err := json.Compact(&e.text, text); err != nil {
		return buf, errJSON
	}
	if e.text.String() == "null" {
		return buf, errJSONNull
	}
	return append(buf, e.text.Bytes()...), nil
}
