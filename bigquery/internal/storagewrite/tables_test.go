package storagewrite

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// widening allows tables to be changed.
func widening(c *Config) {
	c.Update = table.UnionOptions{AllowNewFields: true, AllowFieldRelaxation: true}
}

// wideningWithin is widening with other budgets of recovery and schema wait.
func wideningWithin(recovery, wait int) func(*Config) {
	return func(c *Config) {
		widening(c)
		c.Options.Recovery.Attempts, c.SchemaWait.Attempts = recovery, wait
	}
}

func answering(answers ...string) *far { return &far{appends: map[string][]string{"": answers}} }

func repeated(a string, n int, last ...string) []string {
	return append(slices.Repeat([]string{a}, n), last...)
}

func TestMismatch(t *testing.T) {
	t.Parallel()
	t.Run("SW-70_widened", func(t *testing.T) {
		b := newBench(t, answering("MM", "ok"), widening)
		b.write("aa")
		b.flush()
		b.sees("B=2 R=1 S=1 U=1 X[INVALID_ARGUMENT]=1")
		if len(b.far.opened) != 2 || len(b.far.changed) != 1 || len(b.sleeps) != 0 {
			t.Errorf("opened %v, changed %v, slept %v", b.far.opened, b.far.changed, b.sleeps)
		}
		if got := b.far.changed[0]; !got.Allow.AllowNewFields || !got.Allow.AllowFieldRelaxation || got.Create == nil {
			t.Errorf("asked for %+v", got)
		}
	})
	t.Run("SW-71_wide enough already", func(t *testing.T) {
		b := newBench(t, answering("MM", "MM", "ok"), widening)
		b.far.changes = []string{"unchanged"}
		b.write("aa")
		b.flush()
		b.sees("B=2 R=2 S=1 X[INVALID_ARGUMENT]=2")
		if len(b.sleeps) != 1 || b.sleeps[0] != time.Minute {
			t.Errorf("slept %v", b.sleeps)
		}
	})
	t.Run("SW-71_SW-70_no second look", func(t *testing.T) {
		b := newBench(t, answering("MM", "ok"), widening)
		b.far.changes = []string{"unchanged"}
		b.write("aa")
		b.flush()
		b.sees("B=2 R=1 S=1 X[INVALID_ARGUMENT]=1")
		if len(b.far.changed) != 1 {
			t.Errorf("asked %d times", len(b.far.changed))
		}
	})
	t.Run("SW-74_always", func(t *testing.T) {
		b := newBench(t, answering("MM"), widening)
		b.write("aa")
		err := b.w.Flush(t.Context(), false)
		for _, want := range []error{ErrSchemaMismatch, retry.ErrBudgetSpent} {
			if !errors.Is(err, want) {
				t.Errorf("%v is no %v", err, want)
			}
		}
		for _, want := range []string{"p.d.t", "table schema was reconciled", "retry budget exhausted", "attempts=3", "run the job again later"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
		if e := new(AppendError); !errors.As(err, &e) || e.Permanent() || e.Verdict != KindSchemaMismatch {
			t.Errorf("%+v may pass", e)
		}
		b.sees("B=2 R=3 S=1 U=1 X[INVALID_ARGUMENT]=4")
	})
	t.Run("SW-85_transient failures keep the long budget", func(t *testing.T) {
		b := newBench(t, answering("MM", "UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE", "ok"), wideningWithin(3, 10))
		b.write("aa")
		b.flush()
		b.sees("B=2 R=5 S=1 U=1 X[INVALID_ARGUMENT]=1 X[UNAVAILABLE]=4")
	})
	t.Run("SW-51_rows are listed, updates on", func(t *testing.T) {
		b := newBench(t, answering("hold", "ok"), widening)
		b.write("aa", "bb")
		b.sendPending()
		b.far.answerWith(answer(mismatch, 0))
		b.flush()
		b.sees("B=4 R=1 S=2 U=1 X[INVALID_ARGUMENT]=1")
	})
	t.Run("SW-51_rows are listed, updates off", func(t *testing.T) {
		b := newBench(t, answering("hold", "ok"), nil)
		b.write("aa", "bb")
		b.sendPending()
		b.far.answerWith(answer(mismatch, 0))
		b.flush()
		b.sees("B=4 E=1 R=1 S=2 X[INVALID_ARGUMENT]=1")
		b.sent("t: aa bb", "t: bb")
	})
	t.Run("SW-80_updates off", func(t *testing.T) {
		b := newBench(t, answering("MM"), nil)
		b.write("aa")
		err := b.w.Flush(t.Context(), false)
		if !errors.Is(err, ErrSchemaMismatch) || errors.Is(err, retry.ErrBudgetSpent) {
			t.Errorf("got %v", err)
		}
		for _, want := range []string{"ALTER TABLE", "SchemaUpdate.AllowNewFields", "schemaUpdate.allowNewFields"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not name %s", err, want)
			}
		}
		if e := new(AppendError); !errors.As(err, &e) || !e.Permanent() {
			t.Error("the next attempt would be tried")
		}
		if len(b.far.changed) != 0 {
			t.Error("asked for a change")
		}
		b.sees("B=2 S=1 X[INVALID_ARGUMENT]=1")
	})
	t.Run("a table by its own fault does not hold up others", func(t *testing.T) {
		f := &far{appends: map[string][]string{"t": {"MM", "ok"}, "u": {"hold"}}}
		b := newBench(t, f, widening)
		for _, name := range []string{"u", "t"} {
			if err := b.writeTo(tableOf(name), "aa"); err != nil {
				t.Fatal(err)
			}
		}
		b.sendPending()
		b.write("bb")
		if got := slices.Repeat([]string{"t"}, 2); !slices.Equal(f.opened[1:], got) || len(f.held) != 1 {
			t.Errorf("opened %v, %d held", f.opened, len(f.held))
		}
		f.answer("ok")
		b.flush()
	})
}

func TestTablesThatCannotBeChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer    string
		is        error
		text      string
		permanent bool
	}{
		"SW-73_race lost":      {"race", tableadmin.ErrUpdateRaceLost, "", false},
		"SW-76_SW-77_no union": {"union", table.ErrUnion, "column a.b", true},
		"SW-84_denied":         {"PERMISSION_DENIED no right", nil, "no right", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, answering("MM"), widening)
			b.far.changes = []string{c.answer}
			b.write("aa")
			err := b.w.Flush(t.Context(), false)
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !errors.Is(err, ErrSchemaMismatch) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v", err)
			}
			if strings.Contains(err.Error(), "was reconciled") || errors.Is(err, retry.ErrBudgetSpent) {
				t.Errorf("%v claims too much", err)
			}
			if e := new(AppendError); !errors.As(err, &e) || e.Permanent() != c.permanent {
				t.Errorf("permanent is not %v", c.permanent)
			}
			b.sees("B=2 S=1 X[INVALID_ARGUMENT]=1")
			if again := b.writeTo(tableT, "bb"); again != err {
				t.Errorf("later: %v", again)
			}
		})
	}
	t.Run("SW-75_absent when it is read", func(t *testing.T) {
		b := newBench(t, answering("MM", "ok"), widening)
		b.far.changes = []string{"absent"}
		b.write("aa")
		b.flush()
		b.sees("B=2 R=1 S=1 T=1 X[INVALID_ARGUMENT]=1")
		if !b.ledger.Reports()[0].Created {
			t.Error("the report does not say so")
		}
	})
	t.Run("SW-75_absent, never create", func(t *testing.T) {
		b := newBench(t, answering("MM", "ok"), func(c *Config) { widening(c); never(c) })
		b.far.changes = []string{"absent"}
		b.write("aa")
		if err := b.w.Flush(t.Context(), false); !errors.Is(err, tableadmin.ErrAbsent) {
			t.Errorf("got %v", err)
		}
		b.sees("B=2 S=1 X[INVALID_ARGUMENT]=1")
	})
	t.Run("SW-75_absent, and cannot be created", func(t *testing.T) {
		b := newBench(t, answering("MM", "ok"), widening)
		b.far.changes, b.far.creates = []string{"absent"}, []string{"FAILED_PRECONDITION"}
		b.write("aa")
		if err := b.w.Flush(t.Context(), false); err == nil || !strings.Contains(err.Error(), "table creation was attempted") {
			t.Errorf("got %v", err)
		}
		b.sees("B=2 S=1 X[INVALID_ARGUMENT]=1")
	})
}

