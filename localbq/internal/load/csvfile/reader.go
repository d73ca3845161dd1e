package csvfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/localbq/internal/column"
	"github.com/millrace-dev/millrace/localbq/internal/load/lines"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Options are those of a load job.
type Options struct {
	Delimiter      string   // one character; "" is a comma
	Quote          *string  // one character, "" for none; nil is a double quote
	Skip           int64    // rows to skip
	NullMarkers    []string // texts that are NULL; none is the empty text
	QuotedNewlines bool
	Jagged         bool // missing fields at the end are NULL
	IgnoreExtra    bool // fields behind the last column are left out
	Latin1         bool
	// ControlCharacters lets ASCII 0 be part of text. The other control characters always are.
	ControlCharacters bool
}

// Reader reads records. It is for one goroutine.
type Reader struct {
	in        *bufio.Reader
	o         Options
	columns   []*schema.Field
	delimiter byte
	quote     byte // 0 is none
	line      int64
	at, next  int64
	skipped   bool
}

// New reads records for the columns of a table, in their order.
func New(in io.Reader, columns []*schema.Field, o Options) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(in, 1<<16), o: o, columns: columns, delimiter: ',', quote: '"'}
	switch d := o.Delimiter; {
	case d == "":
	case d == `\t` || d == "tab":
		r.delimiter = '\t'
	case len(d) == 1:
		r.delimiter = d[0]
	default:
		return nil, fmt.Errorf("fieldDelimiter %q: expected one character of one byte", d)
	}
	if q := o.Quote; q != nil {
		switch {
		case *q == "":
			r.quote = 0
		case len(*q) == 1:
			r.quote = (*q)[0]
		default:
			return nil, fmt.Errorf("quote %q: expected one character of one byte, or none", *q)
		}
	}
	return r, nil
}

// Position says where the record is that Next returned last.
func (r *Reader) Position() string {
	return fmt.Sprintf("CSV table encountered too many errors, giving up. Row: %d; Byte: %d", r.line, r.at)
}

// Next is the next record; io.EOF at the end. bad says why a row is no record; reading can go on behind it.
func (r *Reader) Next() (record column.Record, bad, err error) {
	row, bad, err := r.Row()
	if err != nil || bad != nil {
		return nil, bad, err
	}
	record, bad = r.record(row)
	return record, bad, nil
}

// Field is one field of a row.
type Field struct {
	Text   string
	Quoted bool
}

// Row is the next row, as it is written.
func (r *Reader) Row() (fields []Field, bad, err error) {
	for !r.skipped {
		r.skipped = true
		for range r.o.Skip {
			if _, _, err := r.row(); err != nil {
				return nil, nil, err
			}
		}
	}
	for {
		fields, bad, err = r.row()
		if err != nil || bad != nil || len(fields) != 1 || fields[0] != (Field{}) || len(r.columns) == 1 {
			return fields, bad, err
		}
		// an empty line is no row
	}
}

// row reads one row. A quoted field may go over several lines.
func (r *Reader) row() (fields []Field, bad, err error) {
	size := int64(0)
	line, ending, err := r.read(&size)
	if errors.Is(err, lines.ErrTooLong) {
		r.line++
		return nil, err, nil
	}
	if err != nil {
		return nil, nil, err
	}
	r.line++
	var text strings.Builder
	quoted, open := false, false
	end := func() {
		fields = append(fields, Field{text.String(), quoted})
		text.Reset()
		quoted = false
	}
	for i := 0; ; i++ {
		if i == len(line) {
			if !open {
				end()
				return fields, r.encoding(fields), nil
			}
			if !r.o.QuotedNewlines {
				return nil, errors.New("Missing close quote character (\")."), nil
			}
			more, next, err := r.read(&size)
			if errors.Is(err, lines.ErrTooLong) {
				return nil, err, nil
			}
			if errors.Is(err, io.EOF) {
				return nil, errors.New("Missing close quote character (\")."), nil
			}
			if err != nil {
				return nil, nil, err
			}
			text.WriteString(ending)
			line, ending, i = more, next, -1
			continue
		}
		c := line[i]
		switch {
		case open && c == r.quote && i+1 < len(line) && line[i+1] == r.quote:
			text.WriteByte(c)
			i++
		case open && c == r.quote:
			open = false
			if i+1 < len(line) && line[i+1] != r.delimiter {
				return nil, fmt.Errorf("Data between close quote character (\") and field separator."), nil
			}
		case !open && c == r.delimiter:
			end()
		case !open && r.quote != 0 && c == r.quote && text.Len() == 0 && !quoted:
			open, quoted = true, true
		default:
			text.WriteByte(c)
		}
	}
}

// read is the next line of a row, of which size bytes have been read, and what ends it.
func (r *Reader) read(size *int64) (line, ending string, err error) {
	text, n, err := lines.Read(r.in, lines.MostBytes)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, lines.ErrTooLong) {
		return "", "", err
	}
	if n == 0 {
		return "", "", io.EOF
	}
	if r.next == 0 {
		text = bytes.TrimPrefix(text, []byte("\ufeff"))
	}
	r.at, r.next = r.next, r.next+n
	if *size += n; *size > lines.MostBytes {
		return "", "", lines.ErrTooLong
	}
	bare := bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	return string(bare), string(text[len(bare):]), nil
}

// encoding makes the fields UTF-8.
func (r *Reader) encoding(fields []Field) error {
	for i := range fields {
		if r.o.Latin1 {
			runes := make([]rune, 0, len(fields[i].Text))
			for _, b := range []byte(fields[i].Text) {
				runes = append(runes, rune(b))
			}
			fields[i].Text = string(runes)
		} else if !utf8.ValidString(fields[i].Text) || !r.o.ControlCharacters && strings.IndexByte(fields[i].Text, 0) >= 0 {
			return fmt.Errorf("Bad character (ASCII 0) or invalid UTF-8 encountered: field starts with: <%.20q>", fields[i].Text)
		}
	}
	return nil
}

func (r *Reader) record(row []Field) (column.Record, error) {
	if len(row) > len(r.columns) && !r.o.IgnoreExtra {
		return nil, fmt.Errorf("Too many values in line. Found %d column(s) while expected %d.", len(row), len(r.columns))
	}
	if len(row) < len(r.columns) && !r.o.Jagged {
		return nil, fmt.Errorf("Too few values in row: found %d column(s) while expected %d. Consider setting allowJaggedRows.", len(row), len(r.columns))
	}
	out := make(column.Record, 0, len(r.columns))
	for i, f := range r.columns {
		if i >= len(row) {
			out = append(out, column.Member{Name: f.Name})
			continue
		}
		out = append(out, column.Member{Name: f.Name, Value: r.value(row[i], f)})
	}
	return out, nil
}

// value is the text of a field, or NULL. An empty field is NULL unless the column is text and it is quoted, or a marker says
// what NULL is.
func (r *Reader) value(v Field, f *schema.Field) any {
	isText := f.Type == schema.String || f.Type == schema.Bytes
	switch {
	case len(r.o.NullMarkers) > 0 && !v.Quoted && slices.Contains(r.o.NullMarkers, v.Text):
		return nil
	case v.Text == "" && !isText:
		return nil
	case v.Text == "" && !v.Quoted && len(r.o.NullMarkers) == 0:
		return nil
	case !isText:
		return strings.TrimSpace(v.Text)
	}
	return v.Text
}
