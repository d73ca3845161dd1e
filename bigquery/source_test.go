package bigquery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/millrace-dev/millrace/bigquery/internal/storageread"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
	"github.com/millrace-dev/millrace/stream/streamtest"
)

func newSource[T any](t testing.TB, s *readServer, rows row.Deserializer[T], o SourceOptions) *Source[T] {
	t.Helper()
	o.Connection = s.connection()
	src, err := NewSource(readTable, rows, o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestSourceSuite(t *testing.T) {
	s := (&readServer{streams: [][]string{numbered(0, 5), numbered(1, 3), numbered(2, 1)}, blockRows: 2}).serve(t)
	streamtest.TestSource(t, streamtest.SourceHarness[string]{
		New: func(streamtest.TB) stream.Source[string] {
			return newSource(t, s, texts{}, SourceOptions{MaxRecordsPerFetch: 2})
		},
		Want: s.all(),
		Stall: func(streamtest.TB) (stream.Source[string], func()) {
			stalled := (&readServer{streams: s.streams, blockRows: 2, gate: make(chan struct{})}).serve(t)
			return newSource(t, stalled, texts{}, SourceOptions{}), func() { close(stalled.gate) }
		},
		RealTime: true,
		Leaks:    []goleak.Option{goleak.IgnoreCurrent()},
	})
}

// deserialize is a Deserializer of one function.
type deserialize[T any] func(r *row.Row, emit func(T) error) error

func (d deserialize[T]) Deserialize(r *row.Row, emit func(T) error) error { return d(r, emit) }

// laneOf opens the first split of a table of those rows.
func laneOf[T any](t *testing.T, rows []string, d row.Deserializer[T], at int64) (stream.Reader[T], *tally) {
	t.Helper()
	s := (&readServer{streams: [][]string{rows}, blockRows: 2}).serve(t)
	src := newSource(t, s, d, SourceOptions{})
	meter := newTally()
	r, err := src.NewReader(t.Context(), stream.ReaderContext{Job: "j", Lanes: 1, Meter: meter, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	split := splitsOf(t, src)[0]
	split.Position = at
	if err := r.Open(t.Context(), split); err != nil {
		t.Fatal(err)
	}
	return r, meter
}

// rowsOf prints a batch: position and records of each row.
func rowsOf[T any](b *stream.Batch[T]) string {
	var out []string
	for i := range b.Len() {
		records, at, next := b.At(i)
		text := fmt.Sprintf("%d-%d:", at, next)
		for _, r := range records {
			text += fmt.Sprint(r.Value, ",")
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestSourceOutputs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		outputs          int
		want             string
		emitted, skipped int64
	}{
		{"SRC-77 none", 0, "0-1: 1-2: 2-3:", 0, 3},
		{"SRC-77 one", 1, "0-1:s0r0, 1-2:s0r1, 2-3:s0r2,", 3, 0},
		{"SRC-77 three", 3, "0-1:s0r0,s0r0,s0r0, 1-2:s0r1,s0r1,s0r1, 2-3:s0r2,s0r2,s0r2,", 9, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, meter := laneOf(t, numbered(0, 3), deserialize[string](func(r *row.Row, emit func(string) error) error {
				for range c.outputs {
					if err := emit(string(r.Values[0].Bytes)); err != nil {
						return err
					}
				}
				return nil
			}), 0)
			var b stream.Batch[string]
			if err := r.Fetch(t.Context(), &b); err != nil || rowsOf(&b) != c.want {
				t.Errorf("got %s: %v, want %s", rowsOf(&b), err, c.want)
			}
			if b.Bytes != 15 {
				t.Errorf("%d bytes, want 15", b.Bytes)
			}
			meter.is(t, c.emitted, c.skipped)
			if err := r.Fetch(t.Context(), &b); err != io.EOF || b.Len() != 0 {
				t.Errorf("at the end: %v with %d rows", err, b.Len())
			}
		})
	}
}

func TestSourceRowsThatFail(t *testing.T) {
	t.Parallel()
	bad := errors.New("bad row")
	for _, c := range []struct {
		name string
		fail func(emit func(*string) error) error
		want error
	}{
		{"SRC-78 after an output", func(emit func(*string) error) error { return errors.Join(emit(new(string)), bad) }, bad},
		{"SRC-79 an error of emit is swallowed", func(emit func(*string) error) error { _ = emit(nil); return nil }, row.ErrNilRecord},
		{"SRC-79 and good records follow", func(emit func(*string) error) error { _ = emit(nil); return emit(new(string)) }, row.ErrNilRecord},
		{"SRC-80 nil", func(emit func(*string) error) error { return emit(nil) }, row.ErrNilRecord},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fails := true
			d := deserialize[*string](func(r *row.Row, emit func(*string) error) error {
				if text := string(r.Values[0].Bytes); text != "s0r2" || !fails {
					return emit(&text)
				}
				return c.fail(emit)
			})
			r, meter := laneOf[*string](t, numbered(0, 4), d, 0)
			var b stream.Batch[*string]
			// The rows before are good, and handed over first.
			if err := r.Fetch(t.Context(), &b); err != nil || b.Len() != 2 {
				t.Fatalf("got %d rows: %v, want the 2 before the bad one", b.Len(), err)
			}
			for range 2 {
				err := r.Fetch(t.Context(), &b)
				if e, ok := errors.AsType[*stream.PositionError](err); !ok || !errors.Is(err, c.want) || b.Len() != 0 ||
					e.At.Row != 2 || !strings.HasSuffix(e.At.Name, "/streams/0") {
					t.Fatalf("got %v with %d rows", err, b.Len())
				}
			}
			meter.is(t, 2, 0)

			fails = false
			again, _ := laneOf[*string](t, numbered(0, 4), d, 2)
			if err := again.Fetch(t.Context(), &b); err != nil || b.Len() != 2 || *b.Records()[0].Value != "s0r2" {
				t.Errorf("after a restore: %d rows: %v", b.Len(), err)
			}
		})
	}
}

// SRC-56: rows of a fetch that fails are not handed over, however many had been decoded.
func TestSourceFetchThatFails(t *testing.T) {
	t.Parallel()
	s := (&readServer{streams: [][]string{numbered(0, 10)}, blockRows: 3, failAt: 3, failure: status.Error(codes.Aborted, "x")}).serve(t)
	src := newSource(t, s, texts{}, SourceOptions{})
	split := splitsOf(t, src)[0]
	for _, want := range []int{0, 10} { // the second reader starts where the first did: there was no checkpoint in between
		meter := newTally()
		r, err := src.NewReader(t.Context(), stream.ReaderContext{Job: "j", Lanes: 1, Meter: meter, Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Open(t.Context(), split); err != nil {
			t.Fatal(err)
		}
		var b stream.Batch[string]
		err = r.Fetch(t.Context(), &b)
		if e, failed := errors.AsType[*ReadError](err); failed != (want == 0) || failed && e.Offset != 3 {
			t.Errorf("got %v", err)
		}
		if b.Len() != want || len(b.Records()) != want || b.Bytes != int64(5*want) {
			t.Errorf("%d rows, %d records, %d bytes, want %d rows", b.Len(), len(b.Records()), b.Bytes, want)
		}
		meter.is(t, int64(want), 0)
	}
}

func TestSourceEmitAfterwards(t *testing.T) {
	t.Parallel()
	var kept func(string) error
	r, _ := laneOf(t, numbered(0, 1), deserialize[string](func(_ *row.Row, emit func(string) error) error {
		kept = emit
		return nil
	}), 0)
	var b stream.Batch[string]
	if err := r.Fetch(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if err := kept("late"); err != row.ErrEmitterClosed { // SRC-80
		t.Errorf("got %v", err)
	}
	if b.Len() != 1 || len(b.Records()) != 0 {
		t.Errorf("a late record arrived: %s", rowsOf(&b))
	}
}

func TestSourceReaderSchema(t *testing.T) {
	t.Parallel()
	s := (&readServer{streams: [][]string{numbered(0, 5)}}).serve(t)
	t.Run("SRC-82 no columns", func(t *testing.T) {
		rows := 0
		src := newSource(t, s, selectiveFunc{schema: &table.Schema{}, f: func(r *row.Row, emit func(int) error) error {
			rows++
			return emit(len(r.Values))
		}}, SourceOptions{})
		for n, err := range src.Rows(t.Context()) {
			if err != nil || n != 0 {
				t.Fatalf("a row of %d values: %v", n, err)
			}
		}
		if rows != 5 {
			t.Errorf("%d rows", rows)
		}
	})
	t.Run("SRC-81 the rows carry it", func(t *testing.T) {
		want, rows := &table.Schema{Fields: []table.Field{{Name: "C", Type: table.Bytes}}}, 0
		src := newSource(t, s, selectiveFunc{schema: want, f: func(r *row.Row, emit func(int) error) error {
			if r.Schema != want || len(r.Values) != 1 || string(r.Values[0].Bytes) != fmt.Sprint("s0r", rows) {
				return fmt.Errorf("row %d is %v of another schema or with other values", rows, r.Values)
			}
			rows++
			return nil
		}}, SourceOptions{})
		for _, err := range src.Rows(t.Context()) {
			t.Fatal(err)
		}
		if rows != 5 {
			t.Errorf("%d rows", rows)
		}
	})
	t.Run("SRC-81 the plan fails", func(t *testing.T) {
		src := newSource(t, s, selectiveFunc{schema: &table.Schema{Fields: []table.Field{{Name: "c", Type: table.Bool}}}}, SourceOptions{})
		_, err := src.Session(t.Context())
		if p, ok := errors.AsType[*PlanError](err); !ok || p.What != "p.d.t" || !strings.Contains(err.Error(), "D-SCHEMA: field c") {
			t.Errorf("got %v", err)
		}
	})
}

type selectiveFunc struct {
	schema *table.Schema
	f      deserialize[int]
}

func (s selectiveFunc) ReaderSchema() *table.Schema { return s.schema }
func (s selectiveFunc) Deserialize(r *row.Row, emit func(int) error) error {
	return s.f(r, emit)
}

func TestSourceRows(t *testing.T) {
	t.Parallel()
	s := (&readServer{streams: [][]string{numbered(0, 7), nil, numbered(2, 3), numbered(3, 4)}, blockRows: 2, failAt: 4}).serve(t)
	src := newSource(t, s, texts{}, SourceOptions{MaxRecordsPerFetch: 3})
	t.Run("every row", func(t *testing.T) {
		var got []string
		for text, err := range src.Rows(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, text)
		}
		slices.Sort(got)
		if diff := cmp.Diff(s.all(), got); diff != "" {
			t.Error(diff)
		}
		if !s.failed {
			t.Error("the call that was to fail did not come so far")
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		session, err := src.Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		why := errors.New("no more")
		var last error
		for _, err := range session.Rows(ctx) {
			cancel(why)
			last = err
		}
		if !errors.Is(last, why) {
			t.Errorf("got %v", last)
		}
	})
	t.Run("a row fails", func(t *testing.T) {
		bad := errors.New("bad row")
		src := newSource(t, s, deserialize[string](func(r *row.Row, emit func(string) error) error {
			if string(r.Values[0].Bytes) == "s2r1" {
				return bad
			}
			return nil
		}), SourceOptions{})
		var last error
		for _, err := range src.Rows(t.Context()) {
			last = err
		}
		if !errors.Is(last, bad) {
			t.Errorf("got %v", last)
		}
	})
	t.Run("the plan fails", func(t *testing.T) {
		src, err := NewSource(readTable, texts{}, SourceOptions{Connection: Connection{RESTEndpoint: "localhost:1"}})
		if err != nil {
			t.Fatal(err)
		}
		pairs := 0
		for _, err := range src.Rows(t.Context()) {
			if pairs++; !errors.Is(err, ErrEndpoint) {
				t.Errorf("got %v", err)
			}
		}
		if pairs != 1 {
			t.Errorf("%d pairs, want the error alone", pairs)
		}
	})
}

// A connection that is cut is what grpc-go calls UNAVAILABLE, whatever it says in words, and the read goes on where it
// was.
func TestSourceSurvivesACutConnection(t *testing.T) {
	t.Parallel()
	s := (&readServer{streams: [][]string{numbered(0, 1000)}, blockRows: 10, failAt: 500, cut: make(chan struct{})}).serve(t)
	src := newSource(t, s, texts{}, SourceOptions{MaxRecordsPerFetch: 10})
	var got []string
	for text, err := range src.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, text); len(got) == 1 {
			close(s.cut)
		}
	}
	if diff := cmp.Diff(s.streams[0], got); diff != "" {
		t.Error(diff)
	}
	if n := len(s.opened); n < 2 || s.opened[n-1] == 0 || s.opened[n-1] > 500 {
		t.Errorf("calls opened at %v", s.opened)
	}
}

// A loop that ends early leaves nothing running. The test is not parallel: it counts goroutines.
func TestSourceLoopEndsEarly(t *testing.T) {
	s := (&readServer{streams: [][]string{numbered(0, 7), numbered(1, 3)}, blockRows: 2}).serve(t)
	src := newSource(t, s, texts{}, SourceOptions{MaxRecordsPerFetch: 1})
	session, err := src.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for range src.Rows(t.Context()) {
		break
	}
	for range session.Blocks(t.Context()) {
		break
	}
}

func TestReadSession(t *testing.T) {
	t.Parallel()
	s := (&readServer{streams: [][]string{numbered(0, 7), numbered(1, 4)}, blockRows: 3}).serve(t)
	session, err := newSource(t, s, texts{}, SourceOptions{}).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, bytes := session.Estimate()
	if session.Name() != "projects/p/locations/us/sessions/1" || session.Table().String() != "p.d.t" || session.Streams() != 2 ||
		rows != 11 || bytes != 110 || session.Expires().IsZero() || session.AvroSchema() != textSchema {
		t.Errorf("got %+v", session.session)
	}
	if diff := cmp.Diff(&table.Schema{Fields: []table.Field{{Name: "c", Type: table.String, Mode: table.Required}}}, session.Schema()); diff != "" {
		t.Error(diff)
	}
	for range 2 { // a session can be read again
		got := map[string]int64{}
		for b, err := range session.Blocks(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if got[b.Stream] != b.Offset || len(b.Data) != int(b.Rows)*5 {
				t.Errorf("%s: block of %d rows and %d bytes at %d after %d rows", b.Stream, b.Rows, len(b.Data), b.Offset, got[b.Stream])
			}
			got[b.Stream] += b.Rows
		}
		if want := map[string]int64{session.Name() + "/streams/0": 7, session.Name() + "/streams/1": 4}; !cmp.Equal(want, got) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// SRC-84
func TestSourceLimit(t *testing.T) {
	t.Parallel()
	s := (&readServer{streams: [][]string{numbered(0, 9)}, blockRows: 2}).serve(t)
	src := newSource(t, s, texts{}, SourceOptions{Limit: 5})
	session, err := src.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := s.requests[0].MaxStreamCount; got != 1 {
		t.Errorf("max_stream_count %d", got)
	}
	rows := 0
	for _, err := range session.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		rows++
	}
	var inBlocks int64
	for b, err := range session.Blocks(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if inBlocks += b.Rows; len(b.Data) != int(b.Rows)*5 {
			t.Errorf("a block of %d rows has %d bytes", b.Rows, len(b.Data))
		}
	}
	if rows != 5 || inBlocks != 5 {
		t.Errorf("%d rows, %d rows in blocks, want 5", rows, inBlocks)
	}
	split := splitsOf(t, src)[0]
	split.Position = 5
	opened := len(s.opened)
	r := src.reader(storageread.Attempt{Meter: stream.NoMeter, Log: quiet})
	defer r.Close()
	if err := r.Open(t.Context(), split); err != nil {
		t.Fatal(err)
	}
	if err := r.Fetch(t.Context(), new(stream.Batch[string])); err != io.EOF || len(s.opened) != opened {
		t.Errorf("restored at the limit: %v after %d calls", err, len(s.opened)-opened)
	}
}

// A lane that has no split gets one; that it asks only then is the engine's part.
func TestSourceEnumerator(t *testing.T) {
	t.Parallel()
	s := (&readServer{streams: [][]string{numbered(0, 1), numbered(1, 1)}}).serve(t)
	src := newSource(t, s, texts{}, SourceOptions{})
	if got := splitsOf(t, src); len(got) != 2 || got[0].ID == got[1].ID {
		t.Errorf("got %d splits", len(got))
	}
	if at := src.Locate(stream.Position{Split: "projects/p/locations/us/sessions/1/streams/0", Row: 7}); at.String() != "projects/p/locations/us/sessions/1/streams/0@7" {
		t.Errorf("located at %s", at)
	}
}
