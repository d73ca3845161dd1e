package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/files"
	"github.com/millrace-dev/millrace/stream"
)

// Survey is what a job reads and what it would write to, as its file and a look at its input tell. Nothing is written for it.
type Survey struct {
	Files []string // that are read, "-" is standard input
	Bytes int64    // of them, as they are stored; 0 where that is not known
	From  string   // what is read of BigQuery, "" where files are

	// Table is the table as the job file names it, and Fixed says that there are no placeholders in it.
	Table string
	Fixed bool
	// Tables are the tables that records were met for, by name, or the one that is named.
	Tables []Surveyed
	// Whole says that all of the input was looked through. Looked is how many records were, and Lost how many of them led to no
	// table: they are for the failure policy.
	Whole        bool
	Looked, Lost int
}

// Surveyed is one table of a survey.
type Surveyed struct {
	Destination table.Destination
	// Schema is what rows have; nil where only records tell that cannot be looked at before the job runs.
	Schema *table.Schema
	// Inferred is how the schema came about, nil where it was not inferred.
	Inferred *Inferred
	Records  int // that were met for it
}

// surveyBytes is how much input is looked through for the tables that records lead to, where nothing else asks for it.
const surveyBytes = 64 << 20

// Survey looks at a job without running it. It reads input where Prepare does, and asks the service for schemas only where
// they are those of tables that exist. Standard input is left alone: a job that follows would miss what was read of it.
func (p *Parsed) Survey(ctx context.Context, s Surroundings) (*Survey, error) {
	out, err := p.survey(ctx, s)
	if err != nil {
		return nil, p.inPaths(p.Keyed(err))
	}
	return out, nil
}

func (p *Parsed) survey(ctx context.Context, s Surroundings) (*Survey, error) {
	b := p.Sink.BigQuery
	out := &Survey{Table: b.Table}
	dst, err := table.ParseDestination(b.Table)
	out.Fixed = err == nil
	if p.Source.BigQuery != nil {
		return out, p.surveyRows(ctx, out, dst, s)
	}
	source, err := p.source(nil)
	if err != nil {
		return nil, err
	}
	if out.Files, err = source.Paths(); err != nil {
		return nil, err
	}
	if p.readsStdin() {
		return out, p.surveyUnread(ctx, out, dst, s)
	}
	if e, err := source.NewEnumerator(ctx, stream.EnumeratorContext{}); err != nil {
		return nil, err
	} else if sized, ok := e.(interface{ Size() (int64, bool) }); ok {
		out.Bytes, _ = sized.Size()
	}
	pl, err := p.prepare(ctx, s)
	if err != nil {
		return nil, err
	}
	return out, pl.surveyRead(ctx, out, dst)
}

func (p *Parsed) readsStdin() bool {
	if p.Source.Files == nil {
		return false
	}
	paths := p.Source.Files.Paths
	return len(paths) == 1 && paths[0] == files.Stdin
}

// surveyRows tells of rows of BigQuery: what they are and, where no field of theirs decides, where they go.
func (p *Parsed) surveyRows(ctx context.Context, out *Survey, dst table.Destination, s Surroundings) error {
	out.From = p.Source.BigQuery.From()
	pl, err := p.prepare(ctx, s)
	if err != nil || !out.Fixed {
		return err
	}
	schema, err := pl.serializer.Schema(dst)
	out.Tables, out.Whole = []Surveyed{{Destination: dst, Schema: schema}}, true
	return err
}

// surveyUnread tells what there is to tell without a look at the input.
func (p *Parsed) surveyUnread(ctx context.Context, out *Survey, dst table.Destination, s Surroundings) error {
	if !out.Fixed {
		return p.CheckSchema()
	}
	t := Surveyed{Destination: dst}
	if schema := p.Sink.BigQuery.Schema; schema.Infer == nil {
		pl, err := p.prepare(ctx, s)
		if err != nil {
			return err
		}
		if t.Schema, err = pl.serializer.Schema(dst); err != nil {
			return err
		}
	}
	out.Tables = []Surveyed{t}
	return nil
}

// surveyRead tells what the input leads to.
func (pl *Pipeline) surveyRead(ctx context.Context, out *Survey, dst table.Destination) error {
	looked := pl.looked
	if looked == nil && !out.Fixed {
		var err error
		if looked, err = pl.lookForTables(ctx); err != nil {
			return err
		}
	}
	destinations := map[table.Destination]int{}
	if out.Fixed {
		destinations[dst] = 0
	}
	if looked != nil {
		out.Whole, out.Lost, out.Looked = looked.whole, looked.lost, looked.lost
		for dst, t := range looked.seen {
			destinations[dst] = t.records
			out.Looked += t.records
		}
	}
	for _, dst := range slices.SortedFunc(maps.Keys(destinations), func(a, b table.Destination) int { return compareText(a.String(), b.String()) }) {
		t := Surveyed{Destination: dst, Records: destinations[dst]}
		for i := range pl.Inferred {
			if pl.Inferred[i].Destination == dst {
				t.Inferred = &pl.Inferred[i]
			}
		}
		var unknown *row.Error
		var err error
		if t.Schema, err = pl.serializer.Schema(dst); err != nil && !errors.As(err, &unknown) {
			return fmt.Errorf("schema of %s: %w", dst, err)
		}
		out.Tables = append(out.Tables, t)
	}
	return nil
}

// lookForTables finds the tables that the beginning of the input leads to.
func (pl *Pipeline) lookForTables(ctx context.Context) (*scan, error) {
	records, err := pl.file.records()
	if err != nil {
		return nil, err
	}
	to, _, err := resolver(pl.file.Sink.BigQuery.Table, records)
	if err != nil {
		return nil, err
	}
	s := &scan{source: pl.source, to: to, limit: surveyBytes}
	return s, s.run(ctx)
}

// Options are those of the sink, with everything that the job file says.
func (p *Parsed) Options() bigquery.SinkOptions { return p.Sink.BigQuery.sinkOptions() }
