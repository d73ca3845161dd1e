package bigquery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/added"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

var tableT = table.Destination{Project: "p", Dataset: "d", Table: "t"}

// nowhere is a connection that nobody answers: tests that use it make no calls.
var nowhere = Connection{GRPCEndpoint: "127.0.0.1:1", RESTEndpoint: "127.0.0.1:1"}

// badRows is a serializer that fails as the document says, and counts its calls.
type badRows struct {
	eventRows
	calls *int
}

func (b badRows) AppendRow(buf []byte, dst table.Destination, doc []byte) ([]byte, error) {
	*b.calls++
	switch string(doc) {
	case "panic":
		panic("document of doom")
	case "error":
		return append(buf, "half a row"...), &row.Error{Kind: row.KindType, Path: "a.b", Offset: -1, Msg: "no"}
	case "configuration":
		return buf, &row.Error{Kind: row.KindCase, Path: "computed", Offset: -1, Msg: "no"}
	case "unavailable":
		return buf, fmt.Errorf("%w: the registry is down", row.ErrUnavailable)
	case "stream skip":
		return buf, fmt.Errorf("filtered: %w", stream.ErrSkip)
	}
	return b.eventRows.AppendRow(buf, dst, doc)
}

func TestRecordsThatCostNothing(t *testing.T) {
	t.Parallel()
	type free struct {
		*lane
		meter *tally
		calls *int // of the serializer
	}
	setup := func(t *testing.T, to Resolver[[]byte], failures stream.FailurePolicy) free {
		t.Helper()
		f := free{meter: newTally(), calls: new(int)}
		sink, err := NewSink(to, row.Serializer[[]byte](badRows{newEventRows(t), f.calls}),
			SinkOptions{Connection: nowhere, Failures: failures, PerDestinationMetrics: true})
		if err != nil {
			t.Fatal(err)
		}
		f.lane = newLane(t, sink, f.meter)
		return f
	}
	counts := func(t *testing.T, l free, want string) {
		t.Helper()
		if got := l.meter.String(); got != want {
			t.Errorf("counts %q, want %q", got, want)
		}
	}
	write := func(l free, doc string) error {
		return l.writer.Write(l.Context(), &stream.Record[[]byte]{Value: []byte(doc), At: stream.Position{Split: "f", Row: 7}})
	}
	for name, want := range map[string]string{"error": "R-TYPE: field a.b: no", "panic": "serializer panicked: document of doom"} {
		t.Run("SW-6_serializer "+name, func(t *testing.T) {
			taken := &taking{}
			l := setup(t, To[[]byte](tableT), taken)
			if err := write(l, name); err != nil {
				t.Fatal(err)
			}
			l.flush()
			f := taken.records[0]
			if f.Row != nil || f.Reason != want || f.Destination != "p.d.t" || f.Connector != "bigquery" || f.At.String() != "f@7" {
				t.Errorf("got %+v", f)
			}
			if got := l.sink.Report(); got[0].DeadLettered != 1 || got[0].Rows != 0 {
				t.Errorf("report %+v", got)
			}
			counts(t, l, "send_errors of p.d.t=1 send_errors=1")
		})
		t.Run("SW-7_FailJob "+name, func(t *testing.T) {
			l := setup(t, To[[]byte](tableT), nil)
			err := write(l, name)
			var at *stream.PositionError
			if !errors.Is(err, stream.ErrRecordFailed) || !errors.As(err, &at) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
			counts(t, l, "send_errors of p.d.t=1 send_errors=1")
		})
	}
	// An error of configuration ends the job whatever the policy: a policy that drops would swallow it once per record
	// and leave an empty table under a job that looks healthy (SER-133).
	t.Run("an error of configuration", func(t *testing.T) {
		taken := &taking{}
		l := setup(t, To[[]byte](tableT), taken)
		err := write(l, "configuration")
		var at *stream.PositionError
		var e *row.Error
		var lasting interface{ Permanent() bool }
		if !errors.As(err, &at) || !errors.As(err, &e) || errors.Is(err, stream.ErrRecordFailed) || len(taken.records) != 0 || !errors.As(err, &lasting) {
			t.Errorf("got %v, taken %v", err, taken.records)
		}
	})
	t.Run("SW-13_an added column has the name of another", func(t *testing.T) {
		rows, err := added.New(row.Serializer[[]byte](newEventRows(t)), added.String("ID", added.Nullable, func([]byte) (string, bool, error) { return "x", true, nil }))
		if err != nil {
			t.Fatal(err)
		}
		taken, meter := &taking{}, newTally()
		sink, err := NewSink(To[[]byte](tableT), row.Serializer[[]byte](rows), SinkOptions{Connection: nowhere, Failures: taken})
		if err != nil {
			t.Fatal(err)
		}
		err = newLane(t, sink, meter).writer.Write(t.Context(), &stream.Record[[]byte]{Value: eventDoc(1)})
		var lasting interface{ Permanent() bool }
		if e := new(row.Error); !errors.As(err, &e) || e.Kind != row.KindCase || !errors.As(err, &lasting) || !strings.Contains(err.Error(), "p.d.t") {
			t.Errorf("got %v", err)
		}
		if got := meter.String(); got != "" || len(taken.records) != 0 {
			t.Errorf("counts %q, taken %+v", got, taken.records)
		}
	})
	// What a serializer could not get is no record's fault: no policy may take records for it.
	t.Run("what is unavailable", func(t *testing.T) {
		taken := &taking{}
		l := setup(t, To[[]byte](tableT), taken)
		err := write(l, "unavailable")
		var at *stream.PositionError
		if !errors.As(err, &at) || !errors.Is(err, row.ErrUnavailable) || errors.Is(err, stream.ErrRecordFailed) || len(taken.records) != 0 {
			t.Errorf("got %v, taken %v", err, taken.records)
		}
	})
	for _, doc := range []string{"skip", "stream skip"} {
		t.Run("SW-8_"+doc, func(t *testing.T) {
			taken := &taking{}
			l := setup(t, To[[]byte](tableT), taken)
			if err := write(l, doc); err != nil {
				t.Fatal(err)
			}
			l.flush()
			if len(taken.records) != 0 {
				t.Errorf("taken %+v", taken.records)
			}
			if got := l.writer.(stream.Tallier).Tally(); got != (stream.Tally{Skipped: 1}) {
				t.Errorf("tally %+v", got)
			}
			counts(t, l, "records_skipped=1")
		})
	}
	t.Run("SW-9_unroutable", func(t *testing.T) {
		taken := &taking{}
		l := setup(t, byEvent(t), taken)
		if err := write(l, `{"id":1}`); err != nil {
			t.Fatal(err)
		}
		l.flush()
		if *l.calls != 0 || len(taken.records) != 1 || taken.records[0].Destination != stream.Unresolved || taken.records[0].Row != nil {
			t.Errorf("%d calls of the serializer, taken %+v", *l.calls, taken.records)
		}
		counts(t, l, "send_errors=1")
	})
	t.Run("SW-10_unroutable, FailJob", func(t *testing.T) {
		l := setup(t, byEvent(t), nil)
		err := write(l, `{"id":1}`)
		counts(t, l, "send_errors=1")
		if !errors.Is(err, stream.ErrRecordFailed) || !strings.Contains(err.Error(), "unresolved") || !strings.Contains(err.Error(), `field "event"`) {
			t.Errorf("got %v", err)
		}
	})
	for name, c := range map[string]struct {
		dst  table.Destination
		err  error
		want error
	}{
		"SW-11_no table":       {want: ErrNilResolution},
		"SW-12_resolver fails": {err: context.DeadlineExceeded, want: context.DeadlineExceeded},
		"no table's name":      {dst: table.Destination{Project: "p", Dataset: "d", Table: "a/b"}, want: table.ErrDestination},
	} {
		t.Run(name, func(t *testing.T) {
			taken := &taking{}
			l := setup(t, ResolverFunc[[]byte](func(context.Context, *stream.Record[[]byte]) (table.Destination, error) { return c.dst, c.err }), taken)
			err := write(l, "{}")
			var at *stream.PositionError
			if !errors.Is(err, c.want) || !errors.As(err, &at) || len(taken.records) != 0 {
				t.Errorf("got %v, taken %v", err, taken.records)
			}
			counts(t, l, "")
		})
	}
}

