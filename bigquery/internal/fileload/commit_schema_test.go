package fileload_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
)

// fieldsOf are the names and modes of columns.
func fieldsOf(s *bqrest.TableSchema) (out []string) {
	for _, f := range s.Fields {
		out = append(out, strings.TrimSuffix(f.Name+" "+f.Mode, " NULLABLE"))
	}
	return out
}

func required(name string, t table.Type) table.Field {
	return table.Field{Name: name, Type: t, Mode: table.Required}
}

func TestTablesThatAreMissing(t *testing.T) {
	t.Parallel()
	t.Run("FL-57 and may not be made", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.cfg.Create.Never = true
		err := b.commit(b.stage(dst("t"), "a", 1))
		if !errors.Is(err, tableadmin.ErrTableMissing) || !strings.Contains(err.Error(), "p.d.t") {
			t.Errorf("got %v", err)
		}
		if loads, _ := b.meter.of("load_jobs_submitted"); loads != 0 || len(b.calls("jobs.insert", "tables.insert")) > 0 {
			t.Errorf("%d loads, calls %v", loads, b.calls())
		}
	})
	t.Run("FL-58 are made as they are to be, before the job", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.rows.of[dst("t")] = columns(field("day", table.Date), field("sku", table.String))
		b.cfg.Create.Options = func(table.Destination) (table.CreateOptions, error) {
			return table.CreateOptions{Partition: table.Partition{Type: table.PartitionDay, Field: "day"}, Cluster: []string{"sku"}}, nil
		}
		b.must(b.stage(dst("t"), "a", 1))
		made := b.table(dst("t"))
		if made.TimePartitioning == nil || made.TimePartitioning.Field != "day" || made.Clustering == nil || !slices.Equal(made.Clustering.Fields, []string{"sku"}) {
			t.Errorf("table is %+v, %+v", made.TimePartitioning, made.Clustering)
		}
		if calls := b.calls("tables.insert", "jobs.insert"); !slices.Equal(calls, []string{"tables.insert", "jobs.insert"}) {
			t.Errorf("calls %v", calls)
		}
		if r := b.cfg.Ledger.Reports(); len(r) != 1 || !r[0].Created {
			t.Errorf("reports %+v", r)
		}
	})
	t.Run("FL-58 somebody else makes it first: that schema counts", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.rows.of[dst("t")] = columns(field("more", table.String))
		hold := localbq.Fault{Match: localbq.FaultMatch{Method: "tables.insert"}, Action: localbq.FaultAction{Barrier: true}}
		b.arm(hold)
		done := make(chan error, 1)
		staged := b.stage(dst("t"), "a", 1)
		go func() { done <- b.commit(staged) }()
		held, err := b.bq.Faults().NextBarrier(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := b.bq.CreateTable("d.t", tableadmin.ToREST(columns())); err != nil {
			t.Fatal(err)
		}
		held.Release()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := fieldsOf(b.job(b.jobIDs()[0]).Configuration.Load.Schema); !slices.Equal(got, []string{"id"}) {
			t.Errorf("the load has the columns %v", got)
		}
		b.holds(dst("t"), 1)
		if len(b.log.with("level=WARN", "more", "p.d.t")) != 1 {
			t.Errorf("%q", b.log.with("WARN"))
		}
	})
	t.Run("FL-64 a limit on creations is waited out", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.arm(answer("tables.insert", localbq.FaultMatch{}, 403, "rateLimitExceeded", 3))
		b.must(b.stage(dst("t"), "a", 1))
		b.holds(dst("t"), 1)
	})
	t.Run("FL-64 a quota is not", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.arm(answer("tables.insert", localbq.FaultMatch{}, 403, "quotaExceeded", localbq.FaultAlways))
		if err := b.commit(b.stage(dst("t"), "a", 1)); err == nil || len(b.calls("tables.insert")) != 1 {
			t.Errorf("got %v after %v", err, b.calls("tables.insert"))
		}
	})
	t.Run("with their dataset, when that may be made too", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.cfg.Create.Datasets = true
		to := table.Destination{Project: "p", Dataset: "new", Table: "t"}
		b.must(b.stage(to, "a", 1))
		b.holds(to, 1)
	})
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	wide := columns(required("f2", table.String))
	t.Run("FL-59 updates are off: the table's schema is sent, and one warning", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.createTable(dst("t"), columns())
		b.rows.of[dst("t")] = columns(field("f2", table.String))
		b.leaves()
		b.must(b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2), b.stage(dst("t"), "c", 3))
		b.holds(dst("t"), 1, 2, 3)
		for _, id := range b.jobIDs() {
			if l := b.job(id).Configuration.Load; l != nil && !slices.Equal(fieldsOf(l.Schema), []string{"id"}) {
				t.Errorf("%s has the columns %v", id, fieldsOf(l.Schema))
			}
		}
		if lines := b.log.with("level=WARN", "f2", "p.d.t"); len(lines) != 1 {
			t.Errorf("warnings %q", lines)
		}
		if n := len(b.calls("tables.patch")); n > 0 {
			t.Errorf("the table was patched %d times", n)
		}
	})
	t.Run("FL-60 new columns are added, as NULLABLE", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.createTable(dst("t"), columns())
		b.rows.of[dst("t")] = wide
		b.cfg.Update.AllowNewFields = true
		b.must(b.stageAs(dst("t"), "a", columns(), 1))
		want := []string{"id", "f2"}
		if got := fieldsOf(b.table(dst("t")).Schema); !slices.Equal(got, want) {
			t.Errorf("the table has %v", got)
		}
		load := b.job(b.jobIDs()[0]).Configuration.Load
		if !slices.Equal(fieldsOf(load.Schema), want) || !slices.Equal(load.SchemaUpdateOptions, []string{"ALLOW_FIELD_ADDITION"}) {
			t.Errorf("the load has %v and %v", fieldsOf(load.Schema), load.SchemaUpdateOptions)
		}
		if r := b.cfg.Ledger.Reports(); len(r) != 1 || len(r[0].Changes) != 1 {
			t.Errorf("reports %+v", r)
		}
	})
	t.Run("FL-61 WRITE_EMPTY: patched, and no native option", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.createTable(dst("t"), columns())
		b.rows.of[dst("t")] = wide
		b.cfg.Update.AllowNewFields = true
		b.cfg.Options.Plan.Disposition = loadplan.Empty
		b.must(b.stageAs(dst("t"), "a", columns(), 1))
		load := b.job(b.jobIDs()[0]).Configuration.Load
		if len(b.calls("tables.patch")) != 1 || len(load.SchemaUpdateOptions) > 0 || load.WriteDisposition != "WRITE_EMPTY" {
			t.Errorf("patches %v, load %+v", b.calls("tables.patch"), load)
		}
	})
	t.Run("FL-61 WRITE_TRUNCATE: not patched, the serializer's schema is sent", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.createTable(dst("t"), columns(field("old", table.String)))
		b.rows.of[dst("t")] = wide
		b.cfg.Update.AllowNewFields = true
		b.cfg.Options.Plan.Disposition = loadplan.Truncate
		b.must(b.stageAs(dst("t"), "a", wide))
		load := b.job(b.jobIDs()[0]).Configuration.Load
		if len(b.calls("tables.patch")) != 0 || !slices.Equal(fieldsOf(load.Schema), []string{"id", "f2 REQUIRED"}) || len(load.SchemaUpdateOptions) > 0 {
			t.Errorf("patches %v, load %+v of %v", b.calls("tables.patch"), load, fieldsOf(load.Schema))
		}
	})
	t.Run("FL-62 one look and one patch for all partitions, in each commit", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.createTable(dst("t"), columns())
		b.rows.of[dst("t")] = wide
		b.cfg.Update.AllowNewFields = true
		b.leaves()
		before := len(b.calls())
		b.must(b.stageAs(dst("t"), "a", columns(), 1).WithCheckpoint(1), b.stageAs(dst("t"), "b", columns(), 2).WithCheckpoint(1))
		if calls := b.calls("tables.get", "tables.patch"); !slices.Equal(calls, []string{"tables.get", "tables.patch"}) {
			t.Errorf("calls %v of %v", calls, b.calls()[before:])
		}
		b.must(b.stageAs(dst("t"), "c", columns(), 3).WithCheckpoint(2), b.stageAs(dst("t"), "e", columns(), 4).WithCheckpoint(2))
		if calls := b.calls("tables.get", "tables.patch"); !slices.Equal(calls, []string{"tables.get", "tables.patch", "tables.get"}) {
			t.Errorf("calls %v", calls)
		}
		b.holds(dst("t"), 1, 2, 3, 4)
	})
	t.Run("FL-63 lost races are run again", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.createTable(dst("t"), columns())
		b.rows.of[dst("t")] = wide
		b.cfg.Update.AllowNewFields = true
		b.arm(answer("tables.patch", localbq.FaultMatch{}, 412, "conditionNotMet", 2))
		b.must(b.stageAs(dst("t"), "a", columns(), 1))
		if n := len(b.calls("tables.patch")); n != 3 {
			t.Errorf("%d attempts", n)
		}
	})
	t.Run("FL-63 but not for ever", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.createTable(dst("t"), columns())
		b.rows.of[dst("t")] = wide
		b.cfg.Update.AllowNewFields = true
		b.arm(answer("tables.patch", localbq.FaultMatch{}, 412, "conditionNotMet", localbq.FaultAlways))
		err := b.commit(b.stageAs(dst("t"), "a", columns(), 1))
		if !errors.Is(err, tableadmin.ErrUpdateRaceLost) || !strings.Contains(err.Error(), "10 ") || len(b.calls("tables.patch")) != 10 || permanent(err) {
			t.Errorf("got %v after %d attempts", err, len(b.calls("tables.patch")))
		}
	})
	t.Run("FL-63 another type", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.createTable(dst("t"), &table.Schema{Fields: []table.Field{field("id", table.String)}})
		b.cfg.Update.AllowNewFields = true
		refuses(t, b.commit(b.stage(dst("t"), "a", 1)), table.ErrUnion)
		if len(b.calls("tables.patch", "jobs.insert")) > 0 {
			t.Errorf("calls %v", b.calls())
		}
	})
	t.Run("FL-81 a partition of a table", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		b.rows.of[dst("t$20260101")] = columns(field("day", table.Date))
		b.cfg.Create.Options = func(table.Destination) (table.CreateOptions, error) {
			return table.CreateOptions{Partition: table.Partition{Type: table.PartitionDay}}, nil
		}
		b.must(b.stage(dst("t$20260101"), "a", 1))
		b.holds(dst("t"), 1)
		if load := b.job(b.jobIDs()[0]).Configuration.Load; load.DestinationTable.TableId != "t$20260101" {
			t.Errorf("load into %s", load.DestinationTable.TableId)
		}
		if b.table(dst("t")).TimePartitioning == nil {
			t.Error("the table has no partitions")
		}
		b.leaves()
		b.must(b.stage(dst("t$20260101"), "b", 2), b.stage(dst("t$20260101"), "c", 3))
		b.holds(dst("t"), 1, 2, 3)
		b.cfg.Options.Plan.Disposition = loadplan.Truncate
		b.must(b.stage(dst("t$20260101"), "d", 4).WithCheckpoint(1), b.stage(dst("t$20260101"), "e", 5).WithCheckpoint(1))
		b.holds(dst("t"), 4, 5)
		b.rows.of[dst("t$20260101")] = columns(field("day", table.Date), field("more", table.String))
		b.cfg.Update.AllowNewFields = true
		b.must(b.stage(dst("t$20260101"), "f", 6).WithCheckpoint(2), b.stage(dst("t$20260101"), "g", 7).WithCheckpoint(2))
		b.holds(dst("t"), 6, 7)
		if got := fieldsOf(b.table(dst("t")).Schema); !slices.Equal(got, []string{"id", "day", "more"}) {
			t.Errorf("the table has %v", got)
		}
		for _, id := range b.jobIDs() {
			if l := b.job(id).Configuration.Load; l != nil && l.TimePartitioning != nil {
				t.Errorf("%s makes a table with partitions, which no partition takes", id)
			}
		}
	})
	t.Run("a serializer that fails ends the job", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		staged := b.stage(dst("t"), "a", 1)
		wrong := errors.New("no schema")
		b.rows.fails = wrong
		refuses(t, b.commit(staged), wrong)
	})
	t.Run("a serializer that panics does not hang", func(t *testing.T) {
		b := newBench(t, localbq.Config{})
		staged := []loadplan.Committable{b.stage(dst("t"), "a", 1), b.stage(dst("u"), "a", 2)}
		b.rows.panics = dst("u")
		defer func() {
			if v := recover(); v != "no schema" {
				t.Errorf("panic %v", v)
			}
		}()
		err := b.commit(staged...)
		t.Errorf("no panic: %v", err)
	})
}

