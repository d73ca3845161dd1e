package fileload

import (
	"bytes"
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

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

const testRun = "0123456789abcdef0123456789abcdef"

// heap is a depot in memory, which fails as it is told to. It orders faults as no service can be made to.
type heap struct {
	mu        sync.Mutex // guards what follows
	published map[string][]byte
	created   []string
	aborted   []string
	closing   int
	most      int // closed at once
	closes    int
	gate      chan struct{}    // when set, Close waits for a token
	reached   chan struct{}    // when set, Close tells that it waits
	fail      map[string]error // by part of the URI: what Close answers
	abort     error            // what Abort answers
	write     error            // what Write answers
	close     error
}

func newHeap() *heap { return &heap{published: map[string][]byte{}, fail: map[string]error{}} }

func (h *heap) create(_ context.Context, uri string) (object, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.created = append(h.created, uri)
	return &heapObject{heap: h, uri: uri}, nil
}

func (h *heap) Close() error {
	h.closes++
	return h.close
}

// uris are those of the published objects, without what all have before it.
func (h *heap) uris() (uris []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for uri := range h.published {
		uris = append(uris, uri)
	}
	slices.Sort(uris)
	return uris
}

type heapObject struct {
	heap  *heap
	uri   string
	data  bytes.Buffer
	ended bool
}

func (o *heapObject) Write(_ context.Context, b []byte) (int, error) {
	o.heap.mu.Lock()
	defer o.heap.mu.Unlock()
	if o.heap.write != nil {
		return 0, o.heap.write
	}
	return o.data.Write(b)
}

func (o *heapObject) Close(ctx context.Context) error {
	h := o.heap
	h.mu.Lock()
	h.closing++
	h.most = max(h.most, h.closing)
	gate, reached := h.gate, h.reached
	h.mu.Unlock()
	if gate != nil {
		reached <- struct{}{}
		<-gate
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closing--
	o.ended = true
	for part, err := range h.fail {
		if strings.Contains(o.uri, part) {
			return err
		}
	}
	h.published[o.uri] = o.data.Bytes()
	return nil
}

func (o *heapObject) Abort() error {
	h := o.heap
	h.mu.Lock()
	defer h.mu.Unlock()
	if !o.ended {
		h.aborted = append(h.aborted, o.uri)
	}
	o.ended = true
	return h.abort
}

// rowsOf says what the rows of each destination are, and how often somebody asked.
type rowsOf struct {
	schema      *table.Schema
	fingerprint uint64
	asked       map[string]int
	descriptor  *descriptorpb.DescriptorProto // nil is that of the schema
	err         error
}

func (s *rowsOf) Schema(dst table.Destination) (*table.Schema, error) {
	s.asked[dst.Table]++
	return s.schema, s.err
}

func (s *rowsOf) Descriptor(table.Destination) (*descriptorpb.DescriptorProto, error) {
	if s.descriptor != nil {
		return s.descriptor, nil
	}
	return row.Descriptor(s.schema)
}

func (s *rowsOf) Fingerprint(table.Destination) uint64 { return s.fingerprint }

// taker is a policy and its handler.
type taker struct {
	records []stream.FailedRecord
	events  []string
	handle  error
	closing error
}

func (h *taker) NewHandler(context.Context, stream.HandlerContext) (stream.FailureHandler, error) {
	return h, nil
}

func (h *taker) Handle(_ context.Context, f *stream.FailedRecord) error {
	c := *f
	c.Row = slices.Clone(f.Row)
	h.records = append(h.records, c)
	return h.handle
}

func (h *taker) Flush(context.Context) error { h.events = append(h.events, "flush"); return nil }
func (h *taker) Close() error                { h.events = append(h.events, "close"); return h.closing }

// tallies is a Meter that shows its series by the last part of their names.
type tallies struct {
	mu     sync.Mutex // guards series
	series map[string]int64
}

type oneSeries struct {
	of   *tallies
	name string
}

func (s oneSeries) Add(n int64) { s.set(func(v int64) int64 { return v + n }) }
func (s oneSeries) Set(n int64) { s.set(func(int64) int64 { return n }) }

func (s oneSeries) set(f func(int64) int64) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.series[s.name] = f(s.of.series[s.name])
}

func (m *tallies) find(in stream.Instrument, labels []stream.Label) oneSeries {
	name := in.Name[strings.LastIndexByte(in.Name, '.')+1:]
	for _, l := range labels {
		if l.Key == "destination" {
			name += "{" + l.Value + "}"
		}
	}
	return oneSeries{m, name}
}

func (m *tallies) Counter(in stream.Instrument, labels ...stream.Label) stream.Counter {
	return m.find(in, labels)
}

func (m *tallies) Gauge(in stream.Instrument, labels ...stream.Label) stream.Gauge {
	return m.find(in, labels)
}

// desk is a writer with everything around it scripted. Times are milliseconds.
type desk struct {
	*testing.T
	w     *Writer
	heap  *heap
	rows  *rowsOf
	taker *taker
	meter *tallies
	log   *bytes.Buffer
	cfg   Config
	now   int
	taken int64 // checkpoints
}

var plainSchema = &table.Schema{Fields: []table.Field{{Name: "id", Type: table.Int64}, {Name: "s", Type: table.String}}}

func newDesk(t *testing.T, change ...func(*Config)) *desk {
	t.Helper()
	d := &desk{T: t, heap: newHeap(), rows: &rowsOf{schema: plainSchema, asked: map[string]int{}}, taker: &taker{},
		meter: &tallies{series: map[string]int64{}}, log: &bytes.Buffer{}}
	d.cfg = Config{
		Options: Options{
			StagingPath: "gs://staged/x", Format: loadplan.Avro, MaxFileBytes: 16 << 20, MaxOpenDestinations: 16, MaxPendingFiles: 10_000,
			MaxRowBytes: 15_000_000, IdleTimeout: time.Minute, Finalizations: 1,
		},
		Rows: d.rows, Failures: d.taker, Ledger: &outcome.Ledger{}, Lane: 3, Run: testRun, Attempt: 2, Streaming: true,
		Job: "j", Meter: d.meter, Log: slog.New(slog.NewTextHandler(d.log, nil)),
	}
	for _, c := range change {
		c(&d.cfg)
	}
	w, err := newWriter(t.Context(), d.cfg, d.heap, func() time.Duration { return time.Duration(d.now) * time.Millisecond })
	if err != nil {
		t.Fatal(err)
	}
	d.w = w
	t.Cleanup(func() { _ = w.Close() })
	return d
}

func at(name string) table.Destination {
	return table.Destination{Project: "p", Dataset: "d", Table: name}
}

// encode is a row of the schema in force: an id and, where there is room, text.
func (d *desk) encode(id int64, text string) []byte {
	values := []row.Value{{Int: id}, rowtest.Text(text)}
	for range len(d.rows.schema.Fields) - 2 {
		values = append(values, rowtest.Null)
	}
	return rowtest.Encode(d.rows.schema.Fields, values)
}

// put writes bytes to a table.
func (d *desk) put(name string, data []byte) error {
	d.Helper()
	t, err := d.w.Target(at(name))
	if err != nil {
		d.Fatal(err)
	}
	err = d.w.Row(d.Context(), t, data)
	var bad *RowError
	if errors.As(err, &bad) {
		return d.w.Reject(d.Context(), t, &stream.FailedRecord{Reason: bad.Error(), Err: bad.Err, Row: data})
	}
	return err
}

// add writes a row to each table.
func (d *desk) add(names ...string) {
	d.Helper()
	for i, name := range names {
		if err := d.put(name, d.encode(int64(i), name)); err != nil {
			d.Fatalf("row %d, of %s: %v", i, name, err)
		}
	}
}

// checkpoint takes one.
func (d *desk) checkpoint(final bool) ([]loadplan.Committable, error) {
	d.Helper()
	d.taken++
	if err := d.w.Flush(d.Context(), final); err != nil {
		return nil, err
	}
	promises, err := d.w.Prepare(d.Context(), d.taken)
	var files []loadplan.Committable
	for _, p := range promises {
		var f loadplan.Committable
		if err := f.UnmarshalBinary(p.Data); err != nil {
			d.Fatal(err)
		}
		if f.URI != p.Key && (f.URI != "" || p.Key != f.Destination.Path()) {
			d.Errorf("the key is %q and the file %q", p.Key, f.URI)
		}
		files = append(files, f)
	}
	return files, err
}

// commit takes a checkpoint that succeeds and describes its files: "t:3" has three rows.
func (d *desk) commit() (files []loadplan.Committable, short []string) {
	d.Helper()
	files, err := d.checkpoint(false)
	if err != nil {
		d.Fatal(err)
	}
	for _, f := range files {
		short = append(short, fmt.Sprintf("%s:%d", f.Destination.Table, f.Rows))
	}
	return files, short
}

// wants compares series, "name=value" each.
func (d *desk) wants(series ...string) {
	d.Helper()
	d.w.Tally() // counts what is not counted yet
	d.meter.mu.Lock()
	defer d.meter.mu.Unlock()
	for _, s := range series {
		name, value, _ := strings.Cut(s, "=")
		if got := fmt.Sprint(d.meter.series[name]); got != value {
			d.Errorf("%s is %s, want %s; all: %v", name, got, value, slices.Sorted(maps.Keys(d.meter.series)))
		}
	}
}

func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("t%d", i+1))
	}
	return all
}
