package storagewrite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// buffered makes a writer to streams of its own. Each row is a batch unless the test says otherwise.
func newBuffered(t *testing.T, f *far, change func(*Config)) *bench {
	t.Helper()
	return newBench(t, f, func(c *Config) {
		c.Buffered = true
		if change != nil {
			change(c)
		}
	})
}

// batches sends each row by itself.
func (b *bench) batches(rows ...string) {
	b.Helper()
	for _, row := range rows {
		b.write(row)
		b.sendPending()
	}
}

func (b *bench) happened(want ...string) {
	b.Helper()
	if d := cmp.Diff(want, b.far.events); d != "" {
		b.Errorf("streams: %s", d)
	}
}

// promised compares what Prepare promises, as "s1@1" or "u/s1@1".
func (b *bench) promised(want ...string) {
	b.Helper()
	var got []string
	for _, c := range b.w.Prepare() {
		p, err := parsePromise(c)
		if err != nil {
			b.Fatal(err)
		}
		got = append(got, shortStream(p.stream, p.offset))
	}
	if d := cmp.Diff(want, got); d != "" {
		b.Errorf("promises: %s", d)
	}
}

// remembers takes a snapshot and compares its states, as "s1@2".
func (b *bench) remembers(checkpoint int64, want ...string) []stream.State {
	b.Helper()
	states := b.w.Snapshot(checkpoint)
	var got []string
	for _, s := range states {
		p, err := parseState(s)
		if err != nil {
			b.Fatal(err)
		}
		if p.checkpoint != checkpoint {
			b.Errorf("state of checkpoint %d, want %d", p.checkpoint, checkpoint)
		}
		got = append(got, shortStream(p.stream, p.next))
	}
	if d := cmp.Diff(want, got); d != "" {
		b.Errorf("states: %s", d)
	}
	return states
}

func shortStream(name string, n int64) string {
	dst, _ := streamTable(name)
	short := strings.TrimPrefix(name, dst.Path()+"/streams/")
	if dst.Table != "t" {
		short = dst.Table + "/" + short
	}
	return fmt.Sprintf("%s@%d", short, n)
}

// fails flushes and returns the error.
func (b *bench) fails() error {
	b.Helper()
	err := b.w.Flush(b.Context(), false)
	if err == nil {
		b.Fatal("flush succeeds")
	}
	if again := b.w.Flush(b.Context(), false); again != err {
		b.Errorf("the next flush returns %v, want the same error", again)
	}
	if again := b.w.Enter(b.Context()); again != err {
		b.Errorf("the next write returns %v, want the same error", again)
	}
	return err
}

func budget(n int) func(*Config) {
	return func(c *Config) { c.Options.Recovery.Attempts = n }
}