func TestMissingTableAfterAChange(t *testing.T) {
	t.Parallel()
	t.Run("SW-65_masked for good", func(t *testing.T) {
		b := newBench(t, answering("MM", "PERMISSION_DENIED"), wideningWithin(2, 20))
		b.write("aa")
		err := b.w.Flush(t.Context(), false)
		for _, want := range []string{"re-append to p.d.t", "attempts=2", "table creation was attempted", "table schema was reconciled"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
		b.sees("B=2 R=2 S=1 T=1 U=1 X[INVALID_ARGUMENT]=1 X[PERMISSION_DENIED]=2")
	})
	t.Run("SW-66_short budget, then the long one again", func(t *testing.T) {
		b := newBench(t, answering(append([]string{"MM", "PERMISSION_DENIED"}, repeated("MM", 6, "ok")...)...), wideningWithin(2, 20))
		b.write("aa")
		b.flush()
		b.sees("B=2 R=8 S=1 T=1 U=1 X[INVALID_ARGUMENT]=7 X[PERMISSION_DENIED]=1")
	})
	t.Run("SW-67_masked when opening", func(t *testing.T) {
		f := answering("MM")
		f.opens = []string{"ok", "PERMISSION_DENIED"}
		b := newBench(t, f, wideningWithin(2, 20))
		b.write("aa")
		err := b.w.Flush(t.Context(), false)
		if err == nil || !strings.Contains(err.Error(), "open write stream for p.d.t") || !strings.Contains(err.Error(), "attempts=2") {
			t.Errorf("got %v", err)
		}
		b.sees("B=2 S=1 T=1 U=1 X[INVALID_ARGUMENT]=1")
	})
}

// withNews answers the oldest held append with a success that tells of another schema of the table.
func (b *bench) withNews() {
	b.far.answerWith(&storagepb.AppendRowsResponse{UpdatedSchema: &storagepb.TableSchema{}})
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	t.Run("SW-81_before the next row is sent", func(t *testing.T) {
		for name, c := range map[string]struct {
			change func(*Config)
			counts string
		}{"updates off": {nil, "B=6 S=3"}, "updates on": {widening, "B=6 S=3 U=1"}} {
			b := newBench(t, &far{}, c.change)
			b.rows.fingerprint = 1
			b.write("aa", "bb")
			b.rows.fingerprint = 2
			b.write("cc")
			b.sent("t: aa bb")
			if len(b.far.opened) != 2 || len(b.far.changed) != int(b.counts.series["U"]) {
				t.Errorf("%s: opened %v, changed %d times", name, b.far.opened, len(b.far.changed))
			}
			b.flush()
			b.sent("t: aa bb", "t: cc")
			b.described("Row1", "Row2")
			b.sees(c.counts)
		}
	})
	t.Run("SW-81_what is out is not torn down", func(t *testing.T) {
		b := newBench(t, answering("hold", "ok"), widening)
		b.rows.fingerprint = 1
		b.write("aa")
		b.sendPending()
		b.rows.fingerprint = 2
		b.write("bb")
		b.far.answer("ok")
		b.flush()
		b.sent("t: aa", "t: bb")
		b.sees("B=4 S=2 U=1")
	})
	t.Run("the table is not there yet", func(t *testing.T) {
		b := newBench(t, &far{changes: []string{"absent"}}, widening)
		b.rows.fingerprint = 1
		b.write("aa")
		b.rows.fingerprint = 2
		b.write("bb")
		b.flush()
		b.sees("B=4 S=2 T=1")
	})
	t.Run("opening waits as long as the schema takes", func(t *testing.T) {
		b := newBench(t, &far{opens: []string{"ok", "UNAVAILABLE", "UNAVAILABLE", "ok"}}, widening)
		b.rows.fingerprint = 1
		b.write("aa")
		b.rows.fingerprint = 2
		b.write("bb")
		if !slices.Equal(b.sleeps, []time.Duration{time.Minute, time.Minute}) {
			t.Errorf("slept %v", b.sleeps)
		}
	})
	t.Run("and no longer than recovery where nothing changed", func(t *testing.T) {
		b := newBench(t, &far{opens: []string{"ok", "UNAVAILABLE", "ok"}, changes: []string{"unchanged"}}, widening)
		b.rows.fingerprint = 1
		b.write("aa")
		b.rows.fingerprint = 2
		b.write("bb")
		if !slices.Equal(b.sleeps, []time.Duration{time.Second}) {
			t.Errorf("slept %v", b.sleeps)
		}
	})
	t.Run("a change without a union ends the writer", func(t *testing.T) {
		b := newBench(t, &far{changes: []string{"union"}}, widening)
		b.rows.fingerprint = 1
		b.write("aa")
		b.rows.fingerprint = 2
		err := b.writeTo(tableT, "bb")
		if e := new(AppendError); !errors.As(err, &e) || !errors.Is(err, table.ErrUnion) || !e.Permanent() {
			t.Errorf("got %v", err)
		}
		if again := b.w.Flush(t.Context(), false); again != err {
			t.Errorf("later: %v", again)
		}
	})
	t.Run("SW-83_updated_schema, fingerprint changed", func(t *testing.T) {
		for name, next := range map[string]func(*bench){
			"at the next write": func(b *bench) { b.write("bb"); b.flush() },
			"at the next flush": func(b *bench) { b.flush() },
		} {
			b := newBench(t, &far{appends: map[string][]string{"t": {"hold", "ok"}}}, widening)
			if err := b.writeTo(tableOf("u"), "uu"); err != nil {
				t.Fatal(err)
			}
			b.write("aa")
			b.sendPending()
			b.rows.fingerprint = 2
			b.withNews()
			b.far.opened = nil
			next(b)
			if !slices.Equal(b.far.opened, []string{"t"}) || len(b.far.changed) != 1 {
				t.Errorf("%s: opened %v, changed %d", name, b.far.opened, len(b.far.changed))
			}
		}
	})
	t.Run("SW-83_pending rows are what they were", func(t *testing.T) {
		b := newBench(t, answering("hold", "ok"), nil)
		b.rows.fingerprint = 1
		b.write("aa")
		b.sendPending()
		b.write("bb")
		b.rows.fingerprint = 2
		b.withNews()
		b.write("cc")
		b.flush()
		b.sent("t: aa", "t: bb", "t: cc")
		b.described("Row1", "Row1", "Row2")
		b.sees("B=6 S=3")
	})
	t.Run("SW-83_updated_schema, fingerprint as it was", func(t *testing.T) {
		for _, fingerprint := range []uint64{0, 7} {
			b := newBench(t, answering("hold", "ok"), widening)
			b.rows.fingerprint = fingerprint
			b.write("aa")
			b.sendPending()
			b.withNews()
			b.write("bb")
			b.flush()
			b.sees("B=4 S=2")
			if len(b.far.opened) != 1 || len(b.far.changed) != 0 {
				t.Errorf("opened %v, changed %d", b.far.opened, len(b.far.changed))
			}
		}
	})
	t.Run("SW-83_an answer to a destination that was closed", func(t *testing.T) {
		b := newBench(t, answering("hold", "ok"), nil)
		b.write("aa")
		b.sendPending()
		b.withNews()
		b.flush()
		b.clock = b.clock.Add(2 * time.Hour)
		b.flush()
		b.rows.fingerprint = 2
		b.write("bb")
		b.flush()
		b.sees("B=4 S=2")
	})
}

// An encoded batch says itself what its rows are: this process' serializer has no say.
func TestEncodedRowsAreNotRefreshed(t *testing.T) {
	t.Parallel()
	b := newBench(t, answering("hold", "ok"), widening)
	b.rows.fingerprint = 1
	e, err := NewEncoder(t.Context(), b.w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Packer(tableT)
	if err != nil {
		t.Fatal(err)
	}
	var batches []stream.EncodedBatch
	emit := func(b stream.EncodedBatch) error { batches = append(batches, b); return nil }
	if err := errors.Join(p.Commit(append(p.Begin(), "aa"...), emit), e.Flush(t.Context(), emit)); err != nil {
		t.Fatal(err)
	}
	if err := b.w.WriteEncoded(t.Context(), batches[0]); err != nil {
		t.Fatal(err)
	}
	b.sendPending()
	b.rows.fingerprint = 2
	b.withNews()
	if err := b.w.WriteEncoded(t.Context(), batches[0]); err != nil {
		t.Fatal(err)
	}
	b.flush()
	b.sent("t: aa", "t: aa")
	b.described("Row1", "Row1")
	if len(b.far.changed) != 0 {
		t.Error("the table was changed")
	}
}
