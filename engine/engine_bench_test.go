package engine_test

import (
	"context"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/stream"
)

// BenchmarkRecord measures what the engine itself costs per record: the source hands over the same batch again and again,
// and the sink does nothing. The baseline is the same loop without an engine.
func BenchmarkRecord(b *testing.B) {
	const rows = 1000
	run := func(b *testing.B, lanes int, fn stream.Func[int64, int64], sink stream.Sink[int64]) {
		perLane := (b.N + lanes - 1) / lanes
		src := endlessBatch{splits: lanes, rows: int64(perLane), batch: rows}
		b.ReportAllocs()
		b.ResetTimer()
		begun := time.Now()
		r, err := engine.Run(b.Context(), engine.Job[int64, int64]{Name: "bench", Source: src, Func: fn, Sink: sink}, engine.Options{Lanes: lanes})
		if err != nil || r.Tally.Written != int64(perLane*lanes) {
			b.Fatalf("%+v, %v", r, err)
		}
		b.ReportMetric(float64(r.Tally.Written)/time.Since(begun).Seconds(), "records/s")
	}
	for _, lanes := range []int{1, 2} {
		name := "lanes=" + strconv.Itoa(lanes)
		b.Run("write/"+name, func(b *testing.B) { run(b, lanes, nil, nothing{}) })
		b.Run("func/"+name, func(b *testing.B) { run(b, lanes, stream.Through[int64], nothing{}) })
		b.Run("bulk/"+name, func(b *testing.B) { run(b, lanes, nil, nothingBulk{}) })
	}
	b.Run("no engine", func(b *testing.B) {
		src := endlessBatch{splits: 1, rows: int64(b.N), batch: rows}
		r, _ := src.NewReader(b.Context(), stream.ReaderContext{})
		w, _ := nothing{}.NewWriter(b.Context(), stream.WriterContext{})
		if err := r.Open(b.Context(), stream.Split{}); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.ResetTimer()
		var batch stream.Batch[int64]
		for r.Fetch(b.Context(), &batch) == nil {
			records := batch.Records()
			for i := range records {
				if err := w.Write(b.Context(), &records[i]); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// endlessBatch gives rows that cost next to nothing: their batch is made once.
type endlessBatch struct {
	splits int
	rows   int64
	batch  int
}

func (s endlessBatch) Bounded() bool { return true }

func (s endlessBatch) NewEnumerator(context.Context, stream.EnumeratorContext) (stream.Enumerator, error) {
	return &fewSplits{left: s.splits}, nil
}

func (s endlessBatch) NewReader(context.Context, stream.ReaderContext) (stream.Reader[int64], error) {
	return &sameRows{s: s}, nil
}

type fewSplits struct{ left int }

func (e *fewSplits) Next(int) (stream.Split, error) {
	if e.left == 0 {
		return stream.Split{}, io.EOF
	}
	e.left--
	return stream.Split{ID: strconv.Itoa(e.left)}, nil
}

func (e *fewSplits) Return(int, []stream.Split) {}
func (e *fewSplits) Snapshot() ([]byte, error)  { return []byte{0}, nil }
func (e *fewSplits) Close() error               { return nil }

type sameRows struct {
	s    endlessBatch
	read int64
}

func (r *sameRows) Open(context.Context, stream.Split) error { r.read = 0; return nil }

func (r *sameRows) Fetch(_ context.Context, b *stream.Batch[int64]) error {
	left := r.s.rows - r.read
	if left == 0 {
		b.Reset()
		return io.EOF
	}
	n := min(int64(r.s.batch), left)
	if b.Len() != int(n) {
		b.Reset()
		for i := range n {
			b.Row(i, i+1)
			b.Emit(stream.Record[int64]{Value: i, At: stream.Position{Split: "s", Row: i}})
		}
	}
	r.read += n
	return nil
}

func (r *sameRows) Close() error { return nil }

type nothing struct{}

func (nothing) NewWriter(context.Context, stream.WriterContext) (stream.Writer[int64], error) {
	return &nothingWriter{}, nil
}

type nothingWriter struct{ n int64 }

func (w *nothingWriter) Write(context.Context, *stream.Record[int64]) error { w.n++; return nil }
func (w *nothingWriter) Flush(context.Context, bool) error                  { return nil }
func (w *nothingWriter) Prepare(context.Context, int64) ([]stream.Committable, error) {
	return nil, nil
}
func (w *nothingWriter) Snapshot(context.Context, int64) ([]stream.State, error) { return nil, nil }
func (w *nothingWriter) Close() error                                            { return nil }

type nothingBulk struct{}

func (nothingBulk) NewWriter(context.Context, stream.WriterContext) (stream.Writer[int64], error) {
	return &nothingBulkWriter{}, nil
}

type nothingBulkWriter struct{ nothingWriter }

func (w *nothingBulkWriter) WriteRecords(_ context.Context, rs []stream.Record[int64]) (int, error) {
	w.n += int64(len(rs))
	return len(rs), nil
}
