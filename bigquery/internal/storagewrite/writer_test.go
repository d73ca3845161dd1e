package storagewrite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/gcp"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

func small(n int) func(*Config) { return func(c *Config) { c.Options.MaxAppendBytes = n } }

func never(c *Config) { c.Create.Never = true }

func failJob(c *Config) { c.Failures = stream.FailJob() }

func TestRecords(t *testing.T) {
	t.Parallel()
	t.Run("SW-1_one append", func(t *testing.T) {
		b := newBench(t, &far{}, nil)
		b.write("aa", "bb")
		b.flush()
		b.sent("t: aa bb")
		b.sees("B=4 S=2")
		if got := b.counts.series["open"]; got != 1 {
			t.Errorf("%d open destinations", got)
		}
		for key := range b.counts.series {
			if strings.HasPrefix(key, "X") {
				t.Errorf("series %s is there without an error", key)
			}
		}
		if got := b.w.Tally(); got != (stream.Tally{Written: 2, Bytes: 4}) {
			t.Errorf("tally %+v", got)
		}
	})
	t.Run("SW-2_no room for two", func(t *testing.T) {
		b := newBench(t, &far{}, small(1))
		b.write("aa", "bb")
		b.sent("t: aa")
		b.flush()
		b.sent("t: aa", "t: bb")
		b.sees("B=4 S=2")
	})
	t.Run("SW-3_equality fits", func(t *testing.T) {
		b := newBench(t, &far{}, small(6))
		b.write("aa", "bb", "cc", "dd")
		b.flush()
		b.sent("t: aa bb cc", "t: dd")
	})
	t.Run("SW-4_longest row", func(t *testing.T) {
		b := newBench(t, &far{}, nil)
		b.write("aa", strings.Repeat("x", MaxRowBytes), "bb")
		b.flush()
		b.sent("t: aa", "t: xxxxxxxx", "t: bb")
		b = newBench(t, &far{}, nil)
		long := strings.Repeat("x", MaxRowBytes+1)
		b.write(long)
		b.flush()
		b.sent()
		b.sees("E=1")
		if f := b.handler.records[0]; string(f.Row) != long || f.Destination != "p.d.t" || len(b.far.opened) != 0 {
			t.Errorf("handler got %d bytes for %s; opened %v", len(f.Row), f.Destination, b.far.opened)
		}
	})
	t.Run("SW-5_framing counts", func(t *testing.T) {
		const n = 3_300_000 // rows of 1 byte, each framed by 2
		b := &batch{rows: &rowBuffer{data: make([]byte, 3*n)}, count: n, bytes: n}
		overhead := maxRequestBytes - b.size() - 3
		if !b.room(1, MaxRowBytes, overhead) {
			t.Error("no room for a row that fits exactly")
		}
		if b.room(1, MaxRowBytes, overhead+1) || b.room(2, MaxRowBytes, overhead) {
			t.Error("room for one byte too many")
		}
	})
	t.Run("SW-5_a request of rows of one byte", func(t *testing.T) {
		b := newBench(t, &far{}, small(MaxRowBytes))
		kept := &keeping{far: b.far}
		b.w.remote = kept
		b.write("x")
		// All but the last rows, without writing each of three million.
		p := b.w.targets[tableT].pending
		p.count = (maxRequestBytes - 1000) / 3
		p.bytes = p.count
		p.rows.data = bytes.Repeat([]byte{rowTag, 1, 'x'}, p.count)
		b.w.pending = p.size()
		for len(kept.sizes) == 0 {
			b.write("x")
		}
		head := header{stream: streamName(tableT), offset: noOffset, schema: p.schema, traceID: traceID()}.append(nil, kept.sizes[0])
		if n := len(head) + kept.sizes[0]; n > maxRequestBytes || n < maxRequestBytes-100 {
			t.Errorf("a request of %d bytes", n)
		}
	})
	t.Run("SER-2_a row of no bytes is a row", func(t *testing.T) {
		b := newBench(t, &far{}, nil)
		b.write("", "aa", "")
		b.flush()
		b.sent("t:  aa ")
		b.sees("B=2 S=3")
	})
	t.Run("SW-14_two tables", func(t *testing.T) {
		b := newBench(t, &far{}, nil)
		for range 3 {
			for _, name := range []string{"t", "u"} {
				if err := b.writeTo(tableOf(name), "aa"); err != nil {
					t.Fatal(err)
				}
			}
		}
		b.flush()
		b.sent("t: aa aa aa", "u: aa aa aa")
		if d := cmp.Diff([]string{"fingerprint t", "descriptor t", "fingerprint u", "descriptor u"}, b.rows.asked); d != "" {
			t.Error("SW-82, SW-156:", d)
		}
		if d := cmp.Diff([]string{"t", "u"}, b.far.opened); d != "" {
			t.Error(d)
		}
	})
	t.Run("SW-9_SW-15_metrics by destination", func(t *testing.T) {
		b := newBench(t, &far{}, func(c *Config) { c.PerDestinationMetrics = true })
		if err := b.writeTo(tableOf("t1"), "aa", "bb"); err != nil {
			t.Fatal(err)
		}
		t2, err := b.w.Target(tableOf("t2"))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.w.Reject(t.Context(), t2, &stream.FailedRecord{Reason: "poison"}); err != nil {
			t.Fatal(err)
		}
		if err := b.w.Reject(t.Context(), nil, &stream.FailedRecord{Reason: "SW-9"}); err != nil {
			t.Fatal(err)
		}
		b.flush()
		b.sees("B=4 E=2 E[p.d.t2]=1 S=2 S[p.d.t1]=2")
		if f := b.handler.records[1]; f.Destination != stream.Unresolved {
			t.Errorf("destination %q", f.Destination)
		}
	})
	t.Run("SW-82_fingerprint 0 is not asked for again, another is, and nothing is opened anew", func(t *testing.T) {
		for fingerprint, want := range map[uint64]int{0: 1, 9: 4} {
			b := newBench(t, &far{}, widening)
			b.rows.fingerprint = fingerprint
			b.write("aa", "bb", "cc")
			b.flush()
			asked := 0
			for _, a := range b.rows.asked {
				if a == "fingerprint t" {
					asked++
				}
			}
			if asked != want || len(b.far.opened) != 1 || len(b.far.changed) != 0 {
				t.Errorf("fingerprint %d: asked %d times, opened %v, %d changes", fingerprint, asked, b.far.opened, len(b.far.changed))
			}
			b.sent("t: aa bb cc")
		}
	})
	t.Run("SW-81_schema changes between rows", func(t *testing.T) {
		b := newBench(t, &far{}, nil)
		b.rows.fingerprint = 1
		b.write("aa", "bb")
		b.rows.fingerprint = 2
		b.write("cc")
		b.sent("t: aa bb")
		b.flush()
		b.sent("t: aa bb", "t: cc")
		b.described("Row1", "Row2")
		b.sees("B=6 S=3")
	})
	for name, buffered := range map[string]bool{"default": false, "buffered": true} {
		// The rows before know no column that the descriptor lacks, and the change is noticed: one opening too many, none too few.
		t.Run("SW-156_schema changes between fingerprint and descriptor, "+name, func(t *testing.T) {
			b := newBench(t, &far{}, func(c *Config) { c.Buffered = buffered })
			b.rows.fingerprint, b.rows.moves = 1, 1
			b.write("aa")
			b.write("bb")
			b.flush()
			n := 0
			for _, a := range b.rows.asked {
				if a == "descriptor t" {
					n++
				}
			}
			if n != 2 || !slices.Equal(b.rows.asked[:2], []string{"fingerprint t", "descriptor t"}) {
				t.Errorf("asked %v", b.rows.asked)
			}
			b.sees("B=4 S=2")
		})
	}
	t.Run("SER-5_schema changes while a row is made", func(t *testing.T) {
		b := newBench(t, &far{}, nil)
		b.rows.fingerprint = 1
		b.write("aa")
		target, err := b.w.Target(tableT)
		if err != nil {
			t.Fatal(err)
		}
		row := append(b.w.Begin(target), "bb"...)
		b.rows.fingerprint = 2
		if err := b.w.Commit(t.Context(), target, row, &stream.Position{}, nil); err != nil {
			t.Fatal(err)
		}
		b.flush()
		b.sent("t: aa", "t: bb")
		b.described("Row1", "Row2")
	})
	t.Run("serializers append", func(t *testing.T) {
		b := newBench(t, &far{}, nil)
		b.write("aa")
		target, err := b.w.Target(tableT)
		if err != nil {
			t.Fatal(err)
		}
		for _, own := range [][]byte{nil, []byte("my own slice")} {
			b.w.Begin(target)
			if err := b.w.Commit(t.Context(), target, own, &stream.Position{}, nil); !errors.Is(err, errNotAppended) {
				t.Errorf("%q: got %v", own, err)
			}
		}
		b.flush()
		b.sent("t: aa")
	})
	t.Run("names are checked", func(t *testing.T) {
		b := newBench(t, &far{}, nil)
		if err := b.writeTo(table.Destination{Project: "p", Dataset: "d", Table: "a/b"}, "aa"); !errors.Is(err, table.ErrDestination) {
			t.Errorf("got %v", err)
		}
	})
}

