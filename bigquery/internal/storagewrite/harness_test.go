package storagewrite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/stream"
)

// far is a remote that answers from scripts, the last answer of a script for ever: what the service does is tested
// against the local service, what the writer makes of each answer is tested here. Answers are those of scripted, and
// "hold", which leaves an append unanswered until the test answers it, and "exists" to a creation.
type far struct {
	opens   []string
	appends map[string][]string // by table, "" for all others
	creates []string
	changes []string // outcomes of reconciliations, "updated" where there is none
	makes   []string // created streams
	opensOf []string // openings of created streams

	mu      sync.Mutex // guards what follows
	wire    []string   // batches in order of sending: "t: aa bb"
	schemas []*schema  // of the batches
	held    []*call
	holders []*farOwn
	opened  []string
	created []table.Destination
	changed []tableadmin.Wanted
	options []table.CreateOptions
	events  []string // of created streams: "create s1", "open s1", "close s1"
	made    int
	failed  []error // of openings and creations
	closed  int
	refuse  error // append takes nothing
	closing error
	panics  bool // when released
}

func (f *far) open(_ context.Context, dst table.Destination) (appender, error) {
	f.opened = append(f.opened, dst.Table)
	if len(f.opens) > 0 {
		if v := scripted(pop(&f.opens)); v != nil {
			f.failed = append(f.failed, v.err)
			return nil, v.err
		}
	}
	return &farHandle{f, dst}, nil
}

func (f *far) create(_ context.Context, dst table.Destination, _ *table.Schema, o table.CreateOptions) (bool, error) {
	f.created = append(f.created, dst)
	f.options = append(f.options, o)
	if len(f.creates) > 0 {
		a := pop(&f.creates)
		if a == "exists" {
			return false, nil
		}
		if v := scripted(a); v != nil {
			f.failed = append(f.failed, v.err)
			return false, v.err
		}
	}
	return true, nil
}

// reconcile answers with an outcome, with an error of tableadmin, or a scripted one.
func (f *far) reconcile(ctx context.Context, _ table.Destination, w tableadmin.Wanted) (tableadmin.Outcome, error) {
	f.changed = append(f.changed, w)
	a := "updated"
	if len(f.changes) > 0 {
		a = pop(&f.changes)
	}
	switch a {
	case "updated":
		return tableadmin.Updated, nil
	case "unchanged":
		return tableadmin.Unchanged, nil
	case "absent":
		if w.Create == nil {
			return tableadmin.Unchanged, tableadmin.ErrAbsent
		}
		return tableadmin.Created, w.Create(ctx)
	case "race":
		return tableadmin.Unchanged, tableadmin.ErrUpdateRaceLost
	case "union":
		return tableadmin.Unchanged, fmt.Errorf("%w: column a.b", table.ErrUnion)
	}
	return tableadmin.Unchanged, scripted(a).err
}

func (f *far) createStream(_ context.Context, dst table.Destination) (string, error) {
	if len(f.makes) > 0 {
		if v := scripted(pop(&f.makes)); v != nil {
			f.events = append(f.events, "refuse")
			return "", v.err
		}
	}
	f.made++
	name := fmt.Sprintf("s%d", f.made)
	f.events = append(f.events, "create "+name)
	return dst.Path() + "/streams/" + name, nil
}

func (f *far) openStream(_ context.Context, dst table.Destination, name string, restored bool) (ownAppender, error) {
	short := strings.TrimPrefix(name, dst.Path()+"/streams/")
	if restored {
		f.events = append(f.events, "look up "+short)
	}
	if len(f.opensOf) > 0 {
		if v := scripted(pop(&f.opensOf)); v != nil {
			return nil, v.err
		}
	}
	f.events = append(f.events, "open "+short)
	return &farOwn{f, dst, short}, nil
}

// farOwn is a created stream. Beside what scripted knows, answers may begin with "resent", for an append that the
// connection had written before, and "unsent", for one that it never wrote, and be "echo" and an offset.
type farOwn struct {
	far  *far
	dst  table.Destination
	name string
}

