package added

import (
	"errors"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Changes computes the pseudo-columns of change data capture rows. They are write-only: the rows and their descriptor have
// them, the table's schema has not (BigQuery documentation, "Stream table updates with change data capture").
type Changes[T any] struct {
	// Type answers "UPSERT" or "DELETE" for every record. It is required.
	Type func(T) (string, error)
	// Sequence answers the order of changes to a row. Either every row has one, or there is no such function and no row has.
	Sequence func(T) (string, error)
}

const (
	changeType     = "_change_type"
	changeSequence = "_change_sequence_number"
)

var (
	errChangeType = &row.ValueError{Kind: row.KindRange, Msg: "expected UPSERT or DELETE"}
	errNoType     = errors.New("columns of changes: the function that computes " + changeType + " is required")
)

// NewChanges makes a Serializer that appends fields, if there are any, and behind them the pseudo-columns to the rows of
// inner. Columns that a DELETE leaves out are not missed, REQUIRED ones either.
func NewChanges[T any](inner row.Serializer[T], c Changes[T], fields ...Field[T]) (*Serializer[T], error) {
	if c.Type == nil {
		return nil, errNoType
	}
	pseudo := []Field[T]{change(changeType, c.Type, func(buf []byte, v string) ([]byte, error) {
		if v != "UPSERT" && v != "DELETE" {
			return buf, errChangeType
		}
		return appendText(buf, v)
	})}
	if c.Sequence != nil {
		pseudo = append(pseudo, change(changeSequence, c.Sequence, appendText[string]))
	}
	return wrap(inner, fields, pseudo)
}

// change is a pseudo-column. An empty text is no value, which is an error although the descriptor's field is optional.
func change[T any](name string, f func(T) (string, error), appendTo func([]byte, string) ([]byte, error)) Field[T] {
	return typed(name, Nullable, table.String, func(rec T) (string, bool, error) {
		v, err := f(rec)
		return v, true, err
	}, func(buf []byte, v string) ([]byte, error) {
		if v == "" {
			return buf, errNoChange
		}
		return appendTo(buf, v)
	})
}

var errNoChange = &row.ValueError{Kind: row.KindRequired, Msg: "no value: every change has one"}
