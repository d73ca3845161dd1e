package csvrow

import (
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// AppendField appends the text of the cell that a header calls name: what records are routed by. Names match exactly. Errors
// are *row.Error values: R-REQUIRED where the header has no such name, or the cell is NULL.
func AppendField(buf, header, record []byte, name string, o Options) ([]byte, error) {
	o, err := o.resolve()
	if err != nil {
		return buf, err
	}
	if !utf8.Valid(header) || !utf8.Valid(record) {
		return buf, row.At(errText, "", 0)
	}
	names, cells := newScanner(o), newScanner(o)
	names.reset(header)
	cells.reset(record)
	p := parser{options: &o}
	for {
		title, ok, err := names.next()
		if err != nil {
			return buf, headerError("", "cannot be read: %v", err)
		}
		c, there, err := cells.next()
		switch {
		case !ok || !there:
			return buf, &row.Error{Kind: row.KindRequired, Path: name, Offset: -1, Msg: "there is no such cell, and the record is routed by it"}
		case err != nil:
			return buf, row.At(err, string(title.text), int64(c.at))
		case string(title.text) != name:
			continue
		case !c.quoted && p.null(c.text):
			return buf, &row.Error{Kind: row.KindRequired, Path: name, Offset: int64(c.at), Msg: "the cell is NULL, and the record is routed by it"}
		}
		return append(buf, c.text...), nil
	}
}
