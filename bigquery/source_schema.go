package bigquery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// InputSchema is the schema of what a source with these options would read, before it does: of a table or view as it is now, with
// all that BigQuery knows of its columns; of a query as a dry run tells, which costs nothing. It needs the permission
// bigquery.tables.get, or bigquery.jobs.create for a query.
func InputSchema(ctx context.Context, from Input, o SourceOptions) (*table.Schema, error) {
	config, err := o.resolve(from)
	if err != nil {
		return nil, fmt.Errorf("bigquery source: %w", err)
	}
	var s *table.Schema
	if config.Query == nil {
		s, err = TableSchema(ctx, o.Connection, config.Table)
		if errors.Is(err, ErrCredentials) {
			err = ErrSourceCredentials
		}
	} else {
		answer, failed := config.ResultSchema(ctx)
		if failed != nil {
			return nil, failed
		}
		s, err = tableadmin.FromREST(answer)
	}
	if err != nil {
		return nil, err
	}
	return selected(s, o.SelectedFields)
}

// selected is a schema with those of its columns, and members of them, that are selected, in the order of the schema.
func selected(s *table.Schema, paths []string) (*table.Schema, error) {
	if len(paths) == 0 {
		return s, nil
	}
	for _, path := range paths {
		if !has(s.Fields, path) {
			return nil, fmt.Errorf("SelectedFields: there is no column %q", path)
		}
	}
	return &table.Schema{Fields: selectedFields(s.Fields, paths)}, nil
}

func has(fields []table.Field, path string) bool {
	name, more, deeper := strings.Cut(path, ".")
	for i := range fields {
		if strings.EqualFold(fields[i].Name, name) {
			return !deeper || has(fields[i].Fields, more)
		}
	}
	return false
}

func selectedFields(fields []table.Field, paths []string) (out []table.Field) {
	for _, f := range fields {
		whole, below := false, []string(nil)
		for _, path := range paths {
			name, more, deeper := strings.Cut(path, ".")
			if strings.EqualFold(f.Name, name) {
				whole = whole || !deeper
				below = append(below, more)
			}
		}
		switch {
		case whole:
			out = append(out, f)
		case below != nil:
			f.Fields = selectedFields(f.Fields, below)
			out = append(out, f)
		}
	}
	return out
}
