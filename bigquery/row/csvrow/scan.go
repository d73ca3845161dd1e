package csvrow

import (
	"bytes"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// scanner cuts a record into cells. It is used again for the next record.
type scanner struct {
	delimiter, quote byte
	quotes           bool

	data    []byte
	pos     int // of the next cell; len(data)+1 behind the last
	scratch []byte
}

// cell is one cell: its text without quotes, and where it begins in the record. The text may lie in the scanner's memory,
// and is valid until the next.
type cell struct {
	text   []byte
	at     int
	quoted bool
}

var (
	errQuoteOpen   = &row.ValueError{Kind: row.KindType, Msg: "the quote that the cell begins with is not closed"}
	errQuoteBehind = &row.ValueError{Kind: row.KindType, Msg: "expected a delimiter behind the closing quote: quotes within quotes are doubled"}
	errQuoteBare   = &row.ValueError{Kind: row.KindType, Msg: "a quote within a cell that does not begin with one: quote the cell, and double the quotes in it"}
	errLineEnd     = &row.ValueError{Kind: row.KindType, Msg: "a line end within a cell that is not quoted"}
	errText        = &row.ValueError{Kind: row.KindText, Msg: "the record is not valid UTF-8"}
)

func (s *scanner) reset(data []byte) { s.data, s.pos = data, 0 }

// next cuts the next cell off; ok is false behind the last.
func (s *scanner) next() (c cell, ok bool, err error) {
	if s.pos > len(s.data) {
		return cell{}, false, nil
	}
	c.at = s.pos
	if s.quotes && s.pos < len(s.data) && s.data[s.pos] == s.quote {
		c.quoted = true
		c.text, err = s.enclosed()
		return c, true, err
	}
	rest := s.data[s.pos:]
	n := bytes.IndexByte(rest, s.delimiter)
	if n < 0 {
		n = len(rest)
	}
	c.text = rest[:n]
	s.pos += n + 1
	for _, b := range c.text {
		if b == s.quote && s.quotes {
			return c, true, errQuoteBare
		}
		if b == '\n' || b == '\r' {
			return c, true, errLineEnd
		}
	}
	return c, true, nil
}

// enclosed is the text between quotes.
func (s *scanner) enclosed() ([]byte, error) {
	from := s.pos + 1
	doubled := false
	s.scratch = s.scratch[:0]
	for {
		n := bytes.IndexByte(s.data[from:], s.quote)
		if n < 0 {
			s.pos = len(s.data) + 1
			return nil, errQuoteOpen
		}
		end := from + n
		if end+1 < len(s.data) && s.data[end+1] == s.quote {
			s.scratch = append(s.scratch, s.data[from:end+1]...)
			from, doubled = end+2, true
			continue
		}
		if end+1 < len(s.data) && s.data[end+1] != s.delimiter {
			return nil, errQuoteBehind
		}
		s.pos = end + 2
		if !doubled {
			return s.data[from:end], nil
		}
		s.scratch = append(s.scratch, s.data[from:end]...)
		return s.scratch, nil
	}
}

// Fields cuts a record into the texts of its cells, as a header is. The error is a *row.Error.
func Fields(record []byte, o Options) ([]string, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(record) {
		return nil, row.At(errText, "", 0)
	}
	s := newScanner(o)
	s.reset(record)
	var all []string
	for {
		c, ok, err := s.next()
		switch {
		case err != nil:
			return nil, row.At(err, "", int64(c.at))
		case !ok:
			return all, nil
		}
		all = append(all, string(c.text))
	}
}

func newScanner(o Options) scanner {
	return scanner{delimiter: o.Delimiter, quote: o.Quote, quotes: !o.NoQuotes}
}
