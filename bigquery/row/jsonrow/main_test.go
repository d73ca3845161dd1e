package jsonrow

import (
	"errors"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// kindOf is the kind of an error, "" for none.
func kindOf(t *testing.T, err error) row.Kind {
	t.Helper()
	var e *row.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("%v is no *row.Error", err)
	}
	if e == nil {
		return ""
	}
	return e.Kind
}