func (h *farOwn) close() { h.far.events = append(h.far.events, "close "+h.name) }

func (h *farOwn) append(_ context.Context, c *call) error {
	if h.far.refuse != nil {
		return h.far.refuse
	}
	h.far.mu.Lock()
	defer h.far.mu.Unlock()
	line := fmt.Sprintf("%s@%d:", h.name, c.offset)
	if err := c.batch.each(func(_ int, row []byte) error {
		line += " " + string(row)
		return nil
	}); err != nil {
		return err
	}
	h.far.wire = append(h.far.wire, line)
	c.load.Add(int64(c.size))
	c.sends = 1
	key := h.dst.Table
	if _, ok := h.far.appends[key]; !ok {
		key = ""
	}
	answers := h.far.appends[key]
	if len(answers) == 0 {
		h.answer(c, "ok")
		return nil
	}
	a := pop(&answers)
	h.far.appends[key] = answers
	if a == "hold" {
		h.far.held = append(h.far.held, c)
		h.far.holders = append(h.far.holders, h)
		return nil
	}
	h.answer(c, a)
	return nil
}

func (h *farOwn) answer(c *call, a string) {
	if rest, ok := strings.CutPrefix(a, "resent "); ok {
		a, c.sends = rest, 2
	}
	if rest, ok := strings.CutPrefix(a, "unsent "); ok {
		a, c.sends = rest, 0
	}
	at := c.offset
	if n, _ := fmt.Sscanf(a, "echo %d", &at); n == 1 || a == "ok" {
		c.finish(&storagepb.AppendRowsResponse{Response: &storagepb.AppendRowsResponse_AppendResult_{
			AppendResult: &storagepb.AppendRowsResponse_AppendResult{Offset: wrapperspb.Int64(at)}}}, nil)
		return
	}
	if a == "outage" { // that lists rows
		c.finish(answer(status.New(codes.Unavailable, "outage"), 0), nil)
		return
	}
	answerCall(c, a)
}

func (f *far) release() error {
	if f.closed++; f.panics {
		panic("release")
	}
	return f.closing
}

type farHandle struct {
	far *far
	dst table.Destination
}

func (h *farHandle) append(_ context.Context, c *call) error {
	if h.far.refuse != nil {
		return h.far.refuse
	}
	var rows []string
	if c.batch.arrow() {
		data, _, err := nextRow(c.batch.rows.data)
		if err != nil {
			return err
		}
		rows = append(rows, "["+string(data)+"]")
	} else if err := c.batch.each(func(_ int, row []byte) error {
		rows = append(rows, string(row[:min(len(row), 8)]))
		return nil
	}); err != nil {
		return err
	}
	c.load.Add(int64(c.size))
	h.far.mu.Lock()
	defer h.far.mu.Unlock()
	h.far.wire = append(h.far.wire, h.dst.Table+": "+strings.Join(rows, " "))
	h.far.schemas = append(h.far.schemas, c.batch.schema)
	key := h.dst.Table
	if _, ok := h.far.appends[key]; !ok {
		key = ""
	}
	answers := h.far.appends[key]
	if len(answers) == 0 {
		c.finish(okAnswer, nil)
		return nil
	}
	a := pop(&answers)
	h.far.appends[key] = answers
	if a == "hold" {
		h.far.held = append(h.far.held, c)
	} else {
		answerCall(c, a)
	}
	return nil
}

// answerCall finishes a call as scripted says.
func answerCall(c *call, a string) {
	switch v := scripted(a); {
	case v == nil:
		c.finish(okAnswer, nil)
	case v.kind == KindRows:
		var rows []int64
		for _, i := range v.refused() {
			rows = append(rows, int64(i))
		}
		c.finish(answer(nil, rows...), nil)
	default:
		c.finish(nil, v.err)
	}
}

// answer answers the oldest held append.
func (f *far) answer(a string) {
	f.mu.Lock()
	c := f.held[0]
	f.held = f.held[1:]
	f.mu.Unlock()
	answerCall(c, a)
}

