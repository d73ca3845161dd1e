package bigquery

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// checkpointed is an exactly-once lane with the states and promises of its newest checkpoint.
type checkpointed struct {
	*lane
	states   []stream.State
	promises []stream.Committable
	taken    int64
}

var quickBuffered = BufferedStreamOptions{RecoveryInitialBackoff: time.Millisecond, RecoveryMaxBackoff: time.Millisecond,
	RetryInitialDelay: NoDelay, RetryMaxDelay: NoDelay}

// exactlyOnce makes a lane that goes on from states.
func (l *local) exactlyOnce(t *testing.T, states ...stream.State) *checkpointed {
	t.Helper()
	return l.exactlyOnceBut(t, nil, states...)
}

// exactlyOnceBut is exactlyOnce with failed records left to a policy.
func (l *local) exactlyOnceBut(t *testing.T, failures stream.FailurePolicy, states ...stream.State) *checkpointed {
	t.Helper()
	sink, err := NewSink(byEvent(t), row.Serializer[[]byte](newEventRows(t)), SinkOptions{Method: MethodExactlyOnce, Connection: l.connection,
		BufferedStream: quickBuffered, Failures: failures})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sink.NewWriter(t.Context(), stream.WriterContext{Job: "j", Lanes: 1, States: states, Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &checkpointed{lane: &lane{t, sink, w}}
}

func (c *checkpointed) rows(ids ...int) {
	c.Helper()
	for _, i := range ids {
		c.write(eventDoc(3 * i)) // of table t0
	}
}

// checkpoint flushes and remembers what there is to remember.
func (c *checkpointed) checkpoint() {
	c.Helper()
	c.flush()
	c.taken++
	var err error
	if c.promises, err = c.writer.Prepare(c.Context(), c.taken); err != nil {
		c.Fatal(err)
	}
	if c.states, err = c.writer.Snapshot(c.Context(), c.taken); err != nil {
		c.Fatal(err)
	}
}

func (c *checkpointed) commit() {
	c.Helper()
	committer, err := c.sink.NewCommitter(c.Context(), stream.CommitterContext{Job: "j", Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		c.Fatal(err)
	}
	defer committer.Close()
	if err := committer.Commit(c.Context(), c.promises); err != nil {
		c.Fatal(err)
	}
}

// rowsOf are the numbers of the rows of t0 that can be seen, as rows took them.
func (l *local) rowsOf(t *testing.T) []int {
	var out []int
	for _, id := range ids(t, l.Instance, "d.t0") {
		out = append(out, id/3)
	}
	slices.Sort(out)
	return out
}

func TestExactlyOnceSurvivesFaults(t *testing.T) {
	t.Parallel()
	write := func(method string) localbq.FaultMatch { return localbq.FaultMatch{Service: "write", Method: method} }
	coded := func(code, storage string) localbq.FaultAction {
		return localbq.FaultAction{Status: &localbq.FaultStatus{Code: code, StorageError: storage}}
	}
	for name, f := range map[string]localbq.Fault{
		"SW-90_SW-91_the answer to an append is lost": {Match: write("AppendRows"), Action: localbq.FaultAction{LoseAck: true}},
		"SW-136_an append is unavailable":             {Match: write("AppendRows"), Action: coded("UNAVAILABLE", "")},
		"SW-134_an append is one too many":            {Match: write("AppendRows"), Action: coded("RESOURCE_EXHAUSTED", "")},
		"SW-89_an append fails for unknown reasons":   {Match: write("AppendRows"), Action: coded("UNKNOWN", "")},
		"SW-101_the connection is reset":              {Match: write("AppendRows"), Action: localbq.FaultAction{Reset: true}},
		"SW-105_the table is not seen yet":            {Match: write("CreateWriteStream"), Count: 3, Action: coded("PERMISSION_DENIED", "")},
		"a stream is made, and its name is lost":      {Match: write("CreateWriteStream"), Action: localbq.FaultAction{LoseAck: true}},
		"SW-129_a flush is unavailable":               {Match: write("FlushRows"), Action: coded("UNAVAILABLE", "")},
		"SW-130_a flush is denied for a while":        {Match: write("FlushRows"), Count: 2, Action: coded("PERMISSION_DENIED", "")},
		"SW-128_the answer to a flush is lost":        {Match: write("FlushRows"), Action: localbq.FaultAction{LoseAck: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := startLocal(t, localbq.Config{})
			f.Name = "f"
			f.Count = max(f.Count, 1)
			if err := l.Faults().Add(f); err != nil {
				t.Fatal(err)
			}
			w := l.exactlyOnce(t)
			w.rows(0, 1)
			w.checkpoint()
			w.rows(2)
			w.commit() // what came after the checkpoint is not of it
			if d := cmp.Diff([]int{0, 1}, l.rowsOf(t)); d != "" {
				t.Error(d)
			}
			w.checkpoint()
			w.commit()
			w.commit()
			if d := cmp.Diff([]int{0, 1, 2}, l.rowsOf(t)); d != "" {
				t.Error(d)
			}
			l.Faults().MustAllFire(t)
		})
	}
}

// A writer that goes on from a checkpoint meets a stream that is longer than the checkpoint says: the process before wrote on.
// Whatever answer it gets, and is lost, its rows are the ones that count.
func TestRestoreLeavesWhatNobodyPromised(t *testing.T) {
	t.Parallel()
	appends := localbq.FaultMatch{Service: "write", Method: "AppendRows"}
	for name, f := range map[string]*localbq.Fault{
		"SW-118_as it is":                 nil,
		"SW-120_the first answer is lost": {Match: appends, Count: 1, Action: localbq.FaultAction{LoseAck: true}},
		"SW-121_the connection is reset":  {Match: appends, Count: 1, Action: localbq.FaultAction{Reset: true}},
		"SW-120_unavailable at first":     {Match: appends, Count: 1, Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "UNAVAILABLE"}}},
		"SW-119_the stream cannot be looked up": {Match: localbq.FaultMatch{Service: "write", Method: "GetWriteStream"}, Count: 1,
			Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "NOT_FOUND"}}},
	} {
		for _, wrote := range []bool{true, false} {
			title := name + ", and written on"
			if !wrote {
				title = name
			}
			t.Run(title, func(t *testing.T) {
				t.Parallel()
				l := startLocal(t, localbq.Config{})
				before := l.exactlyOnce(t)
				before.rows(0, 1)
				before.checkpoint()
				if wrote {
					before.rows(90, 91, 92)
					before.flush() // and dies
				}
				if f != nil {
					if err := l.Faults().Add(*f); err != nil {
						t.Fatal(err)
					}
				}
				after := l.exactlyOnce(t, before.states...)
				before.commit()
				after.taken = before.taken
				after.rows(2, 3, 4)
				after.checkpoint()
				after.commit()
				after.rows(5)
				after.checkpoint()
				after.commit()
				if d := cmp.Diff([]int{0, 1, 2, 3, 4, 5}, l.rowsOf(t)); d != "" {
					t.Error(d)
				}
				if f != nil {
					l.Faults().MustAllFire(t)
				}
			})
		}
	}
}

