package bigquery

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/files"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

var (
	storms    = flag.Uint64("storms", 20, "how many storms TestStorms goes through")
	stormSeed = flag.Uint64("storm", 1, "the seed of the first of them")
)

// TestStorms runs whole jobs over files of seeded shape, through lanes, sinks and services of seeded options, while
// seeded faults strike. Whatever happens, a job ends; the rows it read are all accounted for; and when it ends well,
// every row is there or was given to the failure policy, and there once where that is the method.
func TestStorms(t *testing.T) {
	for seed := *stormSeed; seed < *stormSeed+*storms; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			newStorm(t, seed).run()
		})
	}
}

var stormSchema = &table.Schema{Fields: []table.Field{
	{Name: "id", Type: table.Int64, Mode: table.Required},
	{Name: "event", Type: table.String},
	{Name: "pad", Type: table.String},
}}

type storm struct {
	*testing.T
	*rand.Rand
	bq          *localbq.Instance
	faults      []localbq.Fault
	exactlyOnce bool // the method; at least once is the other
	drifts      bool // tables lack a column at first, and lose it now and then

	records int
	rows    map[string][]int // ids of good rows by table
	input   string

	failed failedIDs
}

func newStorm(t *testing.T, seed uint64) *storm {
	s := &storm{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), rows: map[string][]int{}}
	profile := localbq.FriendlyProfile()
	if s.once(4) { // new tables are slow to take rows
		profile.Windows.CreateDefaultAppend.Min = 10 * time.Millisecond
		profile.Windows.CreateDefaultAppend.Max = 80 * time.Millisecond
	}
	if s.once(2) { // new columns take a while to be known
		profile.Windows.AddNewConnection.Max, profile.Windows.AddOpenConnection.Max = s.milliseconds(20), s.milliseconds(40)
	}
	bq, err := localbq.Start(t.Context(), localbq.Config{
		Project: "p", Seed: seed, Profile: profile, AutoCreateDataset: s.once(2),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bq.Close() })
	s.bq = bq
	s.exactlyOnce = s.once(2)
	if s.drifts = s.once(2); s.drifts {
		s.makeNarrowTables()
	}
	for range s.IntN(6) {
		s.faults = append(s.faults, s.fault())
	}
	if err := bq.Faults().Add(s.faults...); err != nil {
		t.Fatal(err)
	}
	s.write()
	return s
}

// once is true every nth time.
func (s *storm) once(n int) bool { return s.IntN(n) == 0 }

func (s *storm) milliseconds(n int) time.Duration {
	return time.Duration(1+s.IntN(n)) * time.Millisecond
}

func pick[T any](s *storm, from ...T) T { return from[s.IntN(len(from))] }

// makeNarrowTables makes some of the tables, without their last column.
func (s *storm) makeNarrowTables() {
	if err := s.bq.CreateDataset("d"); err != nil {
		s.Fatal(err)
	}
	narrow := &table.Schema{Fields: stormSchema.Fields[:len(stormSchema.Fields)-1]}
	for i := range 1 + s.IntN(4) {
		if err := s.bq.CreateTable(fmt.Sprint("d.t", i), tableadmin.ToREST(narrow)); err != nil {
			s.Fatal(err)
		}
	}
}

// write makes the input: records of a few tables, some of them no rows.
func (s *storm) write() {
	s.records = 200 + s.IntN(2000)
	tables := 1 + s.IntN(4)
	var b strings.Builder
	for i := range s.records {
		name := fmt.Sprintf("t%d", i%tables)
		if s.once(400) {
			fmt.Fprintf(&b, `{"id":"no number","event":%q}`+"\n", name)
			continue
		}
		fmt.Fprintf(&b, `{"id":%d,"event":%q,"pad":%q}`+"\n", i, name, strings.Repeat("p", s.IntN(60)))
		s.rows[name] = append(s.rows[name], i)
	}
	s.input = filepath.Join(s.TempDir(), "in.ndjson")
	if err := os.WriteFile(s.input, []byte(b.String()), 0o600); err != nil {
		s.Fatal(err)
	}
}

func (s *storm) fault() localbq.Fault {
	f := localbq.Fault{Count: 1 + s.IntN(4)}
	switch s.IntN(3) {
	case 0:
		f.Match.Nth = 1 + s.IntN(20)
	case 1:
		f.Match.Every = 2 + s.IntN(6)
	case 2:
		f.Match.Probability = 0.01 + 0.3*s.Float64()
	}
	if s.once(3) {
		s.restFault(&f)
	} else {
		s.appendFault(&f)
	}
	return f
}

