package bigquery

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millrace-dev/millrace/bigquery/internal/storageread"
	"github.com/millrace-dev/millrace/stream"
)

// readServer is a Storage Read service that holds one table of one column of text, cut into streams of the given rows.
// It is a scripted double, for faults and answers that a real service does not give on demand.
type readServer struct {
	storagepb.UnimplementedBigQueryReadServer
	streams   [][]string
	blockRows int
	// failAt answers UNAVAILABLE when a call comes to that row of stream 0, once; with cut, all connections are closed
	// instead, after cut has been, whatever is still on its way.
	failAt  int
	failure error // answered instead of UNAVAILABLE
	cut     chan struct{}
	// encoded is a response sent over and over instead of the rows of the streams, so many times.
	encoded *storagepb.ReadRowsResponse
	times   int
	schema  string // of encoded
	// pauseAt is a row of every stream that is sent once pause is closed; 0 is none.
	pauseAt int
	pause   chan struct{}
	// gate holds every answer until it is closed; nil holds none.
	gate chan struct{}

	mu       sync.Mutex
	failed   bool
	requests []*storagepb.CreateReadSessionRequest
	opened   []int64
	addr     string
	conns    []net.Conn
}

// listener remembers the connections.
type listener struct {
	net.Listener
	s *readServer
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.s.mu.Lock()
		defer l.s.mu.Unlock()
		l.s.conns = append(l.s.conns, c)
	}
	return c, err
}

const textSchema = `{"type":"record","name":"__root__","fields":[{"name":"c","type":"string"}]}`

// serve starts it; the test's end stops it.
func (s *readServer) serve(t testing.TB) *readServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	srv := grpc.NewServer()
	storagepb.RegisterBigQueryReadServer(srv, s)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(listener{l, s}) }() // ends at Stop, joined below
	t.Cleanup(func() {
		srv.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// numbered are n rows, called by their stream and number.
func numbered(stream, n int) (rows []string) {
	for i := range n {
		rows = append(rows, fmt.Sprintf("s%dr%d", stream, i))
	}
	return rows
}

func (s *readServer) wait(ctx context.Context) error {
	if s.gate == nil {
		return nil
	}
	select {
	case <-s.gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *readServer) CreateReadSession(ctx context.Context, req *storagepb.CreateReadSessionRequest) (*storagepb.ReadSession, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	// Every session is the same one: suites compare the splits of two plans.
	out := &storagepb.ReadSession{
		Name:       "projects/p/locations/us/sessions/1",
		ExpireTime: timestamppb.New(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)),
		Schema:     &storagepb.ReadSession_AvroSchema{AvroSchema: &storagepb.AvroSchema{Schema: cmp.Or(s.schema, textSchema)}},
	}
	for i, rows := range s.streams {
		out.EstimatedRowCount += int64(len(rows))
		out.EstimatedTotalBytesScanned += int64(10 * len(rows))
		out.Streams = append(out.Streams, &storagepb.ReadStream{Name: fmt.Sprintf("%s/streams/%d", out.Name, i)})
	}
	return out, nil
}

func (s *readServer) ReadRows(req *storagepb.ReadRowsRequest, call storagepb.BigQueryRead_ReadRowsServer) error {
	if err := s.wait(call.Context()); err != nil {
		return err
	}
	var n int
	if _, err := fmt.Sscanf(req.ReadStream, "projects/p/locations/us/sessions/1/streams/%d", &n); err != nil {
		return status.Error(codes.NotFound, err.Error())
	}
	for range s.times {
		if err := call.Send(s.encoded); err != nil {
			return err
		}
	}
	rows := s.streams[n]
	if req.Offset > int64(len(rows)) {
		return status.Errorf(codes.FailedPrecondition, "offset %d has not been allocated yet", req.Offset)
	}
	s.mu.Lock()
	s.opened = append(s.opened, req.Offset)
	s.mu.Unlock()
	for at := int(req.Offset); at < len(rows); {
		if s.pauseAt > 0 && at >= s.pauseAt {
			select {
			case <-s.pause:
			case <-call.Context().Done():
				return call.Context().Err()
			}
		}
		if s.fails(n, at) {
			return cmp.Or(s.failure, status.Error(codes.Unavailable, "gone for a moment"))
		}
		block := rows[at:min(at+max(s.blockRows, 1), len(rows))]
		var data []byte
		for _, text := range block {
			data = append(binary.AppendVarint(data, int64(len(text))), text...)
		}
		if err := call.Send(&storagepb.ReadRowsResponse{RowCount: int64(len(block)),
			Rows: &storagepb.ReadRowsResponse_AvroRows{AvroRows: &storagepb.AvroRows{SerializedBinaryRows: data}}}); err != nil {
			return err
		}
		at += len(block)
	}
	return nil
}

func (s *readServer) fails(stream, at int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed || s.failAt == 0 || stream != 0 || at < s.failAt {
		return false
	}
	s.failed = true
	if s.cut != nil {
		<-s.cut
		for _, c := range s.conns {
			c.Close()
		}
	}
	return true
}

// all are the table's rows.
func (s *readServer) all() []string {
	all := slices.Concat(s.streams...)
	slices.Sort(all)
	return all
}

// connection leads there.
func (s *readServer) connection() Connection { return Connection{GRPCEndpoint: s.addr} }

var quiet = slog.New(slog.DiscardHandler)

// tally is a meter that sums.
type tally struct {
	mu     sync.Mutex
	values map[string]int64
}

type tallied struct {
	t    *tally
	name string
}

func newTally() *tally { return &tally{values: map[string]int64{}} }

// Counter sums over all labels but the destination.
func (t *tally) Counter(in stream.Instrument, labels ...stream.Label) stream.Counter {
	for _, l := range labels {
		if l.Key == "destination" {
			in.Name += " of " + l.Value
		}
	}
	return tallied{t, in.Name}
}
func (t *tally) Gauge(in stream.Instrument, _ ...stream.Label) stream.Gauge {
	return tallied{t, in.Name}
}
func (c tallied) Set(n int64) {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	c.t.values[c.name] = n
}
func (c tallied) Add(n int64) {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	c.t.values[c.name] += n
}

// String shows what is not 0.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for name, v := range t.values {
		if v != 0 {
			out = append(out, fmt.Sprintf("%s=%d", strings.TrimPrefix(name, "millrace.bigquery.sink."), v))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (t *tally) is(tt *testing.T, emitted, skipped int64) {
	tt.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, s := t.values[storageread.RecordsEmitted.Name], t.values[storageread.RecordsSkipped.Name]; e != emitted || s != skipped {
		tt.Errorf("emitted %d, skipped %d, want %d and %d", e, s, emitted, skipped)
	}
}

// splitsOf plans with an enumerator and takes every split.
func splitsOf[T any](t *testing.T, s *Source[T]) (splits []stream.Split) {
	t.Helper()
	woken := make(chan struct{}, 1)
	e, err := s.NewEnumerator(t.Context(), stream.EnumeratorContext{Job: "j", Lanes: 1, Meter: stream.NoMeter, Log: quiet,
		Wake: func() { woken <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	<-woken
	for {
		split, err := e.Next(0)
		if err == io.EOF {
			return splits
		}
		if err != nil {
			t.Fatal(err)
		}
		splits = append(splits, split)
	}
}
