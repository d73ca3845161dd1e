package tableadmin

import (
	"context"
	"errors"
	"fmt"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/internal/restcall"
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
	// Race paces rounds that follow lost races; the zero value is retry.SchemaRace.
	Race retry.Schedule
	// Changed, unless nil, is told how the table was changed, a phrase for each column.
	Changed func([]string)
}

// Reconcile changes a table as far as w allows so that it takes rows of w.Schema: it reads the table, works out the union
// of the two schemas, and writes that back under the condition that nobody else has changed the table in between. A race
// that is lost is run again, as w.Race says. Writers that do this at the same time come to the same schema.
//
// The error of a table that does not exist and may not be created is ErrAbsent, of schemas without a union table.ErrUnion.
// Needs bigquery.tables.get and bigquery.tables.update. What columns have beside what table.Field holds stays.
func (a *Admin) Reconcile(ctx context.Context, dst table.Destination, w Wanted) (Outcome, error) {
	outcome, _, err := a.reconcile(ctx, dst, w)
	return outcome, err
}

// Widen is Reconcile, and tells the table as it is then; nil when w.Create was called.
func (a *Admin) Widen(ctx context.Context, dst table.Destination, w Wanted) (Outcome, *Description, error) {
	outcome, t, err := a.reconcile(ctx, dst, w)
	if err != nil || t == nil {
		return outcome, nil, err
	}
	d, err := describe(dst, t)
	return outcome, d, err
}

func (a *Admin) reconcile(ctx context.Context, dst table.Destination, w Wanted) (Outcome, *bqrest.Table, error) {
	race := w.Race
	if race == (retry.Schedule{}) {
		race = retry.SchemaRace
	}
	for round := 1; ; round++ {
		live, err := a.liveTable(ctx, dst)
		if errors.Is(err, ErrAbsent) && w.Create != nil {
			return Created, nil, w.Create(ctx)
		}
		if err != nil {
			return Unchanged, nil, err
		}
		next, changes, err := widened(live, w)
		if err != nil {
			return Unchanged, nil, fmt.Errorf("change the schema of %s: %w", dst, err)
		}
		if next == nil {
			return Unchanged, live, nil
		}
		lost, err := a.patchSchema(ctx, dst, live.Etag, next)
		if err != nil {
			return Unchanged, nil, err
		}
		if lost == nil {
			live.Schema = next
			a.log.InfoContext(ctx, "table changed", "destination", dst.String(), "changes", changes)
			if w.Changed != nil {
				w.Changed(changes)
			}
			return Updated, live, nil
		}
		if race.Spent(round) {
			return Unchanged, nil, fmt.Errorf("change the schema of %s: %w: %d rounds, the last of which: %w", dst, ErrUpdateRaceLost, round, lost)
		}
		if err := a.pauseRace(ctx, dst, race, round, lost); err != nil {
			return Unchanged, nil, err
		}
	}
}

func (a *Admin) pauseRace(ctx context.Context, dst table.Destination, race retry.Schedule, round int, lost error) error {
	delay := a.pacer.Delay(race, round)
	a.log.InfoContext(ctx, "table was changed by others at the same time: trying again", "destination", dst.String(),
		"attempt", round, "of", race.Attempts, "backoff", delay, "cause", lost)
	return a.pacer.Pause(ctx, delay, "change the schema of "+dst.String()+" again")
}

// liveTable is a table as the service has it, without figures.
func (a *Admin) liveTable(ctx context.Context, dst table.Destination) (t *bqrest.Table, err error) {
	err = a.calls.Do(ctx, "read the schema of "+dst.String(), func(ctx context.Context) (err error) {
		t, err = a.rest.Tables.Get(dst.Project, dst.Dataset, plainID(dst)).View("BASIC").Context(ctx).Do()
		return err
	})
	return t, err
}

// widened is the schema to be sent, nil when the table takes such rows already, and what is new about it.
func widened(live *bqrest.Table, w Wanted) (next *bqrest.TableSchema, changes []string, err error) {
	if live.Type != "TABLE" && live.Type != "" {
		return nil, nil, fmt.Errorf("%w: it is a %s, expected a table", ErrNotChangeable, live.Type)
	}
	have, err := FromREST(live.Schema)
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
	if live.Schema != nil {
		*next = *live.Schema
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
	err = a.calls.Do(ctx, "change the schema of "+dst.String(), func(ctx context.Context) error {
		c := a.rest.Tables.Patch(dst.Project, dst.Dataset, plainID(dst), &bqrest.Table{Schema: s}).Context(ctx)
		c.Header().Set("If-Match", etag)
		_, err := c.Do()
		switch restcall.Classify(err) {
		case restcall.Exists, restcall.Stale, restcall.Limited:
			lost = err
			return nil
		}
		return err
	})
	return lost, err
}