func (s *storm) appendFault(f *localbq.Fault) {
	f.Match.Service, f.Match.Method = "write", "AppendRows"
	if s.exactlyOnce && s.once(3) {
		f.Match.Method = pick(s, "CreateWriteStream", "FlushRows")
	}
	if s.drifts && s.once(3) {
		f.Action.State = []localbq.FaultState{{Do: "dropColumn", Column: stormSchema.Fields[len(stormSchema.Fields)-1].Name}}
		return
	}
	switch s.IntN(6) {
	case 0, 1, 2:
		f.Phase = pick(s, localbq.PhaseReceive, localbq.PhaseReceive, localbq.PhaseApplied)
		f.Action.Status = s.status()
	case 3:
		f.Phase = pick(s, localbq.PhaseReceive, localbq.PhaseApplied, localbq.PhaseAnswered)
		f.Action.Reset = true
	case 4:
		f.Action.LoseAck = true
	case 5:
		f.Phase = pick(s, localbq.PhaseReceive, localbq.PhaseApplied, localbq.PhaseAnswered)
		f.Action.Delay = localbq.FaultDuration(s.milliseconds(30))
	}
}

// status is any answer there is, sensible or not.
func (s *storm) status() *localbq.FaultStatus {
	a := &localbq.FaultStatus{
		Message: "storm",
		Code: pick(s, "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
			"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
			"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
		StorageError: pick(s, "", "", "", "STREAM_NOT_FOUND", "STREAM_FINALIZED", "TABLE_NOT_FOUND",
			"SCHEMA_MISMATCH_EXTRA_FIELDS", "OFFSET_ALREADY_EXISTS", "OFFSET_OUT_OF_RANGE"),
		Ends: s.once(2),
	}
	if s.exactlyOnce && (a.Code == "ALREADY_EXISTS" || a.StorageError == "OFFSET_ALREADY_EXISTS") {
		// To an append that was sent before, and to a flush, this says that all is done. Here it would be a lie.
		a.Code, a.StorageError = "ABORTED", ""
	}
	if s.once(4) {
		a.RowErrors, a.Ends = []localbq.FaultRowError{{Index: s.Int64N(5), Message: "storm"}}, false
	}
	if s.once(3) {
		a.RetryDelay = localbq.FaultDuration(s.milliseconds(20))
	}
	return a
}

func (s *storm) restFault(f *localbq.Fault) {
	f.Match.Service = "rest"
	f.Match.Method = pick(s, "tables.insert", "tables.get", "datasets.get", "datasets.insert", "tables.patch")
	f.Phase = pick(s, localbq.PhaseReceive, localbq.PhaseApplied)
	if s.drifts && s.once(3) {
		f.Match.Method, f.Action.State = "tables.patch", []localbq.FaultState{{Do: "touchTable"}}
		return
	}
	switch s.IntN(3) {
	case 0:
		f.Action.HTTP = &localbq.FaultHTTP{
			Message: "storm",
			Code:    pick(s, 400, 401, 403, 404, 409, 412, 429, 500, 502, 503),
			Reason: pick(s, "rateLimitExceeded", "backendError", "accessDenied", "duplicate", "notFound",
				"quotaExceeded", "invalid", "conditionNotMet"),
		}
	case 1:
		f.Action.Reset = true
	case 2:
		f.Action.Delay = localbq.FaultDuration(s.milliseconds(30))
	}
}

func (s *storm) sinkOptions() SinkOptions {
	o := SinkOptions{
		Failures:   &s.failed,
		Connection: Connection{GRPCEndpoint: s.bq.GRPC(), RESTEndpoint: s.bq.REST()},
		DefaultStream: DefaultStreamOptions{
			MaxAppendBytes: 200 + s.IntN(5000), MaxBufferedBytes: 20_000 + s.IntN(100_000),
			RecoveryInitialBackoff: time.Millisecond, RecoveryMaxBackoff: 20 * time.Millisecond,
			RecoveryMaxAttempts: 3 + s.IntN(10),
			RetryInitialDelay:   time.Millisecond, RetryMaxDelay: 10 * time.Millisecond,
			MaxRetryDuration: 2 * time.Second, MaxInflightRequests: 1 + s.IntN(20),
		},
	}
	if s.exactlyOnce {
		d := o.DefaultStream
		o.Method, o.DefaultStream = MethodExactlyOnce, DefaultStreamOptions{}
		o.BufferedStream = BufferedStreamOptions{MaxAppendBytes: d.MaxAppendBytes, MaxBufferedBytes: d.MaxBufferedBytes,
			RecoveryInitialBackoff: d.RecoveryInitialBackoff, RecoveryMaxBackoff: d.RecoveryMaxBackoff, RecoveryMaxAttempts: d.RecoveryMaxAttempts,
			RetryInitialDelay: d.RetryInitialDelay, RetryMaxDelay: d.RetryMaxDelay, MaxRetryDuration: d.MaxRetryDuration}
	}
	o.Create.Datasets = !s.once(3)
	o.SchemaUpdate.AllowNewFields = s.drifts && !s.once(5)
	if s.once(3) && !s.exactlyOnce {
		o.DefaultStream.FlushInterval = s.milliseconds(20)
	}
	if s.once(3) && s.exactlyOnce {
		o.BufferedStream.DestinationIdleTimeout = s.milliseconds(20)
	} else if s.once(3) && !s.exactlyOnce {
		o.DefaultStream.DestinationIdleTimeout = s.milliseconds(20)
	}
	return o
}

func (s *storm) engineOptions() engine.Options {
	o := engine.Options{
		Lanes:   1 + s.IntN(4),
		Restart: engine.Restart{Policy: engine.FixedDelay, Initial: time.Millisecond, Attempts: 1 + s.IntN(4)},
	}
	if s.once(2) {
		o.Checkpoint.Every = s.milliseconds(40)
	}
	return o
}

func (s *storm) run() {
	source, err := files.NewSource([]string{s.input},
		files.Options{SplitBytes: int64(2000 + s.IntN(20_000)), FetchRecords: 1 + s.IntN(200)})
	if err != nil {
		s.Fatal(err)
	}
	document := func(r files.Record) []byte { return r.Bytes }
	rows, err := jsonrow.New(document, jsonrow.Fixed(stormSchema), jsonrow.Options{})
	if err != nil {
		s.Fatal(err)
	}
	to, err := AppendTemplate("p.d.{event}", func(buf []byte, r files.Record, name string) ([]byte, error) {
		return jsonrow.AppendField(buf, r.Bytes, name)
	})
	if err != nil {
		s.Fatal(err)
	}
	sink, err := NewSink(to, rows, s.sinkOptions())
	if err != nil {
		s.Fatal(err)
	}
	sink.config.write.SchemaWait = retry.Schedule{Initial: time.Millisecond, Max: 10 * time.Millisecond, Attempts: 1 + s.IntN(20)}
	sink.config.write.Pacer = retry.Pacer{Rand: func() float64 { return 0.01 }} // a race for a table is run again after 5 ms
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Minute)
	defer cancel()
	job := engine.Job[files.Record, files.Record]{Name: "storm", Source: source, Sink: sink, Failures: &s.failed}
	result, err := engine.Run(ctx, job, s.engineOptions())
	if ctx.Err() != nil {
		s.Fatalf("did not end: %v; faults %+v", err, s.faults)
	}
	s.check(result.Tally, err)
}