func TestBuffered(t *testing.T) {
	t.Parallel()
	t.Run("SW-86_rows wait for a commit", func(t *testing.T) {
		b := newBuffered(t, &far{}, nil)
		b.write("aa", "bb")
		b.flush()
		b.sent("s1@0: aa bb")
		b.happened("create s1", "open s1")
		b.promised("s1@1")
		b.remembers(1, "s1@2")
		b.flush()
		b.promised()
		b.remembers(2, "s1@2")
		b.sees("B=4 S=2")
	})
	t.Run("SW-87_the stream goes on over checkpoints", func(t *testing.T) {
		b := newBuffered(t, &far{}, nil)
		b.write("aa", "bb")
		b.flush()
		b.remembers(1, "s1@2")
		b.write("cc")
		b.flush()
		b.sent("s1@0: aa bb", "s1@2: cc")
		b.promised("s1@2")
		b.happened("create s1", "open s1")
	})
	t.Run("SW-88_no rows, no stream", func(t *testing.T) {
		b := newBuffered(t, &far{}, nil)
		b.w.Skip()
		target, err := b.w.Target(tableT)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.w.Reject(t.Context(), target, &stream.FailedRecord{Reason: "poison"}); err != nil {
			t.Fatal(err)
		}
		b.flush()
		b.happened()
		b.promised()
		b.remembers(1)
	})
	for name, c := range map[string]struct {
		answers []string
		wire    []string
		counts  string
		change  func(*Config)
		events  []string // beside those of the first stream's making
		opens   []string
	}{
		"SW-89_unavailable once": {[]string{"UNAVAILABLE", "ok"}, []string{"s1@0: aa", "s1@0: aa"},
			"B=2 R=1 S=1 X[UNAVAILABLE]=1", nil, nil, nil},
		"SW-92_beyond the end": {[]string{"beyond", "ok"}, []string{"s1@0: aa", "s1@0: aa"},
			"B=2 R=1 S=1 X[OUT_OF_RANGE]=1", nil, nil, nil},
		"SW-99_rows listed in an outage": {[]string{"outage", "ok"}, []string{"s1@0: aa", "s1@0: aa"},
			"B=2 R=1 S=1 X[UNAVAILABLE]=1", nil, nil, nil},
		"SW-101_connection closed twice": {[]string{"closed", "closed", "ok"}, []string{"s1@0: aa", "s1@0: aa", "s1@0: aa"},
			"B=2 R=2 S=1 X[UNCLASSIFIED]=2", nil, []string{"close s1", "open s1", "close s1", "open s1"}, nil},
		"SW-102_no answer": {[]string{"dead", "ok"}, []string{"s1@0: aa", "s1@0: aa"},
			"B=2 R=1 S=1 X[UNCLASSIFIED]=1", nil, []string{"close s1", "open s1"}, nil},
		"opening again fails in passing": {[]string{"dead", "ok"}, []string{"s1@0: aa", "s1@0: aa"},
			"B=2 R=1 S=1 X[UNCLASSIFIED]=1", nil, []string{"close s1", "open s1"}, []string{"ok", "UNAVAILABLE", "ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuffered(t, &far{appends: map[string][]string{"": c.answers}, opensOf: c.opens}, c.change)
			b.write("aa")
			b.flush()
			b.sent(c.wire...)
			b.sees(c.counts)
			b.happened(append([]string{"create s1", "open s1"}, c.events...)...)
			b.promised("s1@0")
		})
	}
	for name, c := range map[string]struct {
		answers  []string
		is       error
		isNot    error
		says     string
		attempts int
		counts   string
	}{
		"SW-91_taken by somebody else": {[]string{"exists"}, ErrInconsistentStream, nil, "somebody else", 0, "B=2 S=1 X[ALREADY_EXISTS]=1"},
		"taken, and never written by us": {[]string{"unsent closed", "exists"}, ErrInconsistentStream, nil, "somebody else", 1,
			"B=2 R=1 S=1 X[ALREADY_EXISTS]=1 X[UNCLASSIFIED]=1"},
		"SW-100_finalized":  {[]string{"finalized"}, nil, retry.ErrBudgetSpent, "", 0, "B=2 S=1 X[INVALID_ARGUMENT]=1"},
		"SW-100_gone":       {[]string{"gone"}, nil, retry.ErrBudgetSpent, "", 0, "B=2 S=1 X[INVALID_ARGUMENT]=1"},
		"SW-100_state":      {[]string{"badstate"}, nil, retry.ErrBudgetSpent, "", 0, "B=2 S=1 X[INVALID_ARGUMENT]=1"},
		"SW-103_wrong echo": {[]string{"echo 41"}, ErrInconsistentStream, nil, "41", 0, "B=2 S=1 X[UNCLASSIFIED]=1"},
		"SW-104_table denied": {[]string{"PERMISSION_DENIED"}, nil, retry.ErrBudgetSpent, "may not exist", 0,
			"B=2 S=1 X[PERMISSION_DENIED]=1"},
		"SW-80_mismatch": {[]string{"MM"}, ErrSchemaMismatch, retry.ErrBudgetSpent, "", 0, "B=2 S=1 X[INVALID_ARGUMENT]=1"},
		"unavailable always": {[]string{"UNAVAILABLE"}, retry.ErrBudgetSpent, nil, "attempts=3", 3,
			"B=2 R=3 S=1 X[UNAVAILABLE]=4"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &far{appends: map[string][]string{"": c.answers}}
			b := newBuffered(t, f, nil)
			b.write("aa")
			err := b.fails()
			var e *AppendError
			if !errors.As(err, &e) || e.Attempts != c.attempts || e.Stream != tableT.Path()+"/streams/s1" {
				t.Errorf("error %#v", err)
			}
			if c.is != nil && !errors.Is(err, c.is) || c.isNot != nil && errors.Is(err, c.isNot) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v", err)
			}
			b.sees(c.counts)
			if f.made != 1 || len(f.created) != 0 {
				t.Errorf("%d streams made, tables %v", f.made, f.created)
			}
			if _, err := parseStateAll(b.w.Snapshot(1)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("SW-25_refused at once", func(t *testing.T) {
		b := newBuffered(t, &far{refuse: errors.New("no room")}, nil)
		b.write("aa")
		b.fails()
		b.sees("")
	})
	t.Run("SW-107_first open fails", func(t *testing.T) {
		b := newBuffered(t, &far{opensOf: []string{"UNAVAILABLE"}}, nil)
		b.write("aa")
		if err := b.fails(); !strings.Contains(err.Error(), opOpen) {
			t.Error(err)
		}
		b.sees("")
	})
	t.Run("credentials say no more than they do", func(t *testing.T) {
		b := newBuffered(t, &far{}, nil)
		b.w.remote = credentialless{b.far}
		b.write("aa")
		if err := b.fails(); err != gcp.ErrCredentials {
			t.Error(err)
		}
	})
	t.Run("SW-114_a pipelined append counts, a synchronous one does not", func(t *testing.T) {
		b := newBuffered(t, &far{appends: map[string][]string{"": {"hold", "ok"}}}, nil)
		b.batches("aa")
		b.sees("B=2 S=1 appends=1")
		b.far.answer("UNAVAILABLE")
		b.flush()
		b.sees("B=2 R=1 S=1 X[UNAVAILABLE]=1")
	})
	t.Run("SW-115_two destinations", func(t *testing.T) {
		b := newBuffered(t, &far{}, nil)
		for _, name := range []string{"t", "u", "t"} {
			if err := b.writeTo(tableOf(name), "aa"); err != nil {
				t.Fatal(err)
			}
		}
		b.flush()
		b.sent("s1@0: aa aa", "s2@0: aa")
		b.promised("s1@1", "u/s2@0")
		b.remembers(1, "s1@2", "u/s2@1")
	})
	t.Run("SW-112_idle destinations", func(t *testing.T) {
		b := newBuffered(t, &far{}, nil)
		b.write("aa")
		b.flush()
		b.clock = b.clock.Add(2 * time.Hour)
		b.flush() // idle, and the rows are in no snapshot
		b.remembers(1, "s1@1")
		b.flush()
		b.remembers(2)
		b.happened("create s1", "open s1", "close s1")
		b.write("bb")
		b.flush()
		b.sent("s1@0: aa", "s2@0: bb")
	})
	t.Run("SW-113_close finalizes nothing", func(t *testing.T) {
		b := newBuffered(t, &far{appends: map[string][]string{"": {"hold"}}}, nil)
		b.batches("aa")
		if err := b.w.Close(); err != nil {
			t.Fatal(err)
		}
		b.happened("create s1", "open s1", "close s1")
		b.sees("B=2 S=1")
		if n := b.counts.series["open"]; n != 0 {
			t.Errorf("%d open destinations after close", n)
		}
		if b.handler.events[len(b.handler.events)-1] != "close" {
			t.Error(b.handler.events)
		}
	})
	t.Run("SW-111_the rows change", func(t *testing.T) {
		b := newBuffered(t, &far{appends: map[string][]string{"t": {"hold", "ok"}}}, nil)
		b.rows.fingerprint = 1
		b.batches("aa")
		if err := b.writeTo(tableOf("u"), "uu"); err != nil {
			t.Fatal(err)
		}
		b.write("bb")
		b.far.answer("ok")
		b.rows.fingerprint = 2
		b.write("cc")
		b.sendPending()
		b.flush()
		b.sent("s1@0: aa", "s1@1: bb", "s1@2: cc", "s2@0: uu")
		b.happened("create s1", "open s1", "close s1", "open s1", "create s2", "open s2")
		b.promised("s1@2", "u/s2@0")
	})
}

func parseStateAll(states []stream.State) (out []streamState, err error) {
	for _, s := range states {
		p, err := parseState(s)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// credentialless is a remote whose credentials cannot be used.
type credentialless struct{ *far }

func (credentialless) createStream(context.Context, table.Destination) (string, error) {
	return "", gcp.ErrCredentials
}

// Where the offset of an append that was written before is taken, it may be by rows of another process that goes on from the same
// checkpoint: the append goes to a new stream, and the old one is promised as far as it was acknowledged.
func TestBufferedOffsetInDoubt(t *testing.T) {
	t.Run("SW-90_after an answer that was lost", func(t *testing.T) {
		b := newBuffered(t, &far{appends: map[string][]string{"": {"DEADLINE_EXCEEDED", "exists", "ok"}}}, nil)
		b.write("aa")
		b.flush()
		b.sent("s1@0: aa", "s1@0: aa", "s2@0: aa")
		b.sees("B=2 R=2 S=1 X[DEADLINE_EXCEEDED]=1")
		b.promised("s2@0")
	})
	t.Run("SW-91_after a resend of the connection", func(t *testing.T) {
		b := newBuffered(t, &far{appends: map[string][]string{"": {"ok", "resent exists", "ok"}}}, nil)
		b.batches("aa", "bb")
		b.flush()
		b.sent("s1@0: aa", "s1@1: bb", "s2@0: bb")
		b.sees("B=4 R=1 S=2")
		b.happened("create s1", "open s1", "close s1", "create s2", "open s2")
		b.promised("s1@0", "s2@0")
		b.remembers(1, "s2@1")
		b.promised()
	})
	t.Run("what is behind goes along, taken or not", func(t *testing.T) {
		b := newBuffered(t, &far{appends: map[string][]string{"": {"hold", "hold", "hold", "exists", "ok"}}}, nil)
		b.batches("aa", "bb", "cc")
		b.far.answer("UNAVAILABLE")
		b.far.answer("ok")
		b.far.answer("beyond")
		b.flush()
		b.sent("s1@0: aa", "s1@1: bb", "s1@2: cc", "s1@0: aa", "s2@0: aa", "s2@1: bb", "s2@2: cc")
		b.sees("B=6 R=4 S=3 X[UNAVAILABLE]=1")
		b.promised("s2@2")
	})
	t.Run("again and again", func(t *testing.T) {
		b := newBuffered(t, &far{appends: map[string][]string{"": {"resent exists"}}}, nil)
		b.write("aa")
		if err := b.fails(); !errors.Is(err, retry.ErrBudgetSpent) {
			t.Error(err)
		}
		b.sent("s1@0: aa", "s2@0: aa", "s3@0: aa")
	})
	t.Run("only what the last checkpoint does not know is promised", func(t *testing.T) {
		b := newBuffered(t, &far{appends: map[string][]string{"": {"ok", "resent exists", "ok"}}}, nil)
		b.write("aa")
		b.flush()
		b.promised("s1@0")
		b.remembers(1, "s1@1")
		b.write("bb")
		b.flush()
		b.promised("s2@0")
	})
}

func TestBufferedRowErrors(t *testing.T) {
	t.Parallel()
	// Appends are answered in order, each before the next is sent, except where "hold" leaves them to the flush.
	held := func(n int, answers ...string) *far {
		f := &far{appends: map[string][]string{"": append(strings.Fields(strings.Repeat("hold ", n)), answers...)}}
		return f
	}
	t.Run("SW-93_what is behind moves up", func(t *testing.T) {
		b := newBuffered(t, held(2, "ok"), nil)
		b.write("a0", "a1", "a2")
		b.sendPending()
		b.batches("b0")
		b.far.answer("rows 1")
		b.far.answer("beyond")
		b.flush()
		b.sent("s1@0: a0 a1 a2", "s1@3: b0", "s1@0: a0 a2", "s1@2: b0")
		b.promised("s1@2")
		b.sees("B=8 E=1 R=2 S=4 X[INVALID_ARGUMENT]=1")
		if got := b.w.Tally(); got != (stream.Tally{Written: 3, DeadLettered: 1, Bytes: 6}) {
			t.Errorf("tally %+v", got)
		}
	})
	for name, second := range map[string]string{"SW-94_behind was taken": "ok", "SW-94_behind was taken before": "exists"} {
		t.Run(name, func(t *testing.T) {
			b := newBuffered(t, held(2), nil)
			b.batches("aa", "bb")
			b.far.answer("rows 0")
			b.far.answer(second)
			if err := b.fails(); !errors.Is(err, ErrInconsistentStream) {
				t.Error(err)
			}
		})
	}
	for name, answer := range map[string]string{"SW-95_taken": "exists", "SW-95_beyond": "beyond"} {
		t.Run(name+" within a replay", func(t *testing.T) {
			b := newBuffered(t, held(1, answer), nil)
			b.write("a0", "a1")
			b.sendPending()
			b.far.answer("rows 0")
			if err := b.fails(); errors.Is(err, retry.ErrBudgetSpent) {
				t.Error(err)
			}
			b.sent("s1@0: a0 a1", "s1@0: a1")
		})
	}
	t.Run("SW-96_replay runs out of attempts", func(t *testing.T) {
		b := newBuffered(t, held(1, "UNAVAILABLE"), nil)
		b.write("a0", "a1")
		b.sendPending()
		b.far.answer("rows 0")
		err := b.fails()
		var e *AppendError
		if !errors.Is(err, retry.ErrBudgetSpent) || !errors.As(err, &e) || e.Attempts != 3 {
			t.Error(err)
		}
		b.sees("B=4 E=1 R=3 S=2 X[INVALID_ARGUMENT]=1 X[UNAVAILABLE]=3")
	})
	t.Run("SW-96_each batch of a replay has its attempts", func(t *testing.T) {
		b := newBuffered(t, held(2, "UNAVAILABLE", "UNAVAILABLE", "ok", "UNAVAILABLE", "UNAVAILABLE", "ok"), nil)
		b.write("a0", "a1")
		b.sendPending()
		b.batches("bb")
		b.far.answer("rows 0")
		b.far.answer("beyond")
		b.flush()
		b.promised("s1@1")
	})
	t.Run("taken by a resend of the connection, within a replay", func(t *testing.T) {
		b := newBuffered(t, held(1, "resent exists", "ok"), nil)
		b.write("a0", "a1")
		b.sendPending()
		b.far.answer("rows 0")
		b.flush()
		b.sent("s1@0: a0 a1", "s1@0: a1", "s2@0: a1")
		b.promised("s2@0")
	})
	t.Run("SW-97_numbers of no rows", func(t *testing.T) {
		b := newBuffered(t, held(1, "rows 5"), nil)
		b.batches("aa")
		b.far.answer("rows 5")
		if err := b.fails(); !errors.Is(err, ErrNoProgress) {
			t.Error(err)
		}
		b.sees("B=2 R=1 S=1 X[INVALID_ARGUMENT]=2")
	})
	t.Run("SW-98_every row refused", func(t *testing.T) {
		b := newBuffered(t, held(1, "ok"), nil)
		b.write("a0", "a1")
		b.sendPending()
		b.far.answer("rows 0 1")
		b.flush()
		b.promised()
		b.remembers(1, "s1@0")
		b.sees("B=4 E=2 S=2 X[INVALID_ARGUMENT]=1")
		b.write("bb")
		b.flush()
		b.sent("s1@0: a0 a1", "s1@0: bb")
	})
	t.Run("refused again within a replay", func(t *testing.T) {
		b := newBuffered(t, held(1, "rows 0", "ok"), nil)
		b.write("a0", "a1", "a2")
		b.sendPending()
		b.far.answer("rows 0")
		b.flush()
		b.sent("s1@0: a0 a1 a2", "s1@0: a1 a2", "s1@0: a2")
		b.sees("B=6 E=2 R=2 S=3 X[INVALID_ARGUMENT]=2")
		if len(b.sleeps) != 0 {
			t.Errorf("slept %v", b.sleeps)
		}
	})
	t.Run("the connection dies behind a refusal", func(t *testing.T) {
		b := newBuffered(t, held(2, "ok"), nil)
		b.batches("aa", "bb")
		b.far.answer("rows 0")
		b.far.answer("closed")
		b.flush()
		b.sent("s1@0: aa", "s1@1: bb", "s1@0: bb")
		b.happened("create s1", "open s1", "close s1", "open s1")
	})
	t.Run("appends behind a lost one are sent on the connection that replaced it", func(t *testing.T) {
		b := newBuffered(t, held(3, "ok"), nil)
		b.batches("aa", "bb", "cc")
		b.far.answer("dead")
		b.far.answer("closed")
		b.far.answer("closed")
		b.flush()
		b.sent("s1@0: aa", "s1@1: bb", "s1@2: cc", "s1@0: aa", "s1@1: bb", "s1@2: cc")
		b.happened("create s1", "open s1", "close s1", "open s1")
		b.promised("s1@2")
	})
	t.Run("stopped before a failed append is mended", func(t *testing.T) {
		b := newBuffered(t, held(1, "ok"), nil)
		b.batches("aa")
		b.far.answer("UNAVAILABLE")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.w.Flush(ctx, false); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := b.fails(); !errors.Is(err, context.Canceled) { // the rows are not in the stream
			t.Error(err)
		}
	})
	t.Run("handler refuses", func(t *testing.T) {
		b := newBuffered(t, held(1), nil)
		b.handler.fail = 1
		b.batches("aa")
		b.far.answer("rows 0")
		if err := b.fails(); !errors.Is(err, errHandler) {
			t.Error(err)
		}
	})
}

func TestBufferedStreams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		makes   []string
		creates []string
		change  func(*Config)
		calls   int // of CreateWriteStream
		tables  int
		sleeps  int
		fails   string // what the error says, "" for success
	}{
		"SW-105_table missing":     {[]string{"PERMISSION_DENIED", "ok"}, nil, nil, 2, 1, 0, ""},
		"SW-105_slow to be seen":   {[]string{"PERMISSION_DENIED", "PERMISSION_DENIED", "PERMISSION_DENIED", "ok"}, nil, budget(5), 4, 1, 2, ""},
		"SW-106_never":             {[]string{"PERMISSION_DENIED"}, nil, never, 1, 0, 0, "create write stream for p.d.t failed"},
		"SW-106_never, not found":  {[]string{"NOT_FOUND"}, nil, never, 1, 0, 0, "table does not exist"},
		"SW-106_one attempt":       {[]string{"PERMISSION_DENIED"}, nil, budget(1), 1, 1, 0, "table creation was attempted, attempts=1: retry budget exhausted"},
		"denied for ever":          {[]string{"PERMISSION_DENIED"}, nil, nil, 3, 1, 1, "retry budget exhausted"},
		"unavailable, then there":  {[]string{"UNAVAILABLE", "ok"}, nil, nil, 2, 0, 1, ""},
		"unavailable for ever":     {[]string{"UNAVAILABLE"}, nil, nil, 3, 0, 2, "retry budget exhausted"},
		"invalid":                  {[]string{"INVALID_ARGUMENT"}, nil, nil, 1, 0, 0, "create write stream for p.d.t failed, attempts=1"},
		"table cannot be made":     {[]string{"PERMISSION_DENIED"}, []string{"INVALID_ARGUMENT no such type"}, nil, 1, 1, 0, "no such type"},
		"missing, then in passing": {[]string{"UNAVAILABLE", "NOT_FOUND", "ok"}, nil, nil, 3, 1, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &far{makes: c.makes, creates: c.creates}
			b := newBuffered(t, f, c.change)
			b.write("aa")
			err := b.w.Flush(t.Context(), false)
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v", err)
			}
			calls := f.made
			for _, e := range f.events {
				if e == "refuse" {
					calls++
				}
			}
			if calls != c.calls || len(f.created) != c.tables || len(b.sleeps) != c.sleeps {
				t.Errorf("%d calls, %d tables, %d sleeps; want %d, %d, %d", calls, len(f.created), len(b.sleeps), c.calls, c.tables, c.sleeps)
			}
			for key := range b.counts.series {
				if strings.HasPrefix(key, "X") || key == "T" {
					t.Errorf("series %s is there", key)
				}
			}
		})
	}
}