func TestFlush(t *testing.T) {
	t.Parallel()
	t.Run("SW-16_rows found bad while waiting", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"hold", "ok"}}}, nil)
		b.write("aa", "bb")
		if err := b.w.sendPending(t.Context()); err != nil {
			t.Fatal(err)
		}
		go b.far.answer("rows 0")
		b.flush()
		if d := cmp.Diff([]string{"open", "handle", "flush"}, b.handler.events); d != "" {
			t.Error(d)
		}
		if f := b.handler.records[0]; string(f.Row) != "aa" || f.At.String() != "f@0" || !strings.Contains(f.Reason, "row 0 is bad") {
			t.Errorf("got %+v", f)
		}
	})
	t.Run("SW-17_handler cannot flush", func(t *testing.T) {
		b := newBench(t, &far{}, nil)
		b.write("aa")
		b.flush()
		b.clock = b.clock.Add(2 * time.Hour)
		b.handler.flush = errHandler
		if err := b.w.Flush(t.Context(), false); !errors.Is(err, errHandler) {
			t.Errorf("got %v", err)
		}
		if b.counts.series["open"] != 1 {
			t.Error("evicted all the same")
		}
	})
	t.Run("SW-18_SW-20_idle", func(t *testing.T) {
		b := newBench(t, &far{}, func(c *Config) { c.PerDestinationMetrics = true })
		b.write("aa")
		b.flush()
		b.clock = b.clock.Add(time.Hour)
		b.flush()
		if b.counts.series["open"] != 1 {
			t.Error("evicted at the timeout")
		}
		b.clock = b.clock.Add(1)
		b.flush()
		if b.counts.series["open"] != 0 || len(b.w.targets) != 0 {
			t.Error("kept beyond the timeout")
		}
		b.write("bb")
		b.flush()
		if len(b.far.opened) != 2 {
			t.Errorf("opened %v", b.far.opened)
		}
		b.sees("B=4 S=2 S[p.d.t]=2")
	})
	t.Run("SW-19_final flush evicts nothing", func(t *testing.T) {
		b := newBench(t, &far{}, nil)
		b.write("aa")
		b.flush()
		b.clock = b.clock.Add(2 * time.Hour)
		if err := b.w.Flush(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if b.counts.series["open"] != 1 {
			t.Error("evicted")
		}
	})
	t.Run("SW-25_append refused synchronously", func(t *testing.T) {
		b := newBench(t, &far{refuse: errors.New("closed")}, nil)
		b.write("aa")
		if err := b.w.Flush(t.Context(), false); !errors.Is(err, b.far.refuse) {
			t.Errorf("got %v", err)
		}
		b.sees("")
		if err := b.w.Flush(t.Context(), false); err == nil {
			t.Error("the batch was lost and a later flush says nothing")
		}
	})
	t.Run("a row that memory has no room for waits like any other", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"hold"}}}, func(c *Config) {
			c.Options.MaxBufferedBytes, c.Options.MaxAppendBytes = 1000, 400
		})
		row, held := strings.Repeat("x", 50), func() int { return b.w.pending + int(b.w.load.Load()) }
		for held() < 900 {
			b.write(row)
		}
		x, err := b.w.Target(tableT)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if buf := append(b.w.Begin(x), row...); !b.w.Fill(x, buf, &stream.Position{}) {
				break
			}
		}
		if n := held(); n < 900 || n > 1000 {
			t.Errorf("%d bytes are held of 1000", n)
		}
	})
	t.Run("for want of memory tables send by turns", func(t *testing.T) {
		b := newBench(t, &far{}, func(c *Config) { c.Options.MaxBufferedBytes, c.Options.MaxAppendBytes = 1000, 100 })
		for i := range 25 { // rows of 52 bytes with their frames: half of the memory is 9 of them, and one is sent for each more
			if err := b.writeTo(tableOf(fmt.Sprint("t", i%20)), strings.Repeat("x", 50)); err != nil {
				t.Fatal(err)
			}
			if b.w.pending > 500 {
				t.Fatalf("%d bytes are pending", b.w.pending)
			}
		}
		var want []string
		for i := range 18 {
			want = append(want, fmt.Sprintf("t%d: xxxxxxxx", i))
		}
		b.sent(want...)
	})
	t.Run("memory is bounded", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"hold"}}}, func(c *Config) { c.Options.MaxBufferedBytes = 1000 })
		done := make(chan error)
		go func() {
			for i := range 100 { // 100 tables with one row each: no batch ever fills
				if err := b.writeTo(tableOf(fmt.Sprint("t", i)), strings.Repeat("x", 50)); err != nil {
					done <- err
					return
				}
				if held := int64(b.w.pending) + b.w.load.Load(); held > 1000+52 {
					done <- fmt.Errorf("%d bytes are held", held)
					return
				}
			}
			done <- nil
		}()
		for {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				return
			default:
			}
			b.far.mu.Lock()
			held := len(b.far.held)
			b.far.mu.Unlock()
			if held > 0 {
				b.far.answer("ok")
			}
		}
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	t.Run("SW-23_with an unanswered append", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"hold"}}, closing: errors.New("close")}, small(1))
		b.handler.closing = errHandler
		b.write("aa", "bb")
		err := b.w.Close()
		if !errors.Is(err, b.far.closing) || !errors.Is(err, errHandler) {
			t.Errorf("got %v", err)
		}
		if b.counts.series["inFlight"] != 0 || b.counts.series["open"] != 0 {
			t.Errorf("gauges: %s", b.counts)
		}
		if d := cmp.Diff([]string{"open", "close"}, b.handler.events); d != "" {
			t.Error(d)
		}
		if err := b.w.Close(); err != nil || b.far.closed != 1 {
			t.Errorf("second close: %v, released %d times", err, b.far.closed)
		}
		b.far.answer("UNAVAILABLE") // too late to matter
		if err := b.writeTo(tableT, "cc"); err == nil {
			t.Error("a closed writer takes rows")
		}
	})
	t.Run("SW-23_the handler is closed although a release panics", func(t *testing.T) {
		b := newBench(t, &far{panics: true}, nil)
		b.write("aa")
		func() {
			defer func() {
				if p := recover(); p != "release" {
					t.Errorf("the panic became %v", p)
				}
			}()
			_ = b.w.Close()
		}()
		if d := cmp.Diff([]string{"open", "close"}, b.handler.events); d != "" {
			t.Error(d)
		}
		if b.counts.series["inFlight"] != 0 || b.counts.series["open"] != 0 {
			t.Errorf("gauges: %s", b.counts)
		}
	})
	t.Run("handler cannot be made", func(t *testing.T) {
		b := newBench(t, &far{}, nil)
		cfg := b.w.cfg
		cfg.Failures = noHandler{}
		if _, err := newWriter(t.Context(), cfg, func() remote { t.Error("connected first"); return nil }); !errors.Is(err, errHandler) {
			t.Errorf("got %v", err)
		}
	})
}