// answerWith answers the oldest held append with a response of the service.
func (f *far) answerWith(a *storagepb.AppendRowsResponse) {
	f.mu.Lock()
	c := f.held[0]
	f.held = f.held[1:]
	f.mu.Unlock()
	c.finish(a, nil)
}

// schemas is a Schemas whose fingerprint the test changes.
type schemas struct {
	fingerprint uint64
	asked       []string
	moves       int // how many descriptors the schema changes just before
}

func (s *schemas) Schema(table.Destination) (*table.Schema, error) { return &table.Schema{}, nil }

func (s *schemas) Descriptor(dst table.Destination) (*descriptorpb.DescriptorProto, error) {
	s.asked = append(s.asked, "descriptor "+dst.Table)
	if s.moves > 0 {
		s.moves--
		s.fingerprint++
	}
	return &descriptorpb.DescriptorProto{Name: new(fmt.Sprintf("Row%d", s.fingerprint))}, nil
}

func (s *schemas) Fingerprint(dst table.Destination) uint64 {
	s.asked = append(s.asked, "fingerprint "+dst.Table)
	return s.fingerprint
}

// handler is a policy and its handler: it takes every record and notes the calls.
type handler struct {
	events  []string
	records []stream.FailedRecord
	fail    int // the call of Handle to fail, from 1
	flush   error
	closing error
}

func (h *handler) NewHandler(context.Context, stream.HandlerContext) (stream.FailureHandler, error) {
	h.events = append(h.events, "open")
	return h, nil
}

func (h *handler) Handle(_ context.Context, f *stream.FailedRecord) error {
	c := *f
	c.Row, c.Original = slices.Clone(f.Row), slices.Clone(f.Original)
	h.records = append(h.records, c)
	h.events = append(h.events, "handle")
	if len(h.records) == h.fail {
		return errHandler
	}
	return nil
}

var errHandler = errors.New("handler says no")

func (h *handler) Flush(context.Context) error { h.events = append(h.events, "flush"); return h.flush }
func (h *handler) Close() error                { h.events = append(h.events, "close"); return h.closing }

// counts is a Meter that shows its series under the short names that test tables use: S, B, E, K, R, T, U, X[CODE], and by
// destination.
type counts struct {
	mu     sync.Mutex // guards series
	series map[string]int64
}

var shortKeys = map[string]string{outcome.RecordsSent.Name: "S", outcome.BytesSent.Name: "B", outcome.SendErrors.Name: "E", outcome.RecordsSkipped.Name: "K",
	appendRetries.Name: "R", streamResends.Name: "resends", appendErrors.Name: "X", tablesCreated.Name: "T", schemaReconciliations.Name: "U",
	inFlightBatches.Name: "inFlight", inFlightAppends.Name: "appends", outcome.OpenDestinations.Name: "open"}

type series struct {
	c   *counts
	key string
}

func (s series) Add(n int64) { s.set(func(v int64) int64 { return v + n }) }
func (s series) Set(v int64) { s.set(func(int64) int64 { return v }) }

func (s series) set(f func(int64) int64) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.series[s.key] = f(s.c.series[s.key])
}

func (c *counts) name(in stream.Instrument, labels []stream.Label) series {
	key := shortKeys[in.Name]
	for _, l := range labels {
		if l.Key == "code" || l.Key == "destination" {
			key += "[" + l.Value + "]"
		}
	}
	return series{c, key}
}

func (c *counts) Counter(in stream.Instrument, labels ...stream.Label) stream.Counter {
	return c.name(in, labels)
}
func (c *counts) Gauge(in stream.Instrument, labels ...stream.Label) stream.Gauge {
	return c.name(in, labels)
}

// String shows what is not 0.
func (c *counts) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, k := range slices.Sorted(maps.Keys(c.series)) {
		if v := c.series[k]; v != 0 {
			out = append(out, fmt.Sprintf("%s=%d", k, v))
		}
	}
	return strings.Join(out, " ")
}

