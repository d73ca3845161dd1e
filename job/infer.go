package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/files"
	"github.com/millrace-dev/millrace/internal/nearest"
	"github.com/millrace-dev/millrace/stream"
)

// scan looks through the input before the job starts: which tables its records go to, and what they look like.
type scan struct {
	source looked
	to     bigquery.Resolver[files.Record]
	fixed  bool                      // all records go to one table
	sample int                       // records for each table
	limit  int64                     // bytes of records to look through; 0 is no limit
	infer  func() (inference, error) // begins to learn about a table; nil to learn which tables there are
	// options are those of the source.
	options files.Options

	seen map[table.Destination]*sampled
	// whole says that the end of the input was reached, and lost is how many records led to no table.
	whole bool
	lost  int
}

// sampled is what the scan knows of one table.
type sampled struct {
	inference inference
	documents int
	records   int   // that led here, looked at or not
	refused   error // what was wrong with the first record that could not be read
}

// run reads until it knows enough. Records that cannot be routed or are not JSON are left to the job, which says what is
// wrong with them.
func (s *scan) run(ctx context.Context) error {
	s.seen = map[table.Destination]*sampled{}
	var read int64
	for rec, err := range s.source.Records(ctx) {
		if err != nil {
			return fmt.Errorf("look through the input for schemas: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		enough, err := s.add(ctx, rec)
		if err != nil {
			return err
		}
		read += int64(len(rec.Value.Bytes)) + 1
		if enough || s.limit > 0 && read >= s.limit {
			return nil
		}
	}
	s.whole = true
	return nil
}

func (s *scan) add(ctx context.Context, rec *stream.Record[files.Record]) (enough bool, err error) {
	if rec.Value.Err != nil {
		s.lost++
		return false, nil
	}
	dst, err := s.to.Resolve(ctx, rec)
	var unroutable *bigquery.Unroutable
	switch {
	case errors.As(err, &unroutable):
		s.lost++
		return false, nil
	case err != nil:
		return false, err
	}
	t := s.seen[dst]
	if t == nil {
		t = &sampled{}
		s.seen[dst] = t
		if s.infer != nil {
			if t.inference, err = s.infer(); err != nil {
				return false, err
			}
		}
	}
	t.records++
	if t.documents < s.sample {
		if err := t.inference.add(rec.Value); err == nil {
			t.documents++
		} else if unfit(err) {
			return false, fmt.Errorf("infer the schema of %s at %s: %w", dst, rec.At, err)
		} else if tooWide(err) {
			return false, fmt.Errorf("infer the schema of %s at %s: %w: name fields in schema.infer.json that are to be one JSON column", dst, rec.At, err)
		} else if t.refused == nil {
			t.refused = fmt.Errorf("%s: %w", rec.At, err)
		}
	}
	return s.fixed && t.documents >= s.sample, nil
}

// unfit recognises what is wrong with a file as a whole, its header or its schema, and would be with any record of it.
func unfit(err error) bool {
	var e *row.Error
	return errors.As(err, &e) && e.Kind.Configuration()
}

// tooWide recognises the one error of a document that is no fault of the document.
func tooWide(err error) bool {
	var e *row.Error
	return errors.As(err, &e) && e.Kind == row.KindSchema
}

// destinations are the tables that were met, by name.
func (s *scan) destinations() []table.Destination {
	return slices.SortedFunc(maps.Keys(s.seen), func(a, b table.Destination) int {
		return compareText(a.String(), b.String())
	})
}

// Inferred is what was decided about one table.
type Inferred struct {
	Destination table.Destination
	*jsonrow.Inferred
}

// schemas decides about every table that was met. Tables none of whose records hold anything get no schema; their
// records fail one by one.
func (s *scan) schemas(p *Parsed) ([]Inferred, error) {
	var all []Inferred
	var faults []error
	for _, dst := range s.destinations() {
		t := s.seen[dst]
		inf, err := t.inference.schema()
		if err != nil && t.documents == 0 && t.refused != nil {
			faults = append(faults, fmt.Errorf("infer the schema of %s: no record can be read, the first is %w; if the input has another format, name it (source.files.format, --format)", dst, t.refused))
			continue
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("infer the schema of %s from %d records: %w", dst, t.documents, err))
			continue
		}
		all = append(all, Inferred{dst, inf})
	}
	if err := p.met(all); err != nil {
		return nil, err
	}
	for _, inf := range all {
		faults = append(faults, namedColumns(inf.Destination, inf.Inferred, p.Sink.BigQuery.Create))
	}
	return all, errors.Join(faults...)
}

// namedColumns sees to it that the columns that partition and cluster a table are there, also where a destination's
// records never had a value for them, and that they are of a type that can. That a column is one that records have is
// checked before: see met.
func namedColumns(dst table.Destination, inf *jsonrow.Inferred, c Create) error {
	if c.Partition != nil && c.Partition.Field != "" {
		column := addColumn(inf, c.Partition.Field, table.Timestamp, "create.partition.field names it and no sampled record has a value")
		if !partitions(column) {
			return fmt.Errorf("%s: create.partition.field names the column %s, which the records make %s: expected DATE or TIMESTAMP; "+
				"name another field, or give the schema in a file", dst, column.Name, spelled(column))
		}
	}
	for _, name := range c.Cluster {
		column := addColumn(inf, name, table.String, "create.cluster names it and no sampled record has a value")
		if !clusters(column) {
			return fmt.Errorf("%s: create.cluster names the column %s, which the records make %s: tables cannot be clustered by that; "+
				"name another field, or give the schema in a file", dst, column.Name, spelled(column))
		}
	}
	return nil
}

// met holds the columns that tables are partitioned and clustered by to the fields that were met, in the records of any of
// the tables: a column that no record has would be empty for ever.
func (p *Parsed) met(all []Inferred) error {
	var names []string
	for _, inf := range all {
		for _, f := range inf.Mapping.Schema.Fields {
			names = append(names, f.Name)
		}
		names = append(names, inf.NoColumn...)
	}
	const key = "sink.bigquery.create."
	c := p.Sink.BigQuery.Create
	var faults []error
	check := func(key, name string) {
		if len(all) == 0 || slices.ContainsFunc(names, func(n string) bool { return table.FoldName(n) == table.FoldName(name) }) {
			return
		}
		hint := ""
		if near := nearest.To(name, names); near != "" {
			hint = "did you mean " + near + "? "
		}
		faults = append(faults, p.fault(key, "no record that was looked at has a field %q: %sname a field that records have, look at more of them "+
			"(schema.infer.sample), or give the schema in a file", name, hint))
	}
	if c.Partition != nil && c.Partition.Field != "" {
		check(key+"partition.field", c.Partition.Field)
	}
	for i, name := range c.Cluster {
		check(fmt.Sprintf("%scluster[%d]", key, i), name)
	}
	return joinFaults(faults)
}

func spelled(f *table.Field) string {
	if f.Mode == table.Repeated {
		return "ARRAY<" + f.Type.String() + ">"
	}
	return f.Type.String()
}

// addColumn finds a column, and adds it when it is not there.
func addColumn(inf *jsonrow.Inferred, name string, t table.Type, why string) *table.Field {
	m := inf.Mapping
	if f := m.Schema.Field(name); f != nil {
		return f
	}
	grown := *m
	grown.Schema = &table.Schema{Fields: append(slices.Clip(m.Schema.Fields), table.Field{Name: name, Type: t})}
	if m.Keys != nil {
		k := *m.Keys
		k.Names = append(slices.Clip(k.Names), name)
		if k.Members != nil {
			k.Members = append(slices.Clip(k.Members), nil)
		}
		grown.Keys = &k
	}
	inf.Mapping = &grown
	inf.NoColumn = slices.DeleteFunc(slices.Clone(inf.NoColumn), func(p string) bool { return p == name })
	inf.Choices = slices.DeleteFunc(slices.Clone(inf.Choices), func(c jsonrow.Choice) bool {
		return c.Path == name && c.Decision == jsonrow.NoColumn
	})
	inf.Choices = append(inf.Choices, jsonrow.Choice{Path: name, Decision: Added, Column: name, Type: t, Why: why})
	return &grown.Schema.Fields[len(grown.Schema.Fields)-1]
}

// Added is the decision about a column that the job file names and the sample does not show.
const Added jsonrow.Decision = "added"
