package bigquery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/storage"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/api/googleapi"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

var eventSchema = &table.Schema{Fields: []table.Field{
	{Name: "id", Type: table.Int64, Mode: table.Required},
	{Name: "event", Type: table.String},
	{Name: "at", Type: table.Timestamp},
}}

// eventRows makes rows of JSON documents, and skips the document "skip".
type eventRows struct{ *jsonrow.Serializer[[]byte] }

func (e eventRows) AppendRow(buf []byte, dst table.Destination, doc []byte) ([]byte, error) {
	if string(doc) == "skip" {
		return buf, row.ErrSkip
	}
	return e.Serializer.AppendRow(buf, dst, doc)
}

func newEventRows(t testing.TB) eventRows {
	t.Helper()
	s, err := jsonrow.New(func(doc []byte) []byte { return doc }, jsonrow.Fixed(eventSchema), jsonrow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return eventRows{s}
}

// byEvent routes documents to the table their event names.
func byEvent(t testing.TB) Resolver[[]byte] {
	t.Helper()
	to, err := AppendTemplate("p.d.{event}", func(buf, doc []byte, name string) ([]byte, error) {
		if string(doc) == "skip" {
			return append(buf, "t0"...), nil
		}
		return jsonrow.AppendField(buf, doc, name)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func eventDoc(i int) []byte {
	return fmt.Appendf(nil, `{"id":%d,"event":"t%d","at":"2026-01-02T03:04:05Z"}`, i, i%3)
}

// ids are the values of column id in a table, in storage order; none when there is no table.
func ids(t streamtest.TB, bq *localbq.Instance, name string) []int {
	t.Helper()
	batches, err := bq.Batches(name)
	if err != nil {
		return nil
	}
	var out []int
	for _, b := range batches {
		column := b.Column(b.Schema().FieldIndices("id")[0])
		for i := range int(b.NumRows()) {
			n, err := strconv.Atoi(column.ValueStr(i))
			if err != nil {
				t.Fatalf("id %q", column.ValueStr(i))
			}
			out = append(out, n)
		}
	}
	return out
}

// TestSinkAgainstTheLocalService is not parallel to others: it counts the goroutines of the process.
func TestSinkAgainstTheLocalService(t *testing.T) {
	for name, method := range map[string]Method{"default": MethodDefault, "exactly-once": MethodExactlyOnce, "file-loads": MethodFileLoads} {
		t.Run(name, func(t *testing.T) { testSink(t, method) })
	}
}

func testSink(t *testing.T, method Method) {
	streamtest.TestSink(t, streamtest.SinkHarness[[]byte]{
		RealTime: true,
		Open: func(tb streamtest.TB) streamtest.SinkTarget[[]byte] {
			bq, err := localbq.Start(context.Background(), localbq.Config{Project: "p", AutoCreateDataset: true})
			if err != nil {
				tb.Fatalf("start: %v", err)
			}
			var files FileLoadOptions
			if method == MethodFileLoads {
				bucketIn(t, bq)
				if err := bq.CreateDataset("d"); err != nil {
					tb.Fatalf("dataset: %v", err)
				}
				files = FileLoadOptions{StagingPath: "gs://staged/x", MinCheckpointInterval: time.Millisecond, LoadJobPollInitialBackoff: time.Millisecond}
			}
			rows := newEventRows(t)
			to := byEvent(t)
			return streamtest.SinkTarget[[]byte]{
				Sink: func(failures stream.FailurePolicy) stream.Sink[[]byte] {
					s, err := NewSink(to, row.Serializer[[]byte](rows), SinkOptions{Method: method, FileLoads: files,
						Connection: Connection{GRPCEndpoint: bq.GRPC(), RESTEndpoint: bq.REST(), StorageEndpoint: bq.GCS()}, Failures: failures})
					if err != nil {
						tb.Fatalf("NewSink: %v", err)
					}
					return s
				},
				Record:   eventDoc,
				Bad:      func(i int) []byte { return []byte(`{"id":"no number","event":"t0"}`) },
				Skip:     func(int) []byte { return []byte("skip") },
				Scribble: func(doc *[]byte) { copy(*doc, bytes.Repeat([]byte("#"), len(*doc))) },
				Visible: func() []int {
					var all []int
					for i := range 3 {
						all = append(all, ids(tb, bq, fmt.Sprintf("d.t%d", i))...)
					}
					return all
				},
				Close: func() { bq.Close() },
			}
		},
	})
}

// bucketIn makes the bucket staged.
func bucketIn(t testing.TB, bq *localbq.Instance) {
	t.Helper()
	client, err := storage.NewClient(context.Background(), bq.GCSClientOptions()...)
	if err == nil {
		err = errors.Join(client.Bucket("staged").Create(context.Background(), "p", nil), client.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// lane is a writer against a local service.
type lane struct {
	testing.TB
	sink   *Sink[[]byte]
	writer stream.Writer[[]byte]
}

func (l *local) lane(t testing.TB, o SinkOptions) *lane {
	t.Helper()
	o.Connection = l.connection
	sink, err := NewSink(byEvent(t), row.Serializer[[]byte](newEventRows(t)), o)
	if err != nil {
		t.Fatal(err)
	}
	return newLane(t, sink)
}

// newLane opens a lane, which counts on a meter if one is given.
func newLane(t testing.TB, sink *Sink[[]byte], meters ...stream.Meter) *lane {
	t.Helper()
	meter := append(meters, stream.NoMeter)[0]
	w, err := sink.NewWriter(t.Context(), stream.WriterContext{Job: "j", Lanes: 1, Meter: meter, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &lane{t, sink, w}
}

func (l *lane) write(docs ...[]byte) {
	l.Helper()
	for i, doc := range docs {
		r := &stream.Record[[]byte]{Value: doc, At: stream.Position{Split: "f", Row: int64(i)}}
		if err := l.writer.Write(l.Context(), r); err != nil {
			l.Fatal(err)
		}
	}
}

func (l *lane) flush() {
	l.Helper()
	if err := l.writer.Flush(l.Context(), false); err != nil {
		l.Fatal(err)
	}
}

// taking is a failure policy that keeps the records.
type taking struct {
	mu      sync.Mutex // guards what follows
	records []stream.FailedRecord
	flushes int
}

func (k *taking) NewHandler(context.Context, stream.HandlerContext) (stream.FailureHandler, error) {
	return k, nil
}

func (k *taking) Handle(_ context.Context, f *stream.FailedRecord) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := *f
	c.Row, c.Original = bytes.Clone(f.Row), bytes.Clone(f.Original)
	k.records = append(k.records, c)
	return nil
}

func (k *taking) Flush(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flushes++
	return nil
}
func (*taking) Close() error { return nil }

var quick = DefaultStreamOptions{RecoveryInitialBackoff: time.Millisecond, RecoveryMaxBackoff: time.Millisecond,
	RetryInitialDelay: NoDelay, RetryMaxDelay: NoDelay}

func TestSinkCreatesTables(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	o := SinkOptions{DefaultStream: quick, Create: Create{Options: table.CreateOptions{
		Partition: table.Partition{Type: table.PartitionDay, Field: "at"}, Cluster: []string{"event"}}}}
	w := l.lane(t, o)
	w.write(eventDoc(0), eventDoc(1), eventDoc(3))
	w.flush()
	want := []DestinationReport{
		{Destination: table.Destination{Project: "p", Dataset: "d", Table: "t0"}, Rows: 2, Bytes: 2 * 15, Created: true},
		{Destination: table.Destination{Project: "p", Dataset: "d", Table: "t1"}, Rows: 1, Bytes: 15, Created: true},
	}
	// What creating a table takes is told as an append that failed first.
	mending := cmpopts.IgnoreFields(DestinationReport{}, "AppendErrors", "AppendRetries", "LastError")
	if d := cmp.Diff(want, w.sink.Report(), mending); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int{0, 3}, ids(t, l.Instance, "d.t0")); d != "" {
		t.Error(d)
	}
	got, err := TableSchema(t.Context(), l.connection, want[0].Destination)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(eventSchema, got); d != "" {
		t.Error(d)
	}
	// SW-69: a table that exists is not created, and its options stay.
	again := l.lane(t, SinkOptions{DefaultStream: quick})
	again.write(eventDoc(6))
	again.flush()
	if again.sink.Report()[0].Created {
		t.Error("created twice")
	}
}

func TestSinkCreatesDatasetsWhenAsked(t *testing.T) {
	t.Parallel()
	bq, err := localbq.Start(t.Context(), localbq.Config{Project: "p"})
	if err != nil {
		t.Fatal(err)
	}
	defer bq.Close()
	l := &local{bq, Connection{GRPCEndpoint: bq.GRPC(), RESTEndpoint: bq.REST()}}
	w := l.lane(t, SinkOptions{DefaultStream: quick})
	err = w.writer.Write(t.Context(), &stream.Record[[]byte]{Value: eventDoc(1)})
	if err == nil {
		err = w.writer.Flush(t.Context(), true)
	}
	if !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "Create.Datasets") {
		t.Errorf("got %v", err)
	}
	w = l.lane(t, SinkOptions{DefaultStream: quick, Create: Create{Datasets: true}})
	w.write(eventDoc(1))
	w.flush()
	if d := cmp.Diff([]int{1}, ids(t, bq, "d.t1")); d != "" {
		t.Error(d)
	}
}

// SER-1, SER-2, SER-102, SW-8: a skipped record leaves no trace but its count, and a row without a value is a row.
func TestSkippedAndEmptyRows(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	s, err := jsonrow.New(func(doc []byte) []byte { return doc }, jsonrow.Fixed(&table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64}}}),
		jsonrow.Options{IgnoreUnknownFields: true})
	if err != nil {
		t.Fatal(err)
	}
	taken := &taking{}
	sink, err := NewSink(To[[]byte](tableT), row.Serializer[[]byte](eventRows{s}), SinkOptions{Connection: l.connection, DefaultStream: quick, Failures: taken})
	if err != nil {
		t.Fatal(err)
	}
	meter := newTally()
	w := newLane(t, sink, meter)
	w.write([]byte("skip"))
	w.flush()
	if _, err := l.NumRows("d.t"); err == nil || meter.String() != "records_skipped=1" {
		t.Errorf("after a skipped record: the table is there (%v), counts %q", err, meter)
	}
	w.write([]byte(`{"extra":1}`), []byte("skip"), []byte(`{"id":7}`))
	w.flush()
	if n, err := l.NumRows("d.t"); n != 2 || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
	const want = "bytes_sent=2 open_destinations=1 records_sent=2 records_skipped=2 tables_created=1"
	if got := meter.String(); got != want {
		t.Errorf("counts %q, want %q", got, want)
	}
	if len(taken.records) != 0 {
		t.Errorf("taken %+v", taken.records)
	}
}

func TestSinkNeverCreates(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	w := l.lane(t, SinkOptions{DefaultStream: quick, Create: Create{Disposition: CreateNever}})
	err := w.writer.Write(t.Context(), &stream.Record[[]byte]{Value: eventDoc(1)})
	if err == nil {
		err = w.writer.Flush(t.Context(), true)
	}
	var ae *AppendError
	if !errors.As(err, &ae) || ae.Verdict != KindMissingTable {
		t.Errorf("SW-56: got %v", err)
	}
}

func TestSinkSurvivesFaults(t *testing.T) {
	t.Parallel()
	lanes := func(t *testing.T, rules ...localbq.Fault) (*local, *lane) {
		t.Helper()
		l := startLocal(t, localbq.Config{})
		w := l.lane(t, SinkOptions{DefaultStream: quick})
		w.write(eventDoc(0)) // the table is there before anything goes wrong
		w.flush()
		if err := l.Faults().Add(rules...); err != nil {
			t.Fatal(err)
		}
		return l, w
	}
	appends := localbq.FaultMatch{Service: "write", Method: "AppendRows"}
	for name, c := range map[string]struct {
		action localbq.FaultAction
		want   []int // of table t0
	}{
		"SW-137_reset":              {localbq.FaultAction{Reset: true}, []int{0, 3}},
		"acknowledgement lost":      {localbq.FaultAction{LoseAck: true}, []int{0, 3, 3}}, // at least once
		"SW-135_UNAVAILABLE":        {localbq.FaultAction{Status: &localbq.FaultStatus{Code: "UNAVAILABLE"}}, []int{0, 3}},
		"SW-134_RESOURCE_EXHAUSTED": {localbq.FaultAction{Status: &localbq.FaultStatus{Code: "RESOURCE_EXHAUSTED"}}, []int{0, 3}},
		"SW-26_UNKNOWN":             {localbq.FaultAction{Status: &localbq.FaultStatus{Code: "UNKNOWN"}}, []int{0, 3}},
		"SW-32_stream finalized": {localbq.FaultAction{Status: &localbq.FaultStatus{Code: "INVALID_ARGUMENT", StorageError: "STREAM_FINALIZED"}},
			[]int{0, 3}},
		"stream ended by the service": {localbq.FaultAction{Status: &localbq.FaultStatus{Code: "ABORTED", Ends: true}}, []int{0, 3}},
		"SW-53_masked":                {localbq.FaultAction{Status: &localbq.FaultStatus{Code: "PERMISSION_DENIED"}}, []int{0, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, w := lanes(t, localbq.Fault{Name: "f", Match: appends, Action: c.action})
			w.write(eventDoc(3))
			w.flush()
			if d := cmp.Diff(c.want, ids(t, l.Instance, "d.t0")); d != "" {
				t.Error(d)
			}
			l.Faults().MustAllFire(t)
			lost, err := l.Audit().AckedNotVisible("d.t0")
			if err != nil || len(lost) > 0 {
				t.Errorf("lost %v, %v", lost, err)
			}
		})
	}
	t.Run("SW-29_INVALID_ARGUMENT is final", func(t *testing.T) {
		t.Parallel()
		l, w := lanes(t, localbq.Fault{Name: "f", Match: appends, Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "INVALID_ARGUMENT"}}})
		w.write(eventDoc(3))
		err := w.writer.Flush(t.Context(), true)
		var ae *AppendError
		if !errors.As(err, &ae) || ae.Code != "INVALID_ARGUMENT" || errors.Is(err, ErrRetryBudgetExhausted) {
			t.Errorf("got %v", err)
		}
		if again := w.writer.Flush(t.Context(), true); !errors.Is(again, err) {
			t.Errorf("later: %v", again)
		}
		if d := cmp.Diff([]int{0}, ids(t, l.Instance, "d.t0")); d != "" {
			t.Error(d)
		}
	})
	t.Run("SW-60_creation is rate limited", func(t *testing.T) {
		t.Parallel()
		l := startLocal(t, localbq.Config{})
		err := l.Faults().Add(localbq.Fault{Name: "f", Match: localbq.FaultMatch{Service: "rest", Method: "tables.insert"}, Count: 2,
			Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 403, Reason: "rateLimitExceeded"}}})
		if err != nil {
			t.Fatal(err)
		}
		w := l.lane(t, SinkOptions{DefaultStream: quick})
		w.write(eventDoc(0))
		w.flush()
		l.Faults().MustAllFire(t)
		if d := cmp.Diff([]int{0}, ids(t, l.Instance, "d.t0")); d != "" {
			t.Error(d)
		}
	})
	t.Run("SW-42_SW-48_rows are refused", func(t *testing.T) {
		t.Parallel()
		l := startLocal(t, localbq.Config{})
		taken := &taking{}
		w := l.lane(t, SinkOptions{DefaultStream: quick, Failures: taken})
		w.write(eventDoc(0))
		w.flush()
		err := l.Faults().Add(localbq.Fault{Match: appends, Action: localbq.FaultAction{Status: &localbq.FaultStatus{Code: "INVALID_ARGUMENT",
			RowErrors: []localbq.FaultRowError{{Index: 1, Message: "id is odd"}}}}})
		if err != nil {
			t.Fatal(err)
		}
		w.write(eventDoc(3), eventDoc(6), eventDoc(9))
		w.flush()
		if d := cmp.Diff([]int{0, 3, 9}, ids(t, l.Instance, "d.t0")); d != "" {
			t.Error(d)
		}
		if len(taken.records) != 1 || !strings.Contains(taken.records[0].Reason, "id is odd") || taken.records[0].At.Row != 1 {
			t.Errorf("taken %+v", taken.records)
		}
		if got := w.sink.Report()[0]; got.Rows != 3 || got.DeadLettered != 1 {
			t.Errorf("report %+v", got)
		}
	})
}

