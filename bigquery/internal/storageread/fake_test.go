package storageread

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// fakeStream is a read stream that honours offsets and fails as scripted.
type fakeStream struct {
	rows      [][]byte
	blockRows int
	// script says how calls end, one after the other; calls beyond it deliver everything.
	script []call
	// sent changes a response before it is sent.
	sent func(*storagepb.ReadRowsResponse)

	mu     sync.Mutex
	opened []int64 // offsets
	ended  int     // calls whose context has ended
	dialed int
	closed int
}

type call struct {
	openErr error
	openHangs,
	hangs bool // after its rows, until its context ends
	rows int   // delivers that many
	err  error // and then this; nil is everything and io.EOF
}

func newFakeStream(n, blockRows int, script ...call) *fakeStream {
	f := &fakeStream{blockRows: blockRows, script: script}
	for i := range n {
		f.rows = append(f.rows, sized(i, 5))
	}
	return f
}

func (f *fakeStream) dial(context.Context) (*client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dialed++
	return &client{open: f.open, close: func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.closed++
		return nil
	}}, nil
}

func (f *fakeStream) open(ctx context.Context, _ string, offset int64) (receiveRows, error) {
	f.mu.Lock()
	c := call{rows: len(f.rows)}
	if n := len(f.opened); n < len(f.script) {
		c = f.script[n]
	}
	f.opened = append(f.opened, offset)
	f.mu.Unlock()
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended++
	})
	if c.openHangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if c.openErr != nil {
		return nil, c.openErr
	}
	rest := f.rows[offset:]
	rest = rest[:min(c.rows, len(rest))]
	return func() (*response, error) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(rest) > 0 {
			n := min(f.blockRows, len(rest))
			data := slices.Concat(rest[:n]...)
			rest = rest[n:]
			resp := avroResponse(data, int64(n))
			if f.sent != nil {
				f.sent(resp)
			}
			return overTheWire(resp)
		}
		if c.hangs {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if c.err != nil {
			return nil, c.err
		}
		return nil, io.EOF
	}, nil
}

func avroResponse(data []byte, rows int64) *storagepb.ReadRowsResponse {
	return &storagepb.ReadRowsResponse{RowCount: rows,
		Rows: &storagepb.ReadRowsResponse_AvroRows{AvroRows: &storagepb.AvroRows{SerializedBinaryRows: data}}}
}

// overTheWire is a response as it is received, in buffers of a few bytes.
func overTheWire(sent *storagepb.ReadRowsResponse) (*response, error) {
	b, err := proto.Marshal(sent)
	if err != nil {
		return nil, err
	}
	var got response
	return &got, codec{}.Unmarshal(buffersOf(b, 7), &got)
}

// buffersOf lays bytes into buffers of so many each.
func buffersOf(b []byte, each int) (all mem.BufferSlice) {
	for part := range slices.Chunk(b, each) {
		all = append(all, mem.SliceBuffer(part))
	}
	return all
}

// testMeter counts.
type testMeter struct {
	mu     sync.Mutex
	values map[string]int64
}

type testInstrument struct {
	m    *testMeter
	name string
}

func newMeter() *testMeter { return &testMeter{values: map[string]int64{}} }

func (m *testMeter) instrument(in stream.Instrument) testInstrument {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[in.Name] += 0
	return testInstrument{m, in.Name}
}

func (m *testMeter) Counter(in stream.Instrument, _ ...stream.Label) stream.Counter {
	return m.instrument(in)
}
func (m *testMeter) Gauge(in stream.Instrument, _ ...stream.Label) stream.Gauge {
	return m.instrument(in)
}

func (i testInstrument) Add(n int64) {
	i.m.mu.Lock()
	defer i.m.mu.Unlock()
	i.m.values[i.name] += n
}

func (i testInstrument) Set(v int64) {
	i.m.mu.Lock()
	defer i.m.mu.Unlock()
	i.m.values[i.name] = v
}

// is compares some of the values.
func (m *testMeter) is(t *testing.T, want map[stream.Instrument]int64) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for in, v := range want {
		if got, ok := m.values[in.Name]; !ok || got != v {
			t.Errorf("%s is %d (registered: %v), want %d; all: %v", in.Name, got, ok, v, slices.Sorted(maps.Keys(m.values)))
		}
	}
}

// testLog keeps the lines of a level.
type testLog struct {
	slog.Handler
	mu    sync.Mutex
	lines map[slog.Level][]string
}

func newLog() (*slog.Logger, *testLog) {
	l := &testLog{Handler: slog.DiscardHandler, lines: map[slog.Level][]string{}}
	return slog.New(l), l
}

func (l *testLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *testLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines[r.Level] = append(l.lines[r.Level], r.Message)
	return nil
}

func (l *testLog) at(level slog.Level) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines[level], "\n")
}

// testConfig is a table read with the defaults.
func testConfig(dial dialer) *Config {
	return &Config{
		Table:                table.Destination{Project: "p", Dataset: "d", Table: "t"},
		Parent:               "p",
		CreateSessionTimeout: 10 * time.Minute,
		MaxRecordsPerFetch:   10_000,
		MaxBytesPerFetch:     8 << 20,
		FetchQueue:           2,
		RetryMaxAttempts:     25,
		dial:                 dial,
	}
}

// readerOf opens a reader of f at that row, in a session that expires as given.
func readerOf(t *testing.T, f *fakeStream, at int64, change func(*Config)) (*Reader, *testMeter) {
	t.Helper()
	c := testConfig(f.dial)
	if change != nil {
		change(c)
	}
	m := newMeter()
	log, _ := newLog()
	r := c.NewReader(Attempt{Job: "j", Meter: m, Log: log})
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.Open(t.Context(), Split{Stream: "S", Schema: textRows}.at(at)); err != nil {
		t.Fatal(err)
	}
	return r, m
}

// fetch makes one batch.
func fetch(ctx context.Context, r *Reader) (names []string, err error) {
	err = r.Fetch(ctx, func(row *row.Row, _ int64, _ int) error {
		names = append(names, nameOf(row))
		return nil
	})
	if err != nil {
		names = nil
	}
	return names, err
}

// fetchAll makes batches until the split ends or fails.
func fetchAll(t *testing.T, r *Reader) (batches [][]string, err error) {
	t.Helper()
	for {
		b, err := fetch(t.Context(), r)
		if err == io.EOF {
			return batches, nil
		}
		if err != nil {
			return batches, err
		}
		if len(b) == 0 {
			t.Fatal("a batch without rows and without an error")
		}
		batches = append(batches, b)
	}
}
