package jsonrow

import (
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Schemas answers which columns the rows of a destination have. A *Mapping is the same for all of them.
type Schemas interface {
	// Mapping is asked once for each destination, by one goroutine at a time, before its first row. An error is a
	// mistake of configuration.
	Mapping(dst table.Destination) (*Mapping, error)
}

// PerDestination makes Schemas of a function.
type PerDestination func(dst table.Destination) (*Mapping, error)

// Mapping calls f.
func (f PerDestination) Mapping(dst table.Destination) (*Mapping, error) { return f(dst) }

// Fixed is the mapping of a schema that was given: keys fill the columns of the same name, ignoring case.
func Fixed(s *table.Schema) *Mapping { return &Mapping{Schema: s} }

// Mapping says which columns rows have and which keys fill them. It is not changed once it has been handed over.
type Mapping struct {
	Schema *table.Schema

	// Keys holds the JSON key of every column. nil is the columns' own names, matched ignoring case; keys that are
	// given match exactly.
	Keys *Keys

	// Exact refuses what would come back as something else: a number for a STRING column, a text that is no RFC 3339
	// timestamp for a TIMESTAMP column, a number that FLOAT64 cannot hold. JSON columns then hold values, strings
	// quoted. Keys without a column pass when their value holds nothing: null, [], {} and what is made of those only.
	Exact bool

	// Rest names a JSON column that takes every key without a column of its own, as one object: RFC 6901 JSON Pointer
	// of the key → its value. "" is none.
	Rest string
}

// Mapping returns m.
func (m *Mapping) Mapping(table.Destination) (*Mapping, error) { return m, nil }

// Keys are the JSON keys of sibling columns.
type Keys struct {
	Names   []string // one for each column
	Members []*Keys  // one for each column: of a STRUCT, and nil otherwise; nil where no column is a STRUCT
}

func (k *Keys) of(i int) *Keys {
	if k == nil || k.Members == nil {
		return nil
	}
	return k.Members[i]
}

// check reports every fault of the mapping, as *row.Error values of the C kinds.
func (m *Mapping) check() error {
	if m == nil {
		return &row.Error{Kind: row.KindSchema, Offset: -1, Msg: "no mapping"}
	}
	if err := row.CheckSchema(m.Schema); err != nil {
		return err
	}
	faults := checkKeys(nil, m.Keys, m.Schema.Fields, "")
	if m.Rest != "" {
		if f := m.Schema.Field(m.Rest); f == nil || f.Type != table.JSON || f.Mode != table.Nullable {
			faults = append(faults, schemaError(m.Rest, "the column for keys without one has to be a NULLABLE JSON column of the table"))
		}
	}
	return errors.Join(faults...)
}

func checkKeys(faults []error, k *Keys, fields []table.Field, path string) []error {
	if k == nil {
		return faults
	}
	if len(k.Names) != len(fields) || k.Members != nil && len(k.Members) != len(fields) {
		return append(faults, schemaError(path, fmt.Sprintf("%d keys for %d columns", len(k.Names), len(fields))))
	}
	seen := make(map[string]bool, len(fields))
	for i := range fields {
		at := table.Join(path, fields[i].Name)
		if seen[k.Names[i]] {
			faults = append(faults, schemaError(at, "shares its key with a column before it"))
		}
		seen[k.Names[i]] = true
		faults = checkKeys(faults, k.of(i), fields[i].Fields, at)
	}
	return faults
}

func schemaError(path, msg string) error {
	return &row.Error{Kind: row.KindSchema, Path: path, Offset: -1, Msg: msg}
}