// TestCreationInTrouble: what REST answers to the creation of a table that an append has missed.
func TestCreationInTrouble(t *testing.T) {
	t.Parallel()
	answer := func(code int, reason string) localbq.FaultAction {
		return localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: code, Reason: reason, Message: "as scripted"}}
	}
	const created = "append_errors=1 append_retries=1 bytes_sent=15 open_destinations=1 records_sent=1 tables_created=1"
	const not = "append_errors=1 bytes_sent=15 open_destinations=1 records_sent=1"
	for name, c := range map[string]struct {
		action  localbq.FaultAction
		count   int
		inserts int
		counts  string
		spent   bool
	}{
		"SW-60_rate limited twice":  {answer(403, "rateLimitExceeded"), 2, 3, created, false},
		"SW-60_429":                 {answer(429, "tooMany"), 2, 3, created, false},
		"SW-60_503":                 {answer(503, "backendError"), 2, 3, created, false},
		"SW-60_reset":               {localbq.FaultAction{Reset: true}, 2, 3, created, false},
		"SW-61_rate limited always": {answer(403, "rateLimitExceeded"), localbq.FaultAlways, 3, not, true},
		"SW-62_over a day's quota":  {answer(403, "quotaExceeded"), localbq.FaultAlways, 1, not, false},
		"SW-62_SW-58_denied":        {answer(403, "accessDenied"), localbq.FaultAlways, 1, not, false},
		"SW-62_invalid":             {answer(400, "invalid"), localbq.FaultAlways, 1, not, false},
		"SW-63_SW-59_the answer is lost, and then the table is there": {localbq.FaultAction{LoseAck: true}, 1, 2, created, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := startLocal(t, localbq.Config{})
			err := l.Faults().Add(localbq.Fault{Match: localbq.FaultMatch{Service: "rest", Method: "tables.insert"}, Count: c.count, Action: c.action})
			if err != nil {
				t.Fatal(err)
			}
			o := SinkOptions{Connection: l.connection, DefaultStream: quick, Location: "US"} // nothing is looked up: the append meets no table
			o.DefaultStream.RecoveryMaxAttempts = 3
			sink, err := NewSink(byEvent(t), row.Serializer[[]byte](newEventRows(t)), o)
			if err != nil {
				t.Fatal(err)
			}
			meter := newTally()
			w := newLane(t, sink, meter)
			w.write(eventDoc(0))
			err = w.writer.Flush(t.Context(), true)
			inserts := 0
			for r := range l.Audit().Records() {
				if r.RPC == "tables.insert" {
					inserts++
				}
			}
			if got := meter.String(); got != c.counts || inserts != c.inserts {
				t.Errorf("%d calls, counts %q, want %d, %q", inserts, got, c.inserts, c.counts)
			}
			if fails := c.counts == not; fails != (err != nil) || errors.Is(err, ErrRetryBudgetExhausted) != c.spent {
				t.Errorf("got %v", err)
			}
			if err == nil {
				return
			}
			// SW-58: the cause, and what had asked for it.
			answered, appended := new(googleapi.Error), new(AppendError)
			if !errors.As(err, &answered) || !errors.As(err, &appended) || appended.Code != "PERMISSION_DENIED" ||
				!strings.Contains(err.Error(), "table creation was attempted") || !strings.Contains(err.Error(), "it may not exist") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Everything that can go wrong on the way does, again and again. Rows may arrive twice and may not be lost.
func TestNoRowIsLost(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{Seed: 1})
	rule := func(name string, every int, a localbq.FaultAction) localbq.Fault {
		match := localbq.FaultMatch{Service: "write", Method: "AppendRows", Every: every}
		return localbq.Fault{Name: name, Match: match, Action: a, Count: localbq.FaultAlways}
	}
	coded := func(code, detail string) localbq.FaultAction {
		return localbq.FaultAction{Status: &localbq.FaultStatus{Code: code, StorageError: detail}}
	}
	err := l.Faults().Add(
		rule("unavailable", 17, coded("UNAVAILABLE", "")),
		rule("unknown", 19, coded("UNKNOWN", "")),
		rule("exhausted", 23, coded("RESOURCE_EXHAUSTED", "")),
		rule("masked", 29, coded("PERMISSION_DENIED", "")),
		rule("stale", 31, coded("INVALID_ARGUMENT", "INVALID_STREAM_STATE")),
		rule("lost", 61, localbq.FaultAction{LoseAck: true}), // this one and the next cost a reconnect
		rule("reset", 67, localbq.FaultAction{Reset: true}),
		localbq.Fault{Name: "rest", Match: localbq.FaultMatch{Service: "rest", Every: 2},
			Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 503, Reason: "backendError"}}, Count: localbq.FaultAlways},
	)
	if err != nil {
		t.Fatal(err)
	}
	o := quick
	o.MaxAppendBytes, o.MaxBufferedBytes, o.RecoveryMaxAttempts = 100, 2000, 1000
	first := l.lane(t, SinkOptions{DefaultStream: o})
	second := newLane(t, first.sink)
	const each = 600
	var running sync.WaitGroup
	for i, w := range []*lane{first, second} {
		running.Go(func() {
			for n := range each {
				if err := w.writer.Write(t.Context(), &stream.Record[[]byte]{Value: eventDoc(each*i + n)}); err != nil {
					t.Error(err)
					return
				}
				if n%200 == 199 {
					if err := w.writer.Flush(t.Context(), false); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	running.Wait()
	seen := map[int]bool{}
	for i := range 3 {
		name := fmt.Sprintf("d.t%d", i)
		for _, id := range ids(t, l.Instance, name) {
			seen[id] = true
		}
		lost, err := l.Audit().AckedNotVisible(name)
		if err != nil || len(lost) > 0 {
			t.Errorf("%s: acknowledged and not there: %v, %v", name, lost, err)
		}
	}
	if len(seen) != 2*each {
		t.Errorf("%d rows of %d arrived", len(seen), 2*each)
	}
	var rows int64
	for _, r := range first.sink.Report() {
		rows += r.Rows
	}
	if rows != 2*each {
		t.Errorf("the report has %d rows", rows)
	}
	for _, r := range l.Faults().List() {
		if r.Fired == 0 {
			t.Errorf("rule %s never fired", r.Name)
		}
	}
}

func TestLanesShareConnections(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	first := l.lane(t, SinkOptions{DefaultStream: quick})
	second := newLane(t, first.sink)
	var done sync.WaitGroup
	for i, w := range []*lane{first, second} {
		done.Go(func() {
			for n := range 300 {
				if err := w.writer.Write(t.Context(), &stream.Record[[]byte]{Value: eventDoc(1000*i + n)}); err != nil {
					t.Error(err)
					return
				}
				if n%100 == 99 {
					if err := w.writer.Flush(t.Context(), false); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	done.Wait()
	rows := 0
	for i := range 3 {
		rows += len(ids(t, l.Instance, fmt.Sprintf("d.t%d", i)))
	}
	if rows != 600 {
		t.Errorf("%d rows", rows)
	}
	// Closing one lane leaves the other's connections open.
	if err := first.writer.Close(); err != nil {
		t.Fatal(err)
	}
	second.write(eventDoc(0))
	second.flush()
}

func TestUnroutableRecords(t *testing.T) {
	t.Parallel()
	l := startLocal(t, localbq.Config{})
	taken := &taking{}
	w := l.lane(t, SinkOptions{DefaultStream: quick, Failures: taken})
	w.write([]byte(`{"id":1}`), []byte(`{"id":1,"event":"a/b"}`), []byte(`{"id":1,"ev`), eventDoc(0))
	w.flush()
	if len(taken.records) != 3 {
		t.Fatalf("taken %+v", taken.records)
	}
	for i, want := range []string{`field "event" cannot be read`, `field "event" is "a/b", which cannot be part of a table name`, `field "event" cannot be read`} {
		if f := taken.records[i]; f.Destination != stream.Unresolved || !strings.HasPrefix(f.Reason, want) || f.At.Row != int64(i) {
			t.Errorf("SW-9: got %+v", f)
		}
	}
	tally := w.writer.(stream.Tallier).Tally()
	if tally.Written != 1 || tally.DeadLettered != 3 {
		t.Errorf("tally %+v", tally)
	}
}
