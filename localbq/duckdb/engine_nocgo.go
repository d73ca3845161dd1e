//go:build !cgo

package duckdb

import (
	"errors"

	"github.com/millrace-dev/millrace/localbq/internal/query"
)

// New answers an error: this program was built without cgo, and DuckDB is C++.
func New() (query.Engine, error) {
	return nil, errors.New("duckdb: this program was built without cgo, which queries of the local BigQuery need: " +
		"build it with CGO_ENABLED=1 and a C compiler")
}