// keeping is a remote that takes every batch and keeps its size.
type keeping struct {
	*far
	sizes []int
}

func (k *keeping) open(context.Context, table.Destination) (appender, error) { return k, nil }

func (k *keeping) append(_ context.Context, c *call) error {
	k.sizes = append(k.sizes, c.size)
	c.load.Add(int64(c.size))
	c.finish(okAnswer, nil)
	return nil
}

type noHandler struct{}

func (noHandler) NewHandler(context.Context, stream.HandlerContext) (stream.FailureHandler, error) {
	return nil, errHandler
}

func TestTransientAndTerminal(t *testing.T) {
	t.Parallel()
	for code, name := range map[string]string{"UNAVAILABLE": "UNAVAILABLE", "ABORTED": "ABORTED", "INTERNAL": "INTERNAL",
		"CANCELLED": "CANCELLED", "DEADLINE_EXCEEDED": "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED": "RESOURCE_EXHAUSTED", "UNKNOWN": "UNKNOWN"} {
		t.Run("SW-26_"+code, func(t *testing.T) {
			b := newBench(t, &far{appends: map[string][]string{"": {code, "ok"}}}, nil)
			b.write("aa")
			b.flush()
			b.sent("t: aa", "t: aa")
			b.sees("B=2 R=1 S=1 X[" + name + "]=1")
			if len(b.far.opened) != 2 || len(b.sleeps) != 0 {
				t.Errorf("opened %v, slept %v", b.far.opened, b.sleeps)
			}
			if got := b.w.Tally(); got != (stream.Tally{Written: 1, Bytes: 2}) {
				t.Errorf("tally %+v", got)
			}
		})
	}
	t.Run("SW-27_always", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"UNAVAILABLE"}}}, nil)
		b.write("aa")
		err := b.w.Flush(t.Context(), false)
		var ae *AppendError
		if !errors.Is(err, retry.ErrBudgetSpent) || !errors.As(err, &ae) || ae.Attempts != 3 || !strings.Contains(err.Error(), "attempts=3") {
			t.Errorf("got %v", err)
		}
		b.sees("B=2 R=3 S=1 X[UNAVAILABLE]=4")
		if d := cmp.Diff([]time.Duration{time.Second, time.Second}, b.sleeps); d != "" {
			t.Error(d)
		}
	})
	t.Run("SW-28_no status", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"plain"}}}, nil)
		b.write("aa")
		if err := b.w.Flush(t.Context(), false); err == nil {
			t.Error("no error")
		}
		b.sees("B=2 S=1 X[UNCLASSIFIED]=1")
	})
	t.Run("SW-29_SW-30_invalid argument between writes", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"INVALID_ARGUMENT"}}}, small(1))
		b.write("aa", "bb")
		first := b.writeTo(tableT, "cc")
		if first == nil || errors.Is(first, retry.ErrBudgetSpent) {
			t.Fatalf("got %v", first)
		}
		for range 2 {
			if err := b.writeTo(tableT, "dd"); !errors.Is(err, first) {
				t.Errorf("later write: %v", err)
			}
			if err := b.w.Flush(t.Context(), false); !errors.Is(err, first) {
				t.Errorf("later flush: %v", err)
			}
		}
		b.sent("t: aa")
		b.sees("B=2 S=1 X[INVALID_ARGUMENT]=1")
	})
	t.Run("SW-31_repaired before the next record", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"ABORTED", "ok"}}}, small(1))
		b.write("aa", "bb", "cc")
		b.flush()
		b.sent("t: aa", "t: aa", "t: bb", "t: cc")
		b.sees("B=6 R=1 S=3 X[ABORTED]=1")
	})
	for _, detail := range []storagepb.StorageError_StorageErrorCode{storagepb.StorageError_STREAM_FINALIZED,
		storagepb.StorageError_INVALID_STREAM_STATE, storagepb.StorageError_STREAM_NOT_FOUND} {
		t.Run("SW-32_"+detail.String(), func(t *testing.T) {
			b := newBench(t, &far{appends: map[string][]string{"": {"hold", "ok"}}}, nil)
			b.write("aa")
			b.sendPending()
			b.far.answerWith(answer(detailed(codes.InvalidArgument, detail)))
			b.flush()
			b.sent("t: aa", "t: aa")
			b.sees("B=2 R=1 S=1 X[INVALID_ARGUMENT]=1")
			if len(b.far.opened) != 2 || len(b.far.created) != 0 {
				t.Errorf("opened %v, created %v", b.far.opened, b.far.created)
			}
		})
	}
	for name, c := range map[string]struct{ first, second, sees string }{
		"SW-33_dead connection": {"dead", "closed", "B=4 R=2 S=2 X[UNCLASSIFIED]=2"},
		"SW-34_two batches":     {"UNAVAILABLE", "UNAVAILABLE", "B=4 R=2 S=2 X[UNAVAILABLE]=2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, &far{appends: map[string][]string{"": {"hold", "hold", "ok"}}}, small(1))
			b.write("aa", "bb")
			b.sendPending()
			b.far.answer(c.first)
			b.far.answer(c.second)
			b.flush()
			b.sent("t: aa", "t: bb", "t: aa", "t: bb")
			b.sees(c.sees)
			if len(b.far.opened) != 2 {
				t.Errorf("opened %v", b.far.opened)
			}
		})
	}
	t.Run("SW-36_sibling has a bad row", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"hold", "hold", "ok"}}}, nil)
		b.write("aa")
		b.sendPending()
		b.write("bb", "cc")
		b.sendPending()
		b.far.answer("UNAVAILABLE")
		b.far.answer("rows 0")
		b.flush()
		b.sent("t: aa", "t: bb cc", "t: aa", "t: cc")
		b.sees("B=6 E=1 R=2 S=3 X[INVALID_ARGUMENT]=1 X[UNAVAILABLE]=1")
	})
	t.Run("SW-40_open fails once while repairing", func(t *testing.T) {
		b := newBench(t, &far{opens: []string{"ok", "UNAVAILABLE", "ok"}, appends: map[string][]string{"": {"UNAVAILABLE", "ok"}}}, nil)
		b.write("aa")
		b.flush()
		b.sees("B=2 R=1 S=1 X[UNAVAILABLE]=1")
		if len(b.far.opened) != 3 || len(b.sleeps) != 1 {
			t.Errorf("opened %v, slept %v", b.far.opened, b.sleeps)
		}
	})
	t.Run("SW-35_sibling is terminal", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"hold", "hold"}}}, small(1))
		b.write("aa", "bb")
		if err := b.w.sendPending(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.far.answer("UNAVAILABLE")
		b.far.answer("INVALID_ARGUMENT")
		if err := b.w.Flush(t.Context(), false); err == nil {
			t.Error("no error")
		}
		b.sees("B=4 S=2 X[INVALID_ARGUMENT]=1 X[UNAVAILABLE]=1")
		b.w.Close()
		if n := b.counts.series["inFlight"]; n != 0 {
			t.Errorf("SW-158: %d in flight after close", n)
		}
	})
	t.Run("SW-37_SW-157_other tables are left alone", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"u": {"hold"}, "": {"UNAVAILABLE", "ok"}}}, nil)
		if err := b.writeTo(tableOf("u"), "uu"); err != nil {
			t.Fatal(err)
		}
		if err := b.w.sendPending(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			if err := b.writeTo(tableOf("v"), "vv"); err != nil {
				t.Fatal(err)
			}
		}
		v, _ := b.w.Target(tableOf("v"))
		b.write("aa")
		tt, _ := b.w.Target(tableT)
		full := tt.pending
		tt.pending = nil
		if err := b.w.way.send(t.Context(), tt, full); err != nil {
			t.Fatal(err)
		}
		if err := b.w.Enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		if v.pending.count != 1000 {
			t.Errorf("%d rows of v are left", v.pending.count)
		}
		if d := cmp.Diff([]string{"u", "v", "t", "t"}, b.far.opened); d != "" {
			t.Error(d)
		}
		b.sent("u: uu", "t: aa", "t: aa")
		b.far.answer("ok")
		b.flush()
	})
	t.Run("SW-38_ctx ends in backoff", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("lane stopped")
		b := newBench(t, &far{appends: map[string][]string{"": {"UNAVAILABLE"}}}, func(c *Config) {
			c.Pacer.Sleep = func(ctx context.Context, _ time.Duration) error {
				cancel(cause)
				return retry.Sleep(ctx, time.Hour)
			}
		})
		b.write("aa")
		if err := b.w.Flush(ctx, false); !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
		b.sent("t: aa", "t: aa")
		if n := b.counts.series["X[UNAVAILABLE]"]; n != 2 {
			t.Errorf("X=%d", n)
		}
		if err := b.w.Flush(t.Context(), false); err == nil {
			t.Error("the batch was lost and a later flush says nothing")
		}
	})
	t.Run("SW-39_unsent rows are carried over", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"UNAVAILABLE", "ok"}}}, small(4))
		b.write("aa", "bb", "cc") // sends the first two
		b.write("dd")             // repairs them before it is taken
		b.sent("t: aa bb", "t: aa bb")
		b.flush()
		b.sent("t: aa bb", "t: aa bb", "t: cc dd")
	})
	t.Run("SW-41_first open", func(t *testing.T) {
		b := newBench(t, &far{opens: []string{"UNAVAILABLE", "ok"}}, nil)
		b.write("aa")
		b.flush()
		b.sees("B=2 S=1")
		b = newBench(t, &far{opens: []string{"PERMISSION_DENIED"}}, never)
		err := b.writeTo(tableT, "aa")
		if err == nil || !strings.HasPrefix(err.Error(), "open write stream for p.d.t failed") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("SW-153_credentials say no more than they do", func(t *testing.T) {
		b := newBench(t, &far{}, nil)
		b.w.remote = noCredentials{b.far}
		if err := b.writeTo(tableT, "aa"); err != gcp.ErrCredentials {
			t.Errorf("got %v", err)
		}
	})
}

type noCredentials struct{ *far }

func (noCredentials) open(context.Context, table.Destination) (appender, error) {
	return nil, fmt.Errorf("somewhere: %w", gcp.ErrCredentials)
}

func TestRefusedRows(t *testing.T) {
	t.Parallel()
	t.Run("SW-42_one of three", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"rows 1", "ok"}}}, func(c *Config) { c.KeepOriginals = true })
		b.write("aa", "bb", "cc")
		b.flush()
		b.sent("t: aa bb cc", "t: aa cc")
		b.sees("B=6 E=1 R=1 S=3 X[INVALID_ARGUMENT]=1")
		f := b.handler.records[0]
		if string(f.Row) != "bb" || string(f.Original) != "<bb>" || f.At != (stream.Location{Name: "f", Row: 1}) || f.Connector != "bigquery" {
			t.Errorf("got %+v", f)
		}
		if got := b.w.Tally(); got != (stream.Tally{Written: 2, DeadLettered: 1, Bytes: 4}) {
			t.Errorf("tally %+v", got)
		}
		reports := b.ledger.Reports()
		if last := reports[0].LastError; last == nil || last.Code != "INVALID_ARGUMENT" || !strings.Contains(last.Text, "rows were refused") {
			t.Errorf("last error %+v", last)
		}
		reports[0].LastError = nil
		want := []outcome.Report{{Destination: tableT, Rows: 2, Bytes: 4, DeadLettered: 1, AppendErrors: 1, AppendRetries: 1}}
		if d := cmp.Diff(want, reports); d != "" {
			t.Error(d)
		}
	})
	t.Run("SW-43_all", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"rows 0 1"}}}, nil)
		b.write("aa", "bb")
		b.flush()
		b.sees("B=4 E=2 S=2 X[INVALID_ARGUMENT]=1")
		if len(b.far.opened) != 2 {
			t.Errorf("opened %v", b.far.opened)
		}
	})
	t.Run("SW-44_FailJob", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"rows 0"}}}, failJob)
		b.write("aa")
		if err := b.w.Flush(t.Context(), false); !errors.Is(err, stream.ErrRecordFailed) || !strings.Contains(err.Error(), "row 0 is bad") {
			t.Errorf("got %v", err)
		}
		if b.counts.series["E"] != 1 || b.counts.series["R"] != 0 {
			t.Errorf("counts %s", b.counts)
		}
	})
	t.Run("SW-45_rows listed on an outage", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"hold", "ok"}}}, nil)
		b.write("aa", "bb")
		b.sendPending()
		b.far.answerWith(answer(status.New(codes.Unavailable, "out"), 0))
		b.flush()
		b.sent("t: aa bb", "t: aa bb")
		b.sees("B=4 R=1 S=2 X[UNAVAILABLE]=1")
	})
	t.Run("SW-46_rows listed without a right", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"hold", "ok"}}}, nil)
		b.write("aa", "bb")
		b.sendPending()
		b.far.answerWith(answer(status.New(codes.PermissionDenied, "no"), 0))
		b.flush()
		b.sent("t: aa bb", "t: bb")
		b.sees("B=4 E=1 R=1 S=2 X[PERMISSION_DENIED]=1")
		if len(b.far.created) != 0 {
			t.Errorf("created %v", b.far.created)
		}
	})
	t.Run("SW-47_no such row", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"rows 5"}}}, nil)
		b.write("aa")
		if err := b.w.Flush(t.Context(), false); !errors.Is(err, ErrNoProgress) {
			t.Errorf("got %v", err)
		}
		if b.counts.series["E"] != 0 || b.counts.series["R"] != 1 || b.counts.series["X[INVALID_ARGUMENT]"] != 2 {
			t.Errorf("counts %s", b.counts)
		}
	})
	t.Run("SW-49_twice", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"rows 0", "rows 0", "ok"}}}, func(c *Config) { c.KeepOriginals = true })
		b.write("aa", "bb", "cc")
		b.flush()
		b.sent("t: aa bb cc", "t: bb cc", "t: cc")
		b.sees("B=6 E=2 R=2 S=3 X[INVALID_ARGUMENT]=2")
		if len(b.sleeps) != 0 {
			t.Errorf("slept %v", b.sleeps)
		}
		if f := b.handler.records[1]; f.At.Row != 1 || string(f.Original) != "<bb>" {
			t.Errorf("the second one is %+v", f)
		}
	})
	t.Run("SW-50_handler fails at the second of three", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"rows 0 1 2"}}}, nil)
		b.handler.fail = 2
		b.write("aa", "bb", "cc")
		if err := b.w.Flush(t.Context(), false); !errors.Is(err, errHandler) {
			t.Errorf("got %v", err)
		}
		if len(b.handler.records) != 2 || b.counts.series["E"] != 2 {
			t.Errorf("%d offered, %s", len(b.handler.records), b.counts)
		}
	})
}

