//go:build cgo

package duckdb

import (
	"errors"
	"regexp"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/native"
	"github.com/millrace-dev/millrace/localbq/internal/query"
)

// words are what DuckDB says and what BigQuery says instead. The first that fits counts.
var words = []struct {
	said *regexp.Regexp
	says string
}{
	{regexp.MustCompile(`^Out of Range Error: Overflow in (?:addition|subtraction|multiplication) of INT64 \((.*)\)!`), "int64 overflow: $1"},
	{regexp.MustCompile(`^Out of Range Error: Overflow in negation`), "int64 overflow: -(-9223372036854775808)"},
	{regexp.MustCompile(`^Invalid Input Error: More than one row returned by a subquery`), "Scalar subquery produced more than one element"},
	{regexp.MustCompile(`^Out of Memory Error`), "Resources exceeded during query execution: the query needs more memory than the local BigQuery gives it"},
	{regexp.MustCompile(`^(?:Binder|Parser|Catalog|Not implemented|INTERNAL) Error: (.*)`), query.NotSupported + "$1"},
	{regexp.MustCompile(`^(?:[A-Z][A-Za-z ]* Error: )?(.*)`), "$1"},
}

// fault makes the statement's fault of what DuckDB says; other errors stay what they are.
func fault(err error) error {
	said, ok := errors.AsType[*native.Error](err)
	if !ok {
		return err
	}
	line, _, _ := strings.Cut(said.Message, "\n")
	for _, w := range words {
		if m := w.said.FindStringSubmatchIndex(line); m != nil {
			return &query.Error{Message: string(w.said.ExpandString(nil, w.says, line, m))}
		}
	}
	return &query.Error{Message: line}
}