// stateOf is the state of stream name of table t, with the next offset and the checkpoint.
func stateOf(name string, next, checkpoint int64) stream.State {
	return streamState{tableT, tableT.Path() + "/streams/" + name, next, checkpoint}.state()
}

func restored(states ...stream.State) func(*Config) {
	return func(c *Config) { c.States = states }
}

func TestBufferedRestore(t *testing.T) {
	t.Parallel()
	s5 := restored(stateOf("s", 5, 3))
	t.Run("SW-116_goes on", func(t *testing.T) {
		b := newBuffered(t, &far{appends: map[string][]string{"": {"ok", "hold"}}}, s5)
		b.write("aa", "bb")
		b.sendPending()
		b.sent("s@5: aa bb")
		b.promised("s@6")
		b.batches("cc")
		b.sent("s@5: aa bb", "s@7: cc")
		b.sees("B=6 S=3 appends=1")
		b.happened("look up s", "open s")
		b.far.holders[0].answer(b.far.held[0], "ok")
		b.flush()
		b.promised("s@7")
	})
	t.Run("SW-117_stays quiet", func(t *testing.T) {
		b := newBuffered(t, &far{}, s5)
		b.flush()
		b.promised()
		b.remembers(4, "s@5")
		b.happened()
	})
	for name, c := range map[string]struct {
		answers, opens []string
		wire           []string
		counts         string
		promise        string
	}{
		"SW-118_taken":       {[]string{"exists", "ok"}, nil, []string{"s@5: aa", "s1@0: aa"}, "B=2 R=1 S=1 X[ALREADY_EXISTS]=1", "s1@0"},
		"SW-118_beyond":      {[]string{"beyond", "ok"}, nil, []string{"s@5: aa", "s1@0: aa"}, "B=2 R=1 S=1 X[OUT_OF_RANGE]=1", "s1@0"},
		"SW-118_finalized":   {[]string{"finalized", "ok"}, nil, []string{"s@5: aa", "s1@0: aa"}, "B=2 R=1 S=1 X[INVALID_ARGUMENT]=1", "s1@0"},
		"SW-118_gone":        {[]string{"gone", "ok"}, nil, []string{"s@5: aa", "s1@0: aa"}, "B=2 R=1 S=1 X[INVALID_ARGUMENT]=1", "s1@0"},
		"SW-118_state":       {[]string{"badstate", "ok"}, nil, []string{"s@5: aa", "s1@0: aa"}, "B=2 R=1 S=1 X[INVALID_ARGUMENT]=1", "s1@0"},
		"SW-119_not opened":  {nil, []string{"NOT_FOUND", "ok"}, []string{"s1@0: aa"}, "B=2 S=1", "s1@0"},
		"SW-119_unavailable": {nil, []string{"UNAVAILABLE", "ok"}, []string{"s1@0: aa"}, "B=2 S=1", "s1@0"},
		"SW-120_in passing":  {[]string{"UNAVAILABLE", "ok"}, nil, []string{"s@5: aa", "s@5: aa"}, "B=2 R=1 S=1 X[UNAVAILABLE]=1", "s@5"},
		"SW-120_in passing, then taken": {[]string{"UNAVAILABLE", "exists", "ok"}, nil, []string{"s@5: aa", "s@5: aa", "s1@0: aa"},
			"B=2 R=2 S=1 X[ALREADY_EXISTS]=1 X[UNAVAILABLE]=1", "s1@0"},
		"SW-120_lost on the connection, then taken": {[]string{"resent exists", "ok"}, nil, []string{"s@5: aa", "s1@0: aa"},
			"B=2 R=1 S=1 X[ALREADY_EXISTS]=1", "s1@0"},
		"SW-121_connection closed": {[]string{"closed", "ok"}, nil, []string{"s@5: aa", "s@5: aa"}, "B=2 R=1 S=1 X[UNCLASSIFIED]=1", "s@5"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuffered(t, &far{appends: map[string][]string{"": c.answers}, opensOf: c.opens}, s5)
			b.write("aa")
			b.flush()
			b.sent(c.wire...)
			b.sees(c.counts)
			b.promised(c.promise)
			b.batches("bb")
			b.flush()
			b.promised(shortStream(tableT.Path()+"/streams/"+strings.Split(c.promise, "@")[0], b.w.targets[tableT].own.next-1))
		})
	}
	t.Run("SW-122_invalid", func(t *testing.T) {
		b := newBuffered(t, &far{appends: map[string][]string{"": {"INVALID_ARGUMENT"}}}, s5)
		b.write("aa")
		var e *AppendError
		if err := b.fails(); !errors.As(err, &e) || e.Offset != 5 || !strings.HasSuffix(e.Stream, "/s") || !strings.Contains(err.Error(), "at offset 5") {
			t.Error(err)
		}
	})
	t.Run("SW-122_budget spent", func(t *testing.T) {
		b := newBuffered(t, &far{appends: map[string][]string{"": {"UNAVAILABLE"}}}, s5)
		b.write("aa")
		if err := b.fails(); !errors.Is(err, retry.ErrBudgetSpent) {
			t.Error(err)
		}
		b.sees("B=2 R=2 S=1 X[UNAVAILABLE]=3")
	})
	t.Run("SW-123_row refused", func(t *testing.T) {
		b := newBuffered(t, &far{appends: map[string][]string{"": {"rows 0", "ok"}}}, s5)
		b.write("aa", "bb")
		b.flush()
		b.sent("s@5: aa bb", "s@5: bb")
		b.sees("B=4 E=1 R=1 S=2 X[INVALID_ARGUMENT]=1")
		b.promised("s@5")
	})
	// A refusal of rows does not tell where the stream ends, so the append that follows it may still meet what the process
	// before left there.
	for _, answer := range []string{"exists", "resent exists", "beyond", "gone"} {
		t.Run("SW-123_row refused, then "+answer, func(t *testing.T) {
			b := newBuffered(t, &far{appends: map[string][]string{"": {"rows 0", answer, "ok"}}}, s5)
			b.write("aa", "bb")
			b.flush()
			b.sent("s@5: aa bb", "s@5: bb", "s1@0: bb")
			b.promised("s1@0")
			b.batches("cc")
			b.flush()
			b.promised("s1@1")
		})
		t.Run("SW-123_every row refused, then "+answer, func(t *testing.T) {
			b := newBuffered(t, &far{appends: map[string][]string{"": {"rows 0 1", answer, "ok"}}}, s5)
			b.write("aa", "bb")
			b.flush()
			b.promised()
			b.remembers(4, "s@5")
			b.batches("cc", "dd")
			b.flush()
			b.sent("s@5: aa bb", "s@5: cc", "s1@0: cc", "s1@1: dd")
			b.promised("s1@1")
		})
	}
	t.Run("SW-97_numbers of no rows", func(t *testing.T) {
		b := newBuffered(t, &far{appends: map[string][]string{"": {"rows 5"}}}, s5)
		b.write("aa")
		if err := b.fails(); !errors.Is(err, ErrNoProgress) {
			t.Error(err)
		}
		b.sent("s@5: aa", "s@5: aa")
	})
	t.Run("SW-125_of several states the newest", func(t *testing.T) {
		b := newBuffered(t, &far{}, restored(stateOf("a", 2, 2), stateOf("z", 3, 3), stateOf("c", 1, 2)))
		b.remembers(4, "z@3")
		b = newBuffered(t, &far{}, restored(stateOf("z", 3, 3), stateOf("m", 9, 3), stateOf("n", 9, 3)))
		b.remembers(4, "m@9")
	})
	t.Run("SW-112_idle after a restore", func(t *testing.T) {
		b := newBuffered(t, &far{}, s5)
		b.w.targets[tableT].lastAccess = b.clock
		b.clock = b.clock.Add(2 * time.Hour)
		b.flush()
		b.remembers(4)
	})
}

func TestBufferedMismatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []string
		budgets [2]int
		counts  string
		events  []string
		sleeps  int
	}{
		"SW-108_at the head": {[]string{"MM", "ok"}, [2]int{3, 3}, "B=2 R=1 S=1 U=1 X[INVALID_ARGUMENT]=1",
			[]string{"close s1", "open s1"}, 0},
		"SW-109_the budget begins again": {[]string{"UNAVAILABLE", "MM", "MM", "MM", "ok"}, [2]int{2, 5},
			"B=2 R=4 S=1 U=1 X[INVALID_ARGUMENT]=3 X[UNAVAILABLE]=1",
			[]string{"close s1", "open s1", "close s1", "open s1", "close s1", "open s1"}, 2},
		"SW-109_the last attempt of a budget that began again": {[]string{"UNAVAILABLE", "MM", "MM", "MM", "ok"}, [2]int{2, 3},
			"B=2 R=4 S=1 U=1 X[INVALID_ARGUMENT]=3 X[UNAVAILABLE]=1",
			[]string{"close s1", "open s1", "close s1", "open s1", "close s1", "open s1"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuffered(t, &far{appends: map[string][]string{"": c.answers}}, wideningWithin(c.budgets[0], c.budgets[1]))
			b.write("aa")
			b.flush()
			b.sees(c.counts)
			b.happened(append([]string{"create s1", "open s1"}, c.events...)...)
			if len(b.sleeps) != c.sleeps || len(b.far.changed) != 1 {
				t.Errorf("slept %v, %d reconciliations", b.sleeps, len(b.far.changed))
			}
			b.promised("s1@0")
		})
	}
	t.Run("SW-110_within a replay", func(t *testing.T) {
		b := newBuffered(t, &far{appends: map[string][]string{"": {"hold", "hold", "MM", "MM", "ok"}}}, wideningWithin(2, 5))
		b.write("a0", "a1")
		b.sendPending()
		b.batches("bb")
		b.far.answer("rows 0")
		b.far.answer("beyond")
		b.flush()
		b.sent("s1@0: a0 a1", "s1@2: bb", "s1@0: a1", "s1@0: a1", "s1@0: a1", "s1@1: bb")
		b.sees("B=6 E=1 R=4 S=3 U=1 X[INVALID_ARGUMENT]=3")
		b.promised("s1@1")
	})
	t.Run("SW-124_at the probe", func(t *testing.T) {
		b := newBuffered(t, &far{appends: map[string][]string{"": {"MM", "ok"}}}, func(c *Config) {
			wideningWithin(3, 3)(c)
			restored(stateOf("s", 5, 3))(c)
		})
		b.write("aa")
		b.flush()
		b.sent("s@5: aa", "s@5: aa")
		b.happened("look up s", "open s", "close s", "look up s", "open s")
		b.sees("B=2 R=1 S=1 U=1 X[INVALID_ARGUMENT]=1")
		b.promised("s@5")
	})
	for name, c := range map[string]struct {
		answers, changes []string
		is               error
		permanent        bool
	}{
		"SW-77_no union":         {[]string{"MM"}, []string{"union"}, table.ErrUnion, true},
		"SW-73_races lost":       {[]string{"MM"}, []string{"race"}, tableadmin.ErrUpdateRaceLost, false},
		"SW-74_never heard of":   {[]string{"MM"}, nil, retry.ErrBudgetSpent, false},
		"SW-76_mismatch, denied": {[]string{"MM"}, []string{"PERMISSION_DENIED"}, ErrSchemaMismatch, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuffered(t, &far{appends: map[string][]string{"": c.answers}, changes: c.changes}, wideningWithin(3, 3))
			b.write("aa")
			err := b.fails()
			var e *AppendError
			if !errors.Is(err, c.is) || !errors.As(err, &e) || e.Permanent() != c.permanent || e.Verdict != KindSchemaMismatch {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("SW-111_the table is changed before rows of more columns are sent", func(t *testing.T) {
		b := newBuffered(t, &far{}, wideningWithin(3, 3))
		b.rows.fingerprint = 1
		b.write("aa")
		b.rows.fingerprint = 2
		b.write("bb")
		if len(b.far.changed) != 1 {
			t.Errorf("%d reconciliations", len(b.far.changed))
		}
		b.flush()
		b.sent("s1@0: aa", "s1@1: bb")
		b.happened("create s1", "open s1", "close s1", "open s1")
		b.sees("B=4 S=2 U=1")
	})
	t.Run("what is read at an opening", func(t *testing.T) {
		b := newBuffered(t, &far{}, nil)
		b.write("aa")
		b.flush()
		if got := strings.Join(b.rows.asked, ", "); !strings.HasPrefix(got, "fingerprint t, descriptor t") {
			t.Errorf("SW-156: asked %s", got)
		}
	})
}

func TestBufferedMemory(t *testing.T) {
	t.Parallel()
	b := newBuffered(t, &far{appends: map[string][]string{"": {"hold"}}}, func(c *Config) { c.Options.MaxBufferedBytes = 40 })
	done := make(chan error, 1)
	b.batches("aaaaaaaa")
	b.batches("bbbbbbbb")
	b.batches("cccccccc")
	go func() { // ends with the write, which the test lets go on
		done <- b.writeTo(tableT, "dddddddd")
	}()
	b.far.mu.Lock()
	c, h := b.far.held[0], b.far.holders[0]
	b.far.mu.Unlock()
	h.answer(c, "ok")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := b.w.load.Load(); n > 40 {
		t.Errorf("%d bytes are out", n)
	}
}

// Rows that are acknowledged behind an append in doubt are sent again, to a new stream. Nothing may have been written over them
// meanwhile, and batches of their size are used again.
func TestBufferedKeepsRowsBehindADoubt(t *testing.T) {
	t.Parallel()
	b := newBuffered(t, &far{appends: map[string][]string{"": {"hold"}}}, func(c *Config) { c.Options.MaxAppendBytes = 100 << 10 })
	row := func(c string) string { return strings.Repeat(c, 90<<10) }
	answer := func(a string) {
		c, h := b.far.held[0], b.far.holders[0]
		b.far.held, b.far.holders = b.far.held[1:], b.far.holders[1:]
		h.answer(c, a)
	}
	for _, c := range []string{"a", "b"} { // from here on, buffers are of the size that is used again
		b.batches(row(c))
		answer("ok")
	}
	b.flush()
	b.batches(row("c"), row("d"))
	answer("resent exists")
	answer("ok")
	b.far.appends[""] = []string{"ok"}
	other, err := b.w.Target(tableOf("u"))
	if err != nil {
		t.Fatal(err)
	}
	other.usualBytes = 90 << 10
	b.w.attention.Store(false) // the lane has not noticed yet
	if err := b.writeTo(tableOf("u"), row("x")); err != nil {
		t.Fatal(err)
	}
	b.flush()
	var got []string
	for _, line := range b.far.wire {
		got = append(got, line[:min(len(line), 7)])
	}
	b.promised("s1@1", "s3@1", "u/s2@0")
	if d := cmp.Diff([]string{"s1@0: a", "s1@1: b", "s1@2: c", "s1@3: d", "s2@0: x", "s3@0: c", "s3@1: d"}, got); d != "" {
		t.Error(d)
	}
}

// The connection to a created stream keeps the schema that it was opened with, so rows under another one get another connection.
func TestBufferedSchemasNeverShareAConnection(t *testing.T) {
	t.Parallel()
	b := newBuffered(t, &far{appends: map[string][]string{"": {"hold", "ok"}}}, nil)
	encoded := func(fingerprint uint64, row string) {
		for _, eb := range pack(t, &schemas{fingerprint: fingerprint}, func(_ *Packer, put func(string)) { put(row) }) {
			if err := b.w.WriteEncoded(t.Context(), eb); err != nil {
				t.Fatal(err)
			}
		}
	}
	encoded(7, "aa")
	b.sendPending()
	b.far.holders[0].answer(b.far.held[0], "UNAVAILABLE")
	encoded(8, "bb")
	b.flush()
	b.sent("s1@0: aa", "s1@0: aa", "s1@1: bb")
	b.happened("create s1", "open s1", "close s1", "open s1")
	b.promised("s1@1")
}