func TestMissingTables(t *testing.T) {
	t.Parallel()
	t.Run("SW-53_created once", func(t *testing.T) {
		for _, code := range []string{"PERMISSION_DENIED", "NOT_FOUND"} {
			b := newBench(t, &far{appends: map[string][]string{"": {code, "ok"}}}, nil)
			b.write("aa")
			b.flush()
			b.sees("B=2 R=1 S=1 T=1 X[" + code + "]=1")
			if !b.ledger.Reports()[0].Created {
				t.Error("the report does not say so")
			}
		}
	})
	t.Run("SW-54_denied again after the creation", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"PERMISSION_DENIED", "PERMISSION_DENIED", "ok"}}}, nil)
		b.write("aa")
		b.flush()
		b.sees("B=2 R=2 S=1 T=1 X[PERMISSION_DENIED]=2")
		if len(b.far.created) != 1 || len(b.sleeps) != 1 {
			t.Errorf("created %v, slept %v", b.far.created, b.sleeps)
		}
	})
	t.Run("SW-64_unavailable, then denied", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"UNAVAILABLE", "PERMISSION_DENIED", "ok"}}}, nil)
		b.write("aa")
		b.flush()
		b.sees("B=2 R=2 S=1 T=1 X[PERMISSION_DENIED]=1 X[UNAVAILABLE]=1")
		if len(b.far.created) != 1 {
			t.Errorf("created %v", b.far.created)
		}
	})
	t.Run("SW-55_denied for good", func(t *testing.T) {
		b := newBench(t, &far{appends: map[string][]string{"": {"PERMISSION_DENIED"}}}, nil)
		b.write("aa")
		err := b.w.Flush(t.Context(), false)
		if err == nil || !strings.Contains(err.Error(), "table creation was attempted") || !errors.Is(err, retry.ErrBudgetSpent) {
			t.Errorf("got %v", err)
		}
		b.sees("B=2 R=3 S=1 T=1 X[PERMISSION_DENIED]=4")
		if len(b.far.created) != 1 {
			t.Errorf("created %v", b.far.created)
		}
	})
	t.Run("SW-56_never", func(t *testing.T) {
		for code, missing := range map[string]bool{"PERMISSION_DENIED": false, "NOT_FOUND": true} {
			b := newBench(t, &far{appends: map[string][]string{"": {code}}}, never)
			b.write("aa")
			if err := b.w.Flush(t.Context(), false); err == nil || errors.Is(err, ErrTableMissing) != missing ||
				strings.Contains(err.Error(), "does not exist") != missing {
				t.Errorf("%s: got %v", code, err)
			}
			if len(b.far.created) != 0 || b.counts.series["X["+code+"]"] != 1 {
				t.Errorf("created %v, %s", b.far.created, b.counts)
			}
		}
	})
	t.Run("SW-57_found when opening", func(t *testing.T) {
		b := newBench(t, &far{opens: []string{"PERMISSION_DENIED", "ok"}}, nil)
		b.write("aa")
		b.flush()
		b.sees("B=2 S=1 T=1")
	})
	t.Run("SW-58_creation refused", func(t *testing.T) {
		b := newBench(t, &far{opens: []string{"PERMISSION_DENIED first"}, creates: []string{"FAILED_PRECONDITION second"}}, nil)
		err := b.writeTo(tableT, "aa")
		if err == nil || !strings.Contains(err.Error(), "second; it was needed because of: ") || len(b.far.failed) != 2 {
			t.Fatalf("got %v", err)
		}
		for _, cause := range b.far.failed {
			if !errors.Is(err, cause) {
				t.Errorf("%v does not hold %v", err, cause)
			}
		}
		b.sees("")
		if len(b.far.created) != 1 {
			t.Errorf("created %v", b.far.created)
		}
	})
	t.Run("SW-59_somebody else was faster", func(t *testing.T) {
		f := answering("NOT_FOUND", "ok")
		f.creates = []string{"exists"}
		b := newBench(t, f, nil)
		b.write("aa")
		b.flush()
		b.sees("B=2 R=1 S=1 T=1 X[NOT_FOUND]=1")
		if b.ledger.Reports()[0].Created {
			t.Error("the report claims that the table is this sink's")
		}
	})
	t.Run("SW-69_a table that is there", func(t *testing.T) {
		b := newBench(t, &far{}, func(c *Config) {
			c.Create.Options = func(table.Destination) (table.CreateOptions, error) {
				t.Error("asked for options")
				return table.CreateOptions{}, nil
			}
		})
		b.write("aa")
		b.flush()
		b.sees("B=2 S=1")
	})
	t.Run("SW-68_SW-69_options are asked for once", func(t *testing.T) {
		asked := 0
		b := newBench(t, &far{appends: map[string][]string{"": {"NOT_FOUND", "ok"}}}, func(c *Config) {
			c.Create.Options = func(dst table.Destination) (table.CreateOptions, error) {
				asked++
				return table.CreateOptions{Cluster: []string{dst.Table}}, nil
			}
		})
		b.write("aa")
		b.flush()
		b.write("bb")
		b.flush()
		if asked != 1 || len(b.far.options) != 1 || !cmp.Equal(b.far.options[0].Cluster, []string{"t"}) {
			t.Errorf("asked %d times, created with %v", asked, b.far.options)
		}
	})
}