// TestLayouts brings rows by way of temporary tables into tables that are laid out in some way: they are so still.
func TestLayouts(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]table.CreateOptions{
		"days and clusters":     {Partition: table.Partition{Type: table.PartitionDay, Field: "day"}, Cluster: []string{"sku"}},
		"filter that is needed": {Partition: table.Partition{Type: table.PartitionMonth, Field: "day", RequireFilter: true}},
		"ranges":                {Partition: table.Partition{Type: table.PartitionRange, Field: "id", Start: 0, End: 100, Interval: 10}},
		"ingestion":             {Partition: table.Partition{Type: table.PartitionHour}},
	} {
		for _, d := range []loadplan.Disposition{loadplan.Append, loadplan.Truncate} {
			t.Run(name+" "+d.String(), func(t *testing.T) {
				b := newBench(t, localbq.Config{})
				b.rows.of[dst("t")] = columns(field("day", table.Date), field("sku", table.String))
				b.cfg.Create.Options = func(table.Destination) (table.CreateOptions, error) { return o, nil }
				b.cfg.Options.Plan.Disposition = d
				b.leaves()
				b.must(b.stage(dst("t"), "a", 1), b.stage(dst("t"), "b", 2))
				b.holds(dst("t"), 1, 2)
				made := b.table(dst("t"))
				time, ranges := made.TimePartitioning, made.RangePartitioning
				if (time != nil) != (o.Partition.Type != table.PartitionRange) || (ranges != nil) != (o.Partition.Type == table.PartitionRange) ||
					(made.Clustering != nil) != (o.Cluster != nil) {
					t.Errorf("partitioned by %+v, %+v, clustered by %+v", time, ranges, made.Clustering)
				}
			})
		}
	}
}
