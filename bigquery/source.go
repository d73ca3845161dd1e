package bigquery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/internal/storageread"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// Source reads a table, or the result of a query, at one instant, and ends. It implements stream.Source and
// stream.Locator, and is safe for concurrent use.
//
// Records have no event time, and come in the order of the storage, which means nothing. A row is read again after a
// failure unless a checkpoint covers it. Positions are rows of a read stream; a session and its streams live six hours
// (measured 2026-08), so no read may take longer.
type Source[T any] struct {
	config storageread.Config
	rows   row.Deserializer[T]
}

var (
	_ stream.Source[int] = (*Source[int])(nil)
	_ stream.Locator     = (*Source[int])(nil)
)

// Selective is a row.Deserializer that wants certain columns. Rows then hold these, in this order, found by name and
// without regard to case; an integer may be read as FLOAT64, text as bytes, a NULLABLE column as REQUIRED as long as no
// NULL comes. A schema without columns is legal: its rows have no values and still count. When the input cannot be read
// that way, the plan fails.
//
// The service still sends, and bills, every column: name them in SourceOptions.SelectedFields too.
type Selective interface {
	// ReaderSchema is asked once; nil is every column.
	ReaderSchema() *table.Schema
}

// NewSource makes a source that turns the rows of the input into records. rows is used by all lanes at once. Every fault
// of the options is reported at once. Nothing is opened, no file is read and no call is made before a job starts.
func NewSource[T any](from Input, rows row.Deserializer[T], o SourceOptions) (*Source[T], error) {
	config, err := o.resolve(from)
	faults := []error{err}
	if missing(rows) {
		faults = append(faults, errors.New("a deserializer is required"))
	} else if s, ok := rows.(Selective); ok {
		if config.Columns = s.ReaderSchema(); config.Columns != nil {
			faults = append(faults, checkReaderSchema(config.Columns.Fields, ""))
			if config.ReaderSchema != nil {
				faults = append(faults, errors.New("ReaderSchema is given, and the deserializer has one of its own: leave one out"))
			}
		}
	}
	if o.ArrowCompression != ArrowUncompressed {
		faults = append(faults, errArrowCompression)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("bigquery source: %w", err)
	}
	config.Board = &storageread.Board{}
	return &Source[T]{config: config, rows: rows}, nil
}

// checkReaderSchema finds what no session could have.
func checkReaderSchema(fields []table.Field, path string) error {
	var faults []error
	seen := map[string]bool{}
	for i := range fields {
		f := &fields[i]
		name := path + f.Name
		key := strings.ToLower(f.Name)
		switch {
		case f.Name == "":
			faults = append(faults, fmt.Errorf("reader schema: column %d of %q has no name", i, path))
		case seen[key]:
			faults = append(faults, fmt.Errorf("reader schema: column %s is there twice", name))
		case f.Type < table.Bool || f.Type > table.Struct:
			faults = append(faults, fmt.Errorf("reader schema: column %s has no type", name))
		case f.Type == table.Struct:
			faults = append(faults, checkReaderSchema(f.Fields, name+"."))
		}
		seen[key] = true
	}
	return errors.Join(faults...)
}

// Bounded is true: a table at one instant has an end.
func (s *Source[T]) Bounded() bool { return true }

// NewEnumerator plans the read, unless the state says it has been planned.
func (s *Source[T]) NewEnumerator(ctx context.Context, ec stream.EnumeratorContext) (stream.Enumerator, error) {
	e, err := s.config.NewEnumerator(ctx, ec)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// NewReader makes the reader of one lane. It has a connection of its own, opened with its first split.
func (s *Source[T]) NewReader(_ context.Context, rc stream.ReaderContext) (stream.Reader[T], error) {
	return s.reader(storageread.Attempt{Job: rc.Job, Meter: rc.Meter, Log: rc.Log}), nil
}

// Locate names the read stream and the row in it.
func (s *Source[T]) Locate(p stream.Position) stream.Location {
	return stream.Location{Name: p.Split, Row: p.Row}
}

// SourceReport is a read as it is now: Session and when it Expires, how many Streams the service made and how many of them are
// Waiting for a lane, and those that lanes are Reading.
type SourceReport = storageread.Report

// ReadingReport is a stream that is being read: how far it was received, in rows and as a share of the stream, by how much the
// service slows it down, and what went wrong on the way.
type ReadingReport = storageread.Reading

// Report answers how the read of an engine is going. It may be called at any time.
func (s *Source[T]) Report() SourceReport { return s.config.Board.Report() }

// Lineage is the table that is read; none with a query, whose tables only BigQuery knows. It reads nothing but the
// configuration.
func (s *Source[T]) Lineage() []Dataset {
	if s.config.Query != nil {
		return nil
	}
	t := s.config.Table
	return []Dataset{{Namespace: "bigquery", Name: t.String(), Kind: "bigquery-table", Table: t}}
}

// SourceInstruments lists the metrics of sources.
func SourceInstruments() []stream.Instrument { return storageread.Instruments }