// bench is a writer with everything around it scripted.
type bench struct {
	*testing.T
	w       *Writer
	far     *far
	rows    *schemas
	handler *handler
	counts  *counts
	ledger  *outcome.Ledger
	clock   time.Time
	sleeps  []time.Duration
	log     strings.Builder
}

var tableT = table.Destination{Project: "p", Dataset: "d", Table: "t"}

func tableOf(name string) table.Destination {
	return table.Destination{Project: "p", Dataset: "d", Table: name}
}

func newBench(t *testing.T, f *far, change func(*Config)) *bench {
	t.Helper()
	b := &bench{T: t, far: f, rows: &schemas{}, handler: &handler{}, ledger: &outcome.Ledger{},
		counts: &counts{series: map[string]int64{}}, clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	cfg := Config{
		Options: Options{MaxAppendBytes: 512 << 10, MaxBufferedBytes: 64 << 20, IdleTimeout: time.Hour,
			Recovery: retry.Schedule{Initial: time.Second, Max: time.Second, Attempts: 3}},
		SchemaWait: retry.Schedule{Initial: time.Minute, Max: time.Minute, Attempts: 3},
		Rows:       b.rows,
		Create:     tableadmin.Create{Options: func(table.Destination) (table.CreateOptions, error) { return table.CreateOptions{}, nil }},
		Failures:   b.handler,
		Ledger:     b.ledger,
		Pacer: retry.Pacer{Rand: func() float64 { return 0.5 }, Sleep: func(ctx context.Context, d time.Duration) error {
			b.sleeps = append(b.sleeps, d)
			return ctx.Err()
		}},
		Meter: b.counts,
		Log:   slog.New(slog.NewTextHandler(&b.log, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	w, err := newWriter(t.Context(), cfg, func() remote { return f })
	if err != nil {
		t.Fatal(err)
	}
	w.now = func() time.Time { return b.clock }
	b.w = w
	t.Cleanup(func() { w.Close() })
	return b
}

// writeTo writes rows as the face does.
func (b *bench) writeTo(dst table.Destination, rows ...string) error {
	for i, row := range rows {
		if err := b.w.Enter(b.Context()); err != nil {
			return err
		}
		t, err := b.w.Target(dst)
		if err != nil {
			return err
		}
		at := &stream.Position{Split: "f", Row: int64(i)}
		if err := b.w.Commit(b.Context(), t, append(b.w.Begin(t), row...), at, []byte("<"+row+">")); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) write(rows ...string) {
	b.Helper()
	if err := b.writeTo(tableT, rows...); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) flush() {
	b.Helper()
	if err := b.w.Flush(b.Context(), false); err != nil {
		b.Fatal(err)
	}
}

// sees compares the counts, without the gauge of open destinations.
func (b *bench) sees(want string) {
	b.Helper()
	var got []string
	for _, f := range strings.Fields(b.counts.String()) {
		if !strings.HasPrefix(f, "open=") {
			got = append(got, f)
		}
	}
	if d := cmp.Diff(strings.Fields(want), got); d != "" && len(got)+len(strings.Fields(want)) > 0 {
		b.Errorf("counts: %s", d)
	}
}

// sendPending hands over what is pending, without waiting for answers.
func (b *bench) sendPending() {
	b.Helper()
	if err := b.w.sendPending(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// described compares the names of the descriptors that batches were sent with.
func (b *bench) described(want ...string) {
	b.Helper()
	var got []string
	for _, s := range b.far.schemas {
		var p storagepb.ProtoSchema
		if err := proto.Unmarshal(s.encoded, &p); err != nil {
			b.Fatal(err)
		}
		got = append(got, p.GetProtoDescriptor().GetName())
	}
	if d := cmp.Diff(want, got); d != "" {
		b.Errorf("descriptors: %s", d)
	}
}

func (b *bench) sent(want ...string) {
	b.Helper()
	if d := cmp.Diff(want, b.far.wire); d != "" {
		b.Errorf("on the wire: %s", d)
	}
}
