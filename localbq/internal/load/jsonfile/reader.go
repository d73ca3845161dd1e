package jsonfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace-dev/millrace/localbq/internal/column"
	"github.com/millrace-dev/millrace/localbq/internal/load/lines"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Reader reads records. It is for one goroutine.
type Reader struct {
	in      *bufio.Reader
	columns []*schema.Field // nil where the types are not known
	line    int64
	at      int64 // bytes before the line at hand
	next    int64
}

// New reads records for columns of a table; nil columns are guessed later.
func New(in io.Reader, columns []*schema.Field) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, 1<<16), columns: columns}
}

// Position says where the record is that Next returned last.
func (r *Reader) Position() string {
	return fmt.Sprintf("JSON table encountered too many errors, giving up. Row: %d; Byte: %d", r.line, r.at)
}

// Next is the next record; io.EOF at the end. bad says why a line is no record; reading can go on behind it.
func (r *Reader) Next() (record column.Record, bad, err error) {
	for {
		text, n, err := lines.Read(r.in, lines.MostBytes)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, lines.ErrTooLong) {
			return nil, nil, err
		}
		if n == 0 {
			return nil, nil, io.EOF
		}
		r.at, r.next = r.next, r.next+n
		r.line++
		if errors.Is(err, lines.ErrTooLong) {
			return nil, r.malformed(err), nil
		}
		if r.at == 0 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		record, bad = r.parse(text)
		return record, bad, nil
	}
}

func (r *Reader) parse(line []byte) (column.Record, error) {
	d := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowDuplicateNames(true))
	if d.PeekKind() != '{' {
		return nil, fmt.Errorf("JSON parsing error in row starting at position %d: Start of array or object encountered where a row is expected", r.at)
	}
	v, err := object(d, r.columns)
	if err == nil {
		_, err = d.ReadToken()
		if errors.Is(err, io.EOF) {
			return v, nil
		}
		if err == nil {
			err = errors.New("something follows the object")
		}
	}
	return nil, r.malformed(err)
}

func (r *Reader) malformed(err error) error {
	return fmt.Errorf("JSON parsing error in row starting at position %d: %w", r.at, err)
}

func object(d *jsontext.Decoder, columns []*schema.Field) (column.Record, error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	out := column.Record{}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		v, err := anything(d, find(columns, key))
		if err != nil {
			return nil, err
		}
		out = append(out, column.Member{Name: key, Value: v})
	}
	_, err := d.ReadToken()
	return out, err
}

func find(columns []*schema.Field, name string) *schema.Field {
	for _, f := range columns {
		if strings.EqualFold(f.Name, name) {
			return f
		}
	}
	return nil
}

// anything reads a value for a column, nil where it is not known.
func anything(d *jsontext.Decoder, f *schema.Field) (any, error) {
	kind := d.PeekKind()
	if f != nil && f.Type == schema.JSON && kind != 'n' && (f.Mode != schema.Repeated || kind != '[') {
		raw, err := d.ReadValue()
		return column.Raw(bytes.Clone(raw)), err
	}
	switch kind {
	case '{':
		var members []*schema.Field
		if f != nil {
			members = f.Fields
		}
		return object(d, members)
	case '[':
		return array(d, f)
	}
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return t.Bool(), nil
	case '0':
		return column.Number(t.String()), nil
	}
	return t.String(), nil
}

func array(d *jsontext.Decoder, f *schema.Field) (any, error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	var element *schema.Field
	if f != nil {
		single := *f
		single.Mode = schema.Nullable
		element = &single
	}
	out := column.List{}
	for d.PeekKind() != ']' {
		v, err := anything(d, element)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	_, err := d.ReadToken()
	return out, err
}