// told is a record that knows what it was read as.
type told struct{ doc, original string }

func (r told) OriginalBytes() []byte { return []byte(r.original) }

func TestOriginalsReachTheHandler(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	rows := newEventRows(t)
	taken := &taking{}
	sink, err := NewSink(To[told](tableT), row.Serializer[told](mapped{rows}), SinkOptions{Connection: l.connection, DefaultStream: quick, Failures: taken})
	if err != nil {
		t.Fatal(err)
	}
	w, err := sink.NewWriter(t.Context(), stream.WriterContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	write := func(doc, original string) {
		t.Helper()
		if err := w.Write(t.Context(), &stream.Record[told]{Value: told{doc, original}}); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"id":1}`, "one")
	if err := w.Flush(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := l.Faults().Add(localbq.Fault{Match: localbq.FaultMatch{Service: "write", Method: "AppendRows"},
		Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "INVALID_ARGUMENT", RowErrors: []localbq.FaultRowError{{Index: 1, Message: "no"}}}}}); err != nil {
		t.Fatal(err)
	}
	write(`{"id":2}`, "two")
	write(`{"id":3}`, "three")
	write(`{"id":"x"}`, "four")
	if err := w.Flush(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range taken.records {
		got = append(got, string(f.Original))
	}
	if d := cmp.Diff([]string{"four", "three"}, got); d != "" {
		t.Error(d)
	}
}

// mapped makes rows of the documents of told records.
type mapped struct{ eventRows }

func (m mapped) AppendRow(buf []byte, dst table.Destination, r told) ([]byte, error) {
	return m.eventRows.AppendRow(buf, dst, []byte(r.doc))
}

func TestSinkOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]SinkOptions{
		"Method is 7":          {Method: 7},
		"Location must be":     {Location: " EU"},
		"Create.Disposition":   {Create: Create{Disposition: 9}},
		"not both":             {Create: Create{Options: table.CreateOptions{Description: "x"}, PerDestination: func(table.Destination) table.CreateOptions { return table.CreateOptions{} }}},
		"Cluster has 5":        {Create: Create{Options: table.CreateOptions{Cluster: []string{"a", "b", "c", "d", "e"}}}},
		"Cluster[1] must not":  {Create: Create{Options: table.CreateOptions{Cluster: []string{"a", " "}}}},
		"Partition needs":      {Create: Create{Options: table.CreateOptions{Partition: table.Partition{ExpirationMs: 5}}}},
		"Partition must have":  {Create: Create{Options: table.CreateOptions{Partition: table.Partition{Type: table.PartitionRange, Field: "n", Start: 5, End: 5, Interval: 1}}}},
		"must name the INT64":  {Create: Create{Options: table.CreateOptions{Partition: table.Partition{Type: table.PartitionRange, End: 5, Interval: 1}}}},
		"must be host:port":    {Connection: Connection{GRPCEndpoint: "x"}},
		"cannot be combined":   {Connection: Connection{GRPCEndpoint: "h:1", KeyFile: "k"}},
		"DefaultStream.MaxApp": {DefaultStream: DefaultStreamOptions{MaxAppendBytes: 9<<20 + 1}},
		"BufferedStream.MaxAp": {Method: MethodExactlyOnce, BufferedStream: BufferedStreamOptions{MaxAppendBytes: 9<<20 + 1}},
		"BufferedStream is":    {BufferedStream: BufferedStreamOptions{MaxAppendBytes: 1}},
		"DefaultStream is":     {Method: MethodExactlyOnce, DefaultStream: DefaultStreamOptions{FlushInterval: time.Second}},
	} {
		_, err := NewSink(To[[]byte](tableT), row.Serializer[[]byte](newEventRows(t)), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err := NewSink[[]byte](nil, nil, SinkOptions{Method: 7, Connection: Connection{RESTEndpoint: "x"}})
	for _, want := range []string{"a destination is required", "a serializer is required", "Method is 7", "RESTEndpoint"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("SW-151: %v does not tell of %q", err, want)
		}
	}
	if _, err := NewSink(To[[]byte](table.Destination{}), row.Serializer[[]byte](newEventRows(t)), SinkOptions{}); !errors.Is(err, table.ErrDestination) {
		t.Errorf("empty destination: %v", err)
	}
	var typedNil *eventRows
	if _, err := NewSink(To[[]byte](tableT), row.Serializer[[]byte](typedNil), SinkOptions{}); err == nil {
		t.Error("a nil serializer passes")
	}
}

func TestBufferedStreamOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]BufferedStreamOptions{
		"MaxAppendBytes must be positive: -1":                                 {MaxAppendBytes: -1},
		"MaxBufferedBytes must be positive: -5":                               {MaxBufferedBytes: -5},
		"RecoveryInitialBackoff must be at least 1ms: 500µs":                  {RecoveryInitialBackoff: time.Millisecond / 2},
		"RecoveryMaxBackoff must be >= BufferedStream.RecoveryInitialBackoff": {RecoveryInitialBackoff: 11 * time.Second},
		"RecoveryMaxAttempts must be positive: -1":                            {RecoveryMaxAttempts: -1},
		"RetryInitialDelay must be at least 1ms: 500µs":                       {RetryInitialDelay: time.Millisecond / 2},
		"RetryMaxDelay must be >= BufferedStream.RetryInitialDelay":           {RetryInitialDelay: 2 * time.Millisecond, RetryMaxDelay: time.Millisecond},
		"RetryDelayMultiplier must be a number of at least 1: 0.5":            {RetryDelayMultiplier: 0.5},
		"RetryMaxAttempts must be positive: -2":                               {RetryMaxAttempts: -2},
		"MaxRetryDuration must be at least 1ms: 1ns":                          {MaxRetryDuration: 1},
		"DestinationIdleTimeout must be at least 1ms: -2ns":                   {DestinationIdleTimeout: -2},
	} {
		if _, err := o.resolve(); err == nil || !strings.Contains(err.Error(), "BufferedStream."+want) {
			t.Errorf("SW-149: got %v, want %s", err, want)
		}
	}
}

func TestDefaultStreamOptions(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for want, o := range map[string]DefaultStreamOptions{
		"MaxAppendBytes must be positive: -1":                                               {MaxAppendBytes: -1},
		"MaxAppendBytes must be at most 9437184: 9437185":                                   {MaxAppendBytes: 9437185},
		"MaxBufferedBytes must be positive: -5":                                             {MaxBufferedBytes: -5},
		"RecoveryInitialBackoff must be at least 1ms: 500µs":                                {RecoveryInitialBackoff: ms / 2},
		"RecoveryMaxBackoff must be at least 1ms: -1ns":                                     {RecoveryMaxBackoff: -1},
		"RecoveryMaxBackoff must be >= DefaultStream.RecoveryInitialBackoff: 10s":           {RecoveryInitialBackoff: 11 * time.Second},
		"RecoveryMaxAttempts must be positive: -1":                                          {RecoveryMaxAttempts: -1},
		"RetryInitialDelay must be at least 1ms: 500µs":                                     {RetryInitialDelay: ms / 2},
		"RetryMaxDelay must be >= DefaultStream.RetryInitialDelay: 1ms < 2ms":               {RetryInitialDelay: 2 * ms, RetryMaxDelay: ms},
		"RetryMaxDelay must be >= DefaultStream.RetryInitialDelay: 0s < 500ms":              {RetryMaxDelay: NoDelay},
		"RetryDelayMultiplier must be a number of at least 1: 0.5":                          {RetryDelayMultiplier: 0.5},
		"RetryMaxAttempts must be positive: -2":                                             {RetryMaxAttempts: -2},
		"MaxRetryDuration must be at least 1ms: 1ns":                                        {MaxRetryDuration: 1},
		"MaxInflightRequests must be positive: -1":                                          {MaxInflightRequests: -1},
		"MaxInflightBytes must be positive: -1":                                             {MaxInflightBytes: -1},
		"MinConnectionsPerRegion must be positive: -1":                                      {MinConnectionsPerRegion: -1},
		"MaxConnectionsPerRegion must be >= DefaultStream.MinConnectionsPerRegion: 20 < 21": {MinConnectionsPerRegion: 21},
		"DestinationIdleTimeout must be at least 1ms: -2ns":                                 {DestinationIdleTimeout: -2},
		"FlushInterval must be at least 1ms: 1µs":                                           {FlushInterval: time.Microsecond},
	} {
		if _, err := o.resolve("DefaultStream"); err == nil || !strings.Contains(err.Error(), "DefaultStream."+want) {
			t.Errorf("SW-149: got %v, want %s", err, want)
		}
	}
	got, err := DefaultStreamOptions{RetryInitialDelay: NoDelay, RetryMaxDelay: NoDelay, MaxRetryDuration: NoLimit, DestinationIdleTimeout: NoLimit}.resolve("DefaultStream")
	if err != nil || got.Resend.Delay(5, 0.9) != 0 || got.MaxRetryDuration != NoLimit || got.IdleTimeout != never {
		t.Errorf("SW-150: %+v, %v", got, err)
	}
	got, err = DefaultStreamOptions{}.resolve("DefaultStream")
	if err != nil || got.MaxAppendBytes != 524_288 || got.Recovery.Attempts != 10 || got.Resend.Attempts != 6 ||
		got.MaxInflightRequests != 100 || got.MaxInflightBytes != 104_857_600 || got.MinConnections != 2 || got.MaxConnections != 20 ||
		got.IdleTimeout != time.Hour || got.MaxRetryDuration != 5*time.Minute {
		t.Errorf("defaults: %+v, %v", got, err)
	}
}

func TestLineage(t *testing.T) {
	t.Parallel()
	dst := table.Destination{Project: "p", Dataset: "d", Table: "t$20260101"}
	sink, err := NewSink(To[[]byte](dst), row.Serializer[[]byte](newEventRows(t)), SinkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Dataset{{Namespace: "bigquery", Name: "p.d.t$20260101", Kind: "bigquery-table", Table: dst}}
	if d := cmp.Diff(want, sink.Lineage()); d != "" {
		t.Error("SW-154:", d)
	}
	for _, o := range []SinkOptions{{Method: MethodExactlyOnce}, {Method: MethodFileLoads, FileLoads: FileLoadOptions{StagingPath: "gs://bucket/x"}}} {
		if sink, err = NewSink(To[[]byte](dst), row.Serializer[[]byte](newEventRows(t)), o); err != nil || !cmp.Equal(want, sink.Lineage()) {
			t.Errorf("SW-154, method %d: %v, %v", o.Method, sink.Lineage(), err)
		}
	}
	constant := ResolverFunc[[]byte](func(context.Context, *stream.Record[[]byte]) (table.Destination, error) { return dst, nil })
	if sink, err = NewSink[[]byte](constant, newEventRows(t), SinkOptions{}); err != nil || len(sink.Lineage()) != 0 {
		t.Errorf("SW-154: %v, %v", sink.Lineage(), err)
	}
}

func TestFlushIntervalIsTheTick(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	o, taken := quick, &taking{}
	o.FlushInterval = time.Second
	w := l.lane(t, SinkOptions{DefaultStream: o, Failures: taken})
	ticking := w.writer.(stream.Ticking)
	if got := ticking.Every(); got != time.Second {
		t.Errorf("every %v", got)
	}
	w.write(eventDoc(0))
	if err := ticking.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int{0}, ids(t, l.Instance, "d.t0")); d != "" {
		t.Error("SW-21:", d)
	}
	if taken.flushes != 1 {
		t.Errorf("SW-21: %d flushes of the handler", taken.flushes)
	}
	if err := w.writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := ticking.Tick(t.Context()); err == nil {
		t.Error("SW-21: a closed writer ticks")
	}
	if got := l.lane(t, SinkOptions{}).writer.(stream.Ticking).Every(); got != 0 {
		t.Errorf("every %v without being asked", got)
	}
}

// SW-22: an engine without timers never calls Tick, and the writer has no timer of its own.
func TestFlushIntervalWithoutTicks(t *testing.T) {
	t.Parallel()
	rows := newEventRows(t)
	synctest.Test(t, func(t *testing.T) {
		taken := &taking{}
		sink, err := NewSink(To[[]byte](tableT), row.Serializer[[]byte](rows), SinkOptions{Connection: nowhere, Failures: taken,
			DefaultStream: DefaultStreamOptions{FlushInterval: time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		w := newLane(t, sink)
		w.write([]byte(`{"id":"no number"}`)) // which the next flush makes durable
		time.Sleep(time.Hour)                 // virtual
		if len(taken.records) != 1 || taken.flushes != 0 {
			t.Errorf("taken %+v, %d flushes", taken.records, taken.flushes)
		}
		w.flush()
		if taken.flushes != 1 {
			t.Errorf("%d flushes after one", taken.flushes)
		}
	})
}

func TestEncoderAndWriterInTwoProcesses(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	taken := &taking{}
	w := l.lane(t, SinkOptions{DefaultStream: quick, Failures: taken})
	e, err := w.sink.NewEncoder(t.Context(), stream.WriterContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	batches := map[string]int{}
	emit := func(b stream.EncodedBatch) error {
		batches[b.Destination]++
		return w.writer.(stream.EncodedWriter).WriteEncoded(t.Context(), b)
	}
	const rows = 60_000
	for i := range rows {
		if err := e.Encode(t.Context(), &stream.Record[[]byte]{Value: eventDoc(i)}, emit); err != nil {
			t.Fatal(err)
		}
	}
	for _, doc := range []string{"skip", `{"event":"t0"}`, "{"} {
		if err := e.Encode(t.Context(), &stream.Record[[]byte]{Value: []byte(doc)}, emit); err != nil {
			t.Fatal(err)
		}
	}
	full := maps.Clone(batches)
	if err := e.Flush(t.Context(), emit); err != nil {
		t.Fatal(err)
	}
	w.write(eventDoc(rows)) // records and batches may be mixed
	w.flush()
	if len(full) != 0 || len(batches) != 3 {
		t.Errorf("emitted %v when full, %v in all", full, batches)
	}
	var got []int
	for i := range 3 {
		got = append(got, ids(t, l.Instance, fmt.Sprintf("d.t%d", i))...)
	}
	slices.Sort(got)
	if len(got) != rows+1 || got[0] != 0 || got[rows] != rows || len(slices.Compact(got)) != rows+1 {
		t.Errorf("%d rows", len(got))
	}
	if len(taken.records) != 2 {
		t.Errorf("taken %+v", taken.records)
	}
}

func TestSinkInstruments(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, in := range SinkInstruments() {
		if seen[in.Name] || !strings.HasPrefix(in.Name, "millrace.bigquery.sink.") || in.Unit == "" || !strings.HasSuffix(in.Help, ".") && !strings.HasSuffix(in.Help, ").") {
			t.Errorf("instrument %+v", in)
		}
		seen[in.Name] = true
	}
}

func TestRecordsByTheRun(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T, to Resolver[[]byte]) (*local, *lane, *taking) {
		t.Helper()
		l, taken := startLocal(t, localbq.Config{}), &taking{}
		sink, err := NewSink(to, row.Serializer[[]byte](badRows{newEventRows(t), new(int)}),
			SinkOptions{Connection: l.connection, Failures: taken})
		if err != nil {
			t.Fatal(err)
		}
		return l, newLane(t, sink), taken
	}
	// "" stands for a good document.
	runOf := func(docs ...string) (run []stream.Record[[]byte]) {
		for i, doc := range docs {
			r := stream.Record[[]byte]{Value: []byte(doc), At: stream.Position{Split: "f", Row: int64(i)}}
			if doc == "" {
				r.Value = eventDoc(i)
			}
			run = append(run, r)
		}
		return run
	}
	write := func(t *testing.T, l *lane, run []stream.Record[[]byte], want int, cause error) {
		t.Helper()
		n, err := l.writer.(stream.RecordsWriter[[]byte]).WriteRecords(t.Context(), run)
		if n != want || !errors.Is(err, cause) {
			t.Fatalf("wrote %d records, %v: want %d and %v", n, err, want, cause)
		}
	}
	ended := func(t *testing.T, l *lane, taken *taking, failed []int64, want stream.Tally) {
		t.Helper()
		var rows []int64
		for _, f := range taken.records {
			rows = append(rows, f.At.Row)
		}
		if !cmp.Equal(rows, failed) {
			t.Errorf("failed records %v, want %v", rows, failed)
		}
		tally := l.writer.(stream.Tallier).Tally()
		if tally.Bytes = 0; tally != want {
			t.Errorf("tally %+v, want %+v", tally, want)
		}
	}
	t.Run("to one table", func(t *testing.T) {
		bq, l, taken := setup(t, To[[]byte](tableT))
		run := runOf("", "error", "", "", "panic", "skip", "panic", "", "stream skip", "", "unavailable", "")
		write(t, l, run, 10, row.ErrUnavailable)
		write(t, l, run[11:], 1, nil)
		l.flush()
		if got, want := ids(t, bq.Instance, "d.t"), []int{0, 2, 3, 7, 9, 11}; !cmp.Equal(got, want) {
			t.Errorf("rows %v, want %v", got, want)
		}
		ended(t, l, taken, []int64{1, 4, 6}, stream.Tally{Written: 6, DeadLettered: 3, Skipped: 2})
	})
	t.Run("to several tables", func(t *testing.T) {
		bq, l, taken := setup(t, ResolverFunc[[]byte](func(_ context.Context, r *stream.Record[[]byte]) (table.Destination, error) {
			dst := table.Destination{Project: "p", Dataset: "d", Table: fmt.Sprint("t", r.At.Row%3)}
			switch string(r.Value) {
			case "nowhere":
				return dst, &Unroutable{Reason: "it is nowhere"}
			case "no name":
				dst.Table = "a\nb"
			}
			return dst, nil
		}))
		run := runOf("", "nowhere", "", "nowhere", "panic", "", "skip", "", "error", "no name", "")
		write(t, l, run, 9, table.ErrDestination)
		write(t, l, run[10:], 1, nil)
		l.flush()
		write(t, l, run[:1], 1, nil) // targets are found again behind a flush
		l.flush()
		for name, want := range map[string][]int{"d.t0": {0, 0}, "d.t1": {7, 10}, "d.t2": {2, 5}} {
			if got := ids(t, bq.Instance, name); !cmp.Equal(got, want) {
				t.Errorf("rows of %s: %v, want %v", name, got, want)
			}
		}
		ended(t, l, taken, []int64{1, 3, 4, 8}, stream.Tally{Written: 6, DeadLettered: 4, Skipped: 1})
	})
}
