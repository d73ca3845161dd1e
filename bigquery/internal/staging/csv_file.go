package staging

import (
	"bytes"
	"errors"
	"io"

	"github.com/millrace-dev/millrace/bigquery/row"
)

type csvFiles struct{}

func (csvFiles) Format() Format    { return CSV }
func (csvFiles) Extension() string { return ".csv.gz" }

// Check refuses STRUCT and REPEATED columns: a line of CSV has one value for each.
func (csvFiles) Check(p *Plan) error {
	var faults []error
	for i := range p.Root.Columns {
		c := &p.Root.Columns[i]
		if c.repeated || c.Kind == Record {
			what := "a STRUCT"
			if c.repeated {
				what = "a REPEATED column"
			}
			faults = append(faults, &row.Error{Kind: row.KindColType, Path: c.Field.Name, Offset: -1,
				Msg: "file loads cannot carry " + what + " in CSV: stage Avro, Parquet or JSONL"})
		}
	}
	return errors.Join(faults...)
}

func (csvFiles) NewFile(w io.Writer, p *Plan) (File, error) {
	e := &csvEncoder{root: p.Root}
	return newTextFile(w, e.append), nil
}

// csvEncoder turns rows into lines of CSV, with a field for each column. Text is always quoted; csvNull stands for NULL. It is for
// one goroutine.
type csvEncoder struct {
	root *Message
	scan Scanner
}

// csvNull stands for NULL, where the empty field would be the same as empty text for some who read it. Text that is the same is
// refused, since a quoted marker may be taken for one too.
const csvNull = `\NULL`

var errMarker = &row.ValueError{Kind: row.KindRange, Msg: `file loads in CSV cannot carry the text \NULL, which stands for NULL`}

func (e *csvEncoder) append(buf, data []byte) ([]byte, error) {
	e.scan.Reset()
	f, err := e.scan.Open(e.root, data)
	if err != nil {
		return buf, err
	}
	for i := range e.root.Columns {
		if i > 0 {
			buf = append(buf, ',')
		}
		c := &e.root.Columns[i]
		slot := e.scan.Slot(f, i)
		switch {
		case slot.Count > 0:
			buf, err = e.value(buf, c, e.scan.Single(f, &slot))
		case c.required:
			return buf, c.Missing()
		default:
			buf = append(buf, csvNull...)
		}
		if err != nil {
			return buf, c.Under(err)
		}
	}
	return append(buf, '\n'), nil
}

func (e *csvEncoder) value(buf []byte, c *Column, v Value) ([]byte, error) {
	switch {
	case c.Kind == Text:
		if err := c.Content(v.Bytes); err != nil {
			return buf, err
		}
		if string(v.Bytes) == csvNull {
			return buf, errMarker
		}
		return appendCSV(buf, v.Bytes), nil
	case c.Kind == Bytes && len(v.Bytes) == 0:
		return append(buf, '"', '"'), nil
	}
	buf, _, err := c.appendLiteral(buf, v)
	return buf, err
}

// appendCSV appends text as a quoted field (RFC 4180, 2).
func appendCSV(buf, text []byte) []byte {
	buf = append(buf, '"')
	for {
		quote := bytes.IndexByte(text, '"')
		if quote < 0 {
			return append(append(buf, text...), '"')
		}
		buf = append(append(buf, text[:quote+1]...), '"')
		text = text[quote+1:]
	}
}
