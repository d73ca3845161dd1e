package files

import (
	"bytes"
	"errors"
	"fmt"
)

// CSVOptions say how records lie in CSV files. The zero value is RFC 4180 with a header.
type CSVOptions struct {
	// Delimiter stands between cells and Quote encloses them: a comma and a double quote by default. What is between quotes
	// may hold line ends.
	Delimiter, Quote byte
	// NoQuotes says that no cell is enclosed, so that every line is a record. Only then is a large file read in ranges:
	// where a record ends, with quotes, is told by all that comes before.
	NoQuotes bool
	// NoHeader says that the first record of a file does not name the columns.
	NoHeader bool
	// SkipRows is how many records at the beginning of each file are passed over, before the header.
	SkipRows int
}

func (o *CSVOptions) resolve() error {
	if o.Delimiter == 0 {
		o.Delimiter = ','
	}
	if o.Quote == 0 {
		o.Quote = '"'
	}
	var errs []error
	if o.Delimiter == '\n' || o.Delimiter == '\r' || o.Delimiter == o.Quote && !o.NoQuotes {
		errs = append(errs, fmt.Errorf("CSV.Delimiter %q: expected a character that is neither a line end nor the quote", o.Delimiter))
	}
	if o.Quote == '\n' || o.Quote == '\r' {
		errs = append(errs, fmt.Errorf("CSV.Quote %q: expected a character that is no line end", o.Quote))
	}
	if o.SkipRows < 0 {
		errs = append(errs, fmt.Errorf("CSV.SkipRows %d: expected 0 or more", o.SkipRows))
	}
	return errors.Join(errs...)
}

// preamble is how many records at the beginning of a file are none.
func (o *CSVOptions) preamble() int {
	if o.NoHeader {
		return o.SkipRows
	}
	return o.SkipRows + 1
}

// ender finds the ends of records.
type ender interface {
	// end is where the line end of the first record in data is, -1 when it is not there. state is what the record was at its
	// beginning, 0 for a new one, and is left what it is behind data.
	end(data []byte, state *cellState) int
}

// lineEnder ends records at every line end.
type lineEnder struct{}

func (lineEnder) end(data []byte, _ *cellState) int { return bytes.IndexByte(data, '\n') }

// quoteEnder ends records at line ends that are not within quotes.
type quoteEnder struct{ delimiter, quote byte }

// cellState is where in a cell a byte stands.
type cellState uint8

const (
	cellStart   cellState = iota
	cellBare              // in a cell that is not quoted, or behind a closing quote and more
	cellQuoted            // between quotes
	cellClosing           // behind a quote between quotes: the last, or the first of two
)

func (q quoteEnder) end(data []byte, state *cellState) int {
	// Most records have no quote at all.
	if *state == cellStart || *state == cellBare {
		n := bytes.IndexByte(data, '\n')
		if n >= 0 && bytes.IndexByte(data[:n], q.quote) < 0 {
			*state = cellStart
			return n
		}
	}
	for i, c := range data {
		switch {
		case *state == cellQuoted:
			if c == q.quote {
				*state = cellClosing
			}
		case c == '\n':
			*state = cellStart
			return i
		case c == q.delimiter:
			*state = cellStart
		case c == q.quote && (*state == cellStart || *state == cellClosing):
			*state = cellQuoted
		default:
			*state = cellBare
		}
	}
	return -1
}

// Counter counts the records of an input as it goes by, without reading them.
type Counter struct {
	ender ender
	state cellState
	n     int
}

// Counter makes the Counter of an input that is read with these options.
func (o Options) Counter() (*Counter, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	return &Counter{ender: o.ender(), n: -o.preamble()}, nil
}

// Add takes the next bytes and answers how many records have ended so far, blank ones included, and those before them that
// are none left out.
func (c *Counter) Add(data []byte) int {
	for {
		n := c.ender.end(data, &c.state)
		if n < 0 {
			return c.n
		}
		data = data[n+1:]
		c.n++
	}
}
