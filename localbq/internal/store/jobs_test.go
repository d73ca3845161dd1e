package store

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

func wantReason(t *testing.T, err error, reason refusal.Reason) {
	t.Helper()
	if !refusal.Is(err, reason) {
		t.Errorf("got %v, want a refusal with %s", err, reason)
	}
}

// TestJobs: a job's record is written with its rows, and both come back together, from the log and from a checkpoint.
func TestJobs(t *testing.T) {
	o := Options{Dir: t.TempDir(), Clock: clock.NewManual(clock.Start)}
	s := open(t, o)
	makeDataset(t, s)
	rows := makeTable(t, s, table, &schema.Definition{Schema: numberedSchema})
	if err := s.ClaimJob(Job{Name: "p:US.a", Record: []byte(`{"state":1}`)}); err != nil {
		t.Fatal(err)
	}
	wantReason(t, s.ClaimJob(Job{Name: "p:US.a", Record: []byte(`{}`)}), refusal.Duplicate)
	w, err := rows.Write(Rows{Info: rows.Info(), Batches: list(numbered(0, 3)), Job: &Job{Name: "p:US.a", Record: []byte(`{"state":2}`)}})
	if err != nil {
		t.Fatal(err)
	}
	if w.Job != "p:US.a" {
		t.Errorf("the write was of job %q", w.Job)
	}
	// A write that is refused leaves its job's record as it was.
	_, err = rows.Write(Rows{Info: rows.Info(), Empty: true, Job: &Job{Name: "p:US.a", Record: []byte(`{"state":3}`)}})
	wantReason(t, err, refusal.Duplicate)
	want := map[string]Job{"p:US.a": {Name: "p:US.a", Record: []byte(`{"state":2}`), Version: w.After}}
	for _, leave := range []func(*testing.T, *Store){abandon, closeStore, closeStore} {
		if diff := cmp.Diff(want, s.Jobs()); diff != "" {
			t.Error(diff)
		}
		found, err := s.Table(table)
		if err != nil {
			t.Fatal(err)
		}
		if got := numbers(t, found, 0); len(got) != 3 {
			t.Errorf("rows are %v", got)
		}
		leave(t, s)
		s = open(t, o)
	}
	closeStore(t, s)
}

// TestWiderDefinition: rows may bring columns, in one version, for the definition that they were made from and no other.
func TestWiderDefinition(t *testing.T) {
	o := Options{Dir: t.TempDir(), Clock: clock.NewManual(clock.Start)}
	s := open(t, o)
	makeDataset(t, s)
	rows := makeTable(t, s, table, &schema.Definition{Schema: columns("n", schema.Int64)})
	since := rows.Info()
	plain := numbered(0, 3)
	put(t, rows, array.NewRecordBatch(since.Schema.Arrow(), plain.Columns()[:1], 3))

	wide := &schema.Definition{Schema: numberedSchema}
	write := func(d *schema.Definition) error {
		_, err := rows.Write(Rows{Definition: d, Since: since, Batches: list(numbered(3, 2))})
		return err
	}
	narrow := numbered(3, 2)
	_, err := rows.Write(Rows{Definition: &schema.Definition{Schema: columns("x", schema.Int64, "s", schema.String)}, Since: since, Batches: list(narrow)})
	wantReason(t, err, refusal.Invalid)
	if err := write(wide); err != nil {
		t.Fatal(err)
	}
	wantReason(t, write(wide), refusal.BackendError) // the definition has moved on
	for range 2 {
		found, err := s.Table(table)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(upTo(5), numbers(t, found, 0)); diff != "" {
			t.Error(diff)
		}
		closeStore(t, s)
		s = open(t, o)
	}
	closeStore(t, s)
}
