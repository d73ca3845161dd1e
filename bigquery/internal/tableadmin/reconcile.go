package tableadmin

import (
	"context"
	"errors"
	"fmt"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/retry"
)

// ErrUpdateRaceLost is found in the error of a table that others changed at the same moment, each time it was tried.
var ErrUpdateRaceLost = errors.New("others changed the table each time")

// ErrNotChangeable is found in the error of a view, an external table, a snapshot: their columns are not changed here.
var ErrNotChangeable = errors.New("its schema cannot be changed")

// Outcome is what became of a table that was to take rows of a schema.
type Outcome uint8

const (
	Unchanged Outcome = iota // it takes them as it is
	Updated                  // its schema was changed
	Created                  // it was not there
)

func (o Outcome) String() string { return [...]string{"unchanged", "updated", "created"}[o] }

// Wanted is what a table is to take.
type Wanted struct {
	Schema *table.Schema
	Allow  table.UnionOptions
	// Create makes the table when it does not exist; nil means that this may not be done.
	Create func(context.Context) error
	// Changed, unless nil, is told how the table was changed, a phrase for each column.
	Changed func([]string)
}

// Reconcile changes a table as far as w allows so that it takes rows of w.Schema: it reads the table, works out the union
// of the two schemas, and writes that back under the condition that nobody else has changed the table in between. A race
// that is lost is run again, five times in all. Writers that do this at the same time come to the same schema.
//
// The error of a table that does not exist and may not be created is ErrAbsent, of schemas without a union table.ErrUnion.
// Needs bigquery.tables.get and bigquery.tables.update. What columns have beside what table.Field holds stays.
func (a *Admin) Reconcile(ctx context.Context, dst table.Destination, w Wanted) (Outcome, error) {
	for round := 1; ; round++ {
		live, err := a.liveSchema(ctx, dst)
		if errors.Is(err, ErrAbsent) && w.Create != nil {
			return Created, w.Create(ctx)
		}
		if err != nil {
			return Unchanged, err
		}
		next, changes, err := live.widened(w)
		if err != nil {
			return Unchanged, fmt.Errorf("change the schema of %s: %w", dst, err)
		}
		if next == nil {
			return Unchanged, nil
		}
		lost, err := a.patchSchema(ctx, dst, live.etag, next)
		if err != nil {
			return Unchanged, err
		}
		if lost == nil {
			a.log.InfoContext(ctx, "table changed", "destination", dst.String(), "changes", changes)
			if w.Changed != nil {
				w.Changed(changes)
			}
			return Updated, nil
		}
		if retry.SchemaRace.Spent(round) {
			return Unchanged, fmt.Errorf("change the schema of %s: %w: %d rounds, the last of which: %w", dst, ErrUpdateRaceLost, round, lost)
		}
		if err := a.pauseRace(ctx, dst, round, lost); err != nil {
			return Unchanged, err
		}
	}
}

func (a *Admin) pauseRace(ctx context.Context, dst table.Destination, round int, lost error) error {
	delay := a.pacer.Delay(retry.SchemaRace, round)
	a.log.InfoContext(ctx, "table was changed by others at the same time: trying again", "destination", dst.String(),
		"attempt", round, "of", retry.SchemaRace.Attempts, "backoff", delay, "cause", lost)
	return a.pacer.Pause(ctx, delay, "change the schema of "+dst.String()+" again")
}

// live is a table's schema as the service has it.
type live struct {
	kind, etag string
	schema     *bqrest.TableSchema
}

func (a *Admin) liveSchema(ctx context.Context, dst table.Destination) (*live, error) {
	var t *bqrest.Table
	err := a.call(ctx, "read the schema of "+dst.String(), func(ctx context.Context) (err error) {
		t, err = a.rest.Tables.Get(dst.Project, dst.Dataset, plainID(dst)).View("BASIC").Context(ctx).Do()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &live{t.Type, t.Etag, t.Schema}, nil
}

// widened is the schema to be sent, nil when the table takes such rows already, and what is new about it.
func (l *live) widened(w Wanted) (next *bqrest.TableSchema, changes []string, err error) {
	if l.kind != "TABLE" && l.kind != "" {
		return nil, nil, fmt.Errorf("%w: it is a %s, expected a table", ErrNotChangeable, l.kind)
	}
	have, err := FromREST(l.schema)
	if err != nil {
		return nil, nil, err
	}
	union, err := have.Union(w.Schema, w.Allow)
	if err != nil {
		return nil, nil, err
	}
	if union.Equal(have) {
		return nil, nil, nil
	}
	next = &bqrest.TableSchema{}
	if l.schema != nil {
		*next = *l.schema
	}
	next.Fields = overlay(next.Fields, union.Fields)
	return next, phrases(have.Diff(union)), nil
}

// phrases tell what a union adds to what was there.
func phrases(differences []table.Difference) []string {
	out := make([]string, len(differences))
	for i, d := range differences {
		switch d.Change {
		case table.Added:
			out[i] = "column " + d.Path + " added"
		case table.Remoded:
			out[i] = "column " + d.Path + " made NULLABLE"
		default:
			out[i] = d.String()
		}
	}
	return out
}

// overlay puts a union onto the REST form of what was there: a schema that is sent replaces the one in force, so that an
// attribute left out would be an attribute removed. What the generated client knows of a column is kept, far more than
// table.Field holds. Fields of a union begin with those that were there, in their order.
func overlay(have []*bqrest.TableFieldSchema, union []table.Field) []*bqrest.TableFieldSchema {
	out := make([]*bqrest.TableFieldSchema, len(union))
	for i := range union {
		if i >= len(have) {
			out[i] = fieldToREST(&union[i])
			continue
		}
		f := *have[i]
		if mode, err := table.ParseMode(f.Mode); err != nil || mode != union[i].Mode {
			f.Mode = union[i].Mode.String()
		}
		f.Fields = overlay(f.Fields, union[i].Fields)
		out[i] = &f
	}
	return out
}

// patchSchema sends a schema and nothing else. lost tells why the table was not changed though it may be after another look.
func (a *Admin) patchSchema(ctx context.Context, dst table.Destination, etag string, s *bqrest.TableSchema) (lost, err error) {
	err = a.call(ctx, "change the schema of "+dst.String(), func(ctx context.Context) error {
		c := a.rest.Tables.Patch(dst.Project, dst.Dataset, plainID(dst), &bqrest.Table{Schema: s}).Context(ctx)
		c.Header().Set("If-Match", etag)
		_, err := c.Do()
		switch classify(err) {
		case exists, stale, limited:
			lost = err
			return nil
		}
		return err
	})
	return lost, err
}