func (s *storm) check(tally stream.Tally, err error) {
	if tally.Lost() != 0 {
		s.Errorf("%d records are not accounted for: %+v; faults %+v", tally.Lost(), tally, s.faults)
	}
	if err != nil {
		return
	}
	if tally.Read != int64(s.records) {
		s.Errorf("read %d records of %d", tally.Read, s.records)
	}
	for name, want := range s.rows {
		got := map[int]bool{}
		for _, id := range ids(s, s.bq, "d."+name) {
			if got[id] && s.exactlyOnce {
				s.Errorf("%s: row %d is there twice; faults %+v", name, id, s.faults)
			}
			got[id] = true
		}
		missing := slices.DeleteFunc(want, func(id int) bool { return got[id] || s.failed.has(id) })
		if len(missing) > 0 {
			s.Errorf("%s: rows %v are lost; faults %+v", name, missing, s.faults)
		}
	}
}

// failedIDs takes failed records and keeps their ids.
type failedIDs struct {
	mu  sync.Mutex // guards ids
	ids map[int]bool
}

func (f *failedIDs) NewHandler(context.Context, stream.HandlerContext) (stream.FailureHandler, error) {
	return f, nil
}

func (f *failedIDs) Handle(_ context.Context, r *stream.FailedRecord) error {
	var id int
	if _, err := fmt.Sscanf(string(r.Original), `{"id":%d`, &id); err != nil {
		return nil // it never had one
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ids == nil {
		f.ids = map[int]bool{}
	}
	f.ids[id] = true
	return nil
}

func (f *failedIDs) has(id int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ids[id]
}

func (*failedIDs) Flush(context.Context) error { return nil }
func (*failedIDs) Close() error                { return nil }