// A refusal of rows does not tell where the stream ends.
func TestRestoreAfterARefusalLeavesWhatNobodyPromised(t *testing.T) {
	t.Parallel()
	appends := localbq.FaultMatch{Service: "write", Method: "AppendRows"}
	for name, c := range map[string]struct {
		first int // rows of the first append, whose first is refused
		lost  bool
	}{
		"SW-123_some rows": {first: 3},
		"SW-123_every row": {first: 1},
		"SW-123_some rows, and the answer behind it is lost": {first: 3, lost: true},
		"SW-123_every row, and the answer behind it is lost": {first: 1, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := startLocal(t, localbq.Config{})
			before := l.exactlyOnce(t)
			before.rows(0, 1)
			before.checkpoint()
			before.rows(90, 91, 92)
			before.flush() // and dies
			faults := []localbq.Fault{{Name: "refused", Match: appends, Count: 1, Action: localbq.FaultAction{Status: &localbq.FaultStatus{
				Code: "INVALID_ARGUMENT", RowErrors: []localbq.FaultRowError{{Index: 0, Message: "bad"}}}}}}
			if c.lost {
				faults = append(faults, localbq.Fault{Name: "lost", Count: 1, Action: localbq.FaultAction{LoseAck: true},
					Match: localbq.FaultMatch{Service: "write", Method: "AppendRows", After: "refused"}})
			}
			for _, f := range faults {
				if err := l.Faults().Add(f); err != nil {
					t.Fatal(err)
				}
			}
			after := l.exactlyOnceBut(t, stream.LogAndDrop(), before.states...)
			before.commit()
			after.taken = before.taken
			after.rows([]int{2, 3, 4}[:c.first]...)
			after.checkpoint()
			after.commit()
			after.rows(5)
			after.checkpoint()
			after.commit()
			want := slices.Concat([]int{0, 1}, []int{3, 4}[:c.first-1], []int{5})
			if d := cmp.Diff(want, l.rowsOf(t)); d != "" {
				t.Error(d)
			}
			l.Faults().MustAllFire(t)
		})
	}
}

// A table that is gone takes its streams along. What was promised of them cannot be kept, and that is an error; without a promise
// the table is made again.
func TestExactlyOnceAndADroppedTable(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T) (*local, *checkpointed) {
		l := startLocal(t, localbq.Config{})
		w := l.exactlyOnce(t)
		w.rows(0, 1)
		w.checkpoint()
		return l, w
	}
	drop := func(t *testing.T, l *local) {
		t.Helper()
		if err := l.DeleteTable("d.t0"); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("SW-130_promised", func(t *testing.T) {
		t.Parallel()
		l, w := setup(t)
		drop(t, l)
		c, err := w.sink.NewCommitter(t.Context(), stream.CommitterContext{Job: "j", Meter: stream.NoMeter, Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var e *AppendError
		if err := c.Commit(t.Context(), w.promises); !errors.As(err, &e) || e.Offset != 1 || e.Code != "PERMISSION_DENIED" || !strings.Contains(e.Hint, "before these rows") {
			t.Errorf("commit: %v", err)
		}
	})
	t.Run("SW-119_not promised", func(t *testing.T) {
		t.Parallel()
		l, w := setup(t)
		w.commit()
		drop(t, l)
		after := l.exactlyOnce(t, w.states...)
		after.taken = w.taken
		after.rows(2)
		after.checkpoint()
		after.commit()
		if d := cmp.Diff([]int{2}, l.rowsOf(t)); d != "" {
			t.Error(d)
		}
	})
}