func TestSchemaMismatchTellsWhatToDo(t *testing.T) {
	t.Parallel()
	b := newBench(t, &far{appends: map[string][]string{"": {"hold"}}}, nil)
	b.write("aa")
	if err := b.w.sendPending(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.far.held[0].finish(answer(mismatch), nil)
	err := b.w.Flush(t.Context(), false)
	if !errors.Is(err, ErrSchemaMismatch) || !strings.Contains(err.Error(), "ALTER TABLE") {
		t.Errorf("SW-80: got %v", err)
	}
	if n := b.counts.series["X[INVALID_ARGUMENT]"]; n != 1 {
		t.Errorf("X=%d", n)
	}
}

func TestRowsAreSentAsTheyWere(t *testing.T) {
	t.Parallel()
	// SW-159: what is appended again is what was appended first, whatever was written in between.
	b := newBench(t, &far{appends: map[string][]string{"": {"hold", "ok"}}}, nil)
	b.write("aa", "bb")
	if err := b.w.sendPending(t.Context()); err != nil {
		t.Fatal(err)
	}
	sent := bytes.Clone(b.w.flight.entries[0].batch.rows.data)
	b.write("cc", "dd", "ee")
	if got := b.w.flight.entries[0].batch.rows.data; !bytes.Equal(got, sent) {
		t.Errorf("rows changed from %q to %q", sent, got)
	}
	b.far.answer("UNAVAILABLE")
	b.flush()
	b.sent("t: aa bb", "t: cc dd ee", "t: aa bb")
}

func TestNoRowDataInLogs(t *testing.T) {
	t.Parallel()
	b := newBench(t, &far{appends: map[string][]string{"": {"PERMISSION_DENIED", "UNAVAILABLE", "rows 0", "ok"}}}, nil)
	b.write("secretrow", "other")
	b.flush()
	if log := b.log.String(); !strings.Contains(log, "creating it") || !strings.Contains(log, "trying again") || strings.Contains(log, "secret") {
		t.Errorf("log: %s", log)
	}
}
