package export_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	official "cloud.google.com/go/bigquery"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"cloud.google.com/go/civil"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"google.golang.org/api/iterator"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/export"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
)

// BenchmarkExport reads a table of 8 columns and 8 streams into a file. Each line is a race: the two take turns, so that what else
// the machine does meets both. The local service runs in the same process and is part of both.
//
//	FORMAT/bare      against a client that receives all streams in Arrow, as many at once, and throws them away
//	FORMAT/official  against the official client's iterator, with its Storage Read client, whose rows are written to such a file
//	arrow/batches    against the official client's iterator over Arrow batches, which are written to such a file
//
// rows/s and MB/s, of the table in Arrow, are of the first, base_rows/s of the second, and x is the median of the turns' ratios.
// EXPORT_BENCH_DIR is where files go; file systems in memory show the program, others the disk.
func BenchmarkExport(b *testing.B) {
	l := newBenchTable(b, 1_000_000)
	for _, f := range []export.Format{export.Arrow, export.Parquet, export.NDJSON} {
		ours := func(b *testing.B) { l.toFile(b, f) }
		b.Run(string(f)+"/bare", func(b *testing.B) { l.race(b, ours, l.bare) })
		b.Run(string(f)+"/official", func(b *testing.B) { l.race(b, ours, func(b *testing.B) { l.officially(b, f) }) })
	}
	b.Run("arrow/batches", func(b *testing.B) { l.race(b, func(b *testing.B) { l.toFile(b, export.Arrow) }, l.officialBatches) })
}

type benchTable struct {
	*local
	rows  int
	bytes int64 // in Arrow
	dir   string
	c     *official.Client
}

var benchSchema = &table.Schema{Fields: []table.Field{
	{Name: "id", Type: table.Int64}, {Name: "at", Type: table.Timestamp}, {Name: "name", Type: table.String}, {Name: "score", Type: table.Float64},
	{Name: "ok", Type: table.Bool}, {Name: "price", Type: table.Numeric}, {Name: "day", Type: table.Date}, {Name: "country", Type: table.String},
}}

func newBenchTable(b *testing.B, rows int) *benchTable {
	b.Helper()
	c := localbq.Config{Project: "p"}
	c.Profile.Limits.ReadSplitBytes = 12 << 20
	i, err := localbq.Start(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = i.Close() })
	if err := i.CreateDataset("d"); err != nil {
		b.Fatal(err)
	}
	l := &benchTable{local: &local{i, bigquery.Connection{GRPCEndpoint: i.GRPC(), RESTEndpoint: i.REST()}}, rows: rows, dir: os.Getenv("EXPORT_BENCH_DIR")}
	if l.dir == "" {
		l.dir = b.TempDir()
	}
	docs := make([]string, rows)
	for i := range docs {
		docs[i] = fmt.Sprintf(`{"id":%d,"at":"2026-07-26T01:%02d:%02d.%06dZ","name":"a name of some length, %d","score":%d.25,"ok":%t,"price":%d.%02d,"day":"2026-%02d-%02d","country":%q}`,
			i, i/60%60, i%60, i%1e6, i*7919%rows, i%1000, i%3 == 0, i%10_000, i%100, 1+i%12, 1+i%28, []string{"DE", "FR", "NL", "US"}[i%4])
	}
	l.write(b, benchSchema, docs...)
	if l.c, err = official.NewClient(b.Context(), "p", i.ClientOptions()...); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.c.Close() })
	if err := l.c.EnableStorageReadClient(b.Context(), i.GRPCClientOptions()...); err != nil {
		b.Fatal(err)
	}
	l.bare(b)
	return l
}

// race lets two take turns.
func (l *benchTable) race(b *testing.B, ours, base func(*testing.B)) {
	var took, cpu [2]time.Duration
	var ratios []float64
	for b.Loop() {
		var turn [2]time.Duration
		for i, f := range []func(*testing.B){ours, base} {
			for _, name := range files(b, l.dir) {
				if strings.HasPrefix(name, "out.") || name == "official" {
					_ = os.Remove(filepath.Join(l.dir, name))
				}
			}
			runtime.GC()
			began, used := time.Now(), processTime()
			f(b)
			turn[i] = time.Since(began)
			took[i] += turn[i]
			cpu[i] += processTime() - used
		}
		ratios = append(ratios, float64(turn[1])/float64(turn[0]))
	}
	slices.Sort(ratios)
	n := float64(b.N)
	b.ReportMetric(ratios[len(ratios)/2], "x")
	b.ReportMetric(float64(cpu[1])/float64(cpu[0]), "cpu_x")
	b.ReportMetric(n*float64(l.rows)/took[0].Seconds(), "rows/s")
	b.ReportMetric(n*float64(l.bytes)/1e6/took[0].Seconds(), "MB/s")
	b.ReportMetric(n*float64(l.rows)/took[1].Seconds(), "base_rows/s")
	b.ReportMetric(float64(cpu[0])/n/float64(l.rows), "cpu_ns/row")
}

func processTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (l *benchTable) toFile(b *testing.B, f export.Format) {
	o := export.Options{Format: f}
	o.Source.MaxStreamCount, o.Lanes = 8, runtime.GOMAXPROCS(0)
	if r := l.mustExport(b, filepath.Join(l.dir, "out."+string(f)), o); r.Rows != int64(l.rows) {
		b.Fatalf("%d rows", r.Rows)
	}
}

// bare receives.
func (l *benchTable) bare(b *testing.B) {
	c, err := l.connection.ReadClient(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	s, err := c.CreateReadSession(b.Context(), &storagepb.CreateReadSessionRequest{Parent: "projects/p", MaxStreamCount: 8,
		ReadSession: &storagepb.ReadSession{Table: dst.Path(), DataFormat: storagepb.DataFormat_ARROW}})
	if err != nil {
		b.Fatal(err)
	}
	if n := len(s.Streams); n != 8 {
		b.Fatalf("%d streams", n)
	}
	names := make(chan string, len(s.Streams))
	for _, st := range s.Streams {
		names <- st.Name
	}
	close(names)
	var mu sync.Mutex
	var rows, bytes int64
	var lanes sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		lanes.Go(func() {
			for name := range names {
				call, err := c.ReadRows(b.Context(), &storagepb.ReadRowsRequest{ReadStream: name})
				if err != nil {
					b.Error(err)
					return
				}
				for {
					r, err := call.Recv()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						b.Error(err)
						return
					}
					mu.Lock()
					rows += r.RowCount
					bytes += int64(len(r.GetArrowRecordBatch().GetSerializedRecordBatch()))
					mu.Unlock()
				}
			}
		})
	}
	lanes.Wait()
	if l.bytes = bytes; rows != int64(l.rows) {
		b.Fatalf("%d rows", rows)
	}
}

// file is one to write to, made safe at the end as an export is.
func (l *benchTable) file(b *testing.B, write func(w *bufio.Writer) error) {
	f, err := os.Create(filepath.Join(l.dir, "official"))
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err := errors.Join(write(w), w.Flush(), f.Sync(), f.Close()); err != nil {
		b.Fatal(err)
	}
}

func (l *benchTable) officially(b *testing.B, f export.Format) {
	l.file(b, func(w *bufio.Writer) error {
		it := l.c.Dataset("d").Table("t").Read(b.Context())
		switch f {
		case export.NDJSON:
			return officialJSON(it, w)
		case export.Arrow:
			out := ipc.NewWriter(w, ipc.WithSchema(benchArrow))
			return errors.Join(officialRows(it, out.Write), out.Close())
		}
		out, err := pqarrow.NewFileWriter(benchArrow, struct{ io.Writer }{w}, parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd),
			parquet.WithCompressionLevel(1)), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
		if err != nil {
			return err
		}
		return errors.Join(officialRows(it, out.WriteBuffered), out.Close())
	})
}

type benchRow struct {
	ID      int64      `bigquery:"id" json:"id"`
	At      time.Time  `bigquery:"at" json:"at"`
	Name    string     `bigquery:"name" json:"name"`
	Score   float64    `bigquery:"score" json:"score"`
	OK      bool       `bigquery:"ok" json:"ok"`
	Price   *big.Rat   `bigquery:"price" json:"price"`
	Day     civil.Date `bigquery:"day" json:"day"`
	Country string     `bigquery:"country" json:"country"`
}

func officialJSON(it *official.RowIterator, w io.Writer) error {
	out := json.NewEncoder(w)
	return eachOfficial(it, func(r *benchRow) error { return out.Encode(r) })
}

func eachOfficial(it *official.RowIterator, each func(*benchRow) error) error {
	for {
		var r benchRow
		err := it.Next(&r)
		if errors.Is(err, iterator.Done) {
			if !it.IsAccelerated() {
				return errors.New("the official client did not use the Storage Read API")
			}
			return nil
		}
		if err == nil {
			err = each(&r)
		}
		if err != nil {
			return err
		}
	}
}

var benchArrow = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	{Name: "name", Type: arrow.BinaryTypes.String}, {Name: "score", Type: arrow.PrimitiveTypes.Float64}, {Name: "ok", Type: arrow.FixedWidthTypes.Boolean},
	{Name: "price", Type: &arrow.Decimal128Type{Precision: 38, Scale: 9}}, {Name: "day", Type: arrow.FixedWidthTypes.Date32},
	{Name: "country", Type: arrow.BinaryTypes.String},
}, nil)

// officialRows makes batches of 16,384 rows.
func officialRows(it *official.RowIterator, write func(arrow.RecordBatch) error) error {
	build := array.NewRecordBuilder(memory.DefaultAllocator, benchArrow)
	defer build.Release()
	rows := 0
	flush := func() error {
		rows = 0
		batch := build.NewRecordBatch()
		defer batch.Release()
		return write(batch)
	}
	scale := big.NewRat(1e9, 1)
	err := eachOfficial(it, func(r *benchRow) error {
		build.Field(0).(*array.Int64Builder).Append(r.ID)
		build.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(r.At.UnixMicro()))
		build.Field(2).(*array.StringBuilder).Append(r.Name)
		build.Field(3).(*array.Float64Builder).Append(r.Score)
		build.Field(4).(*array.BooleanBuilder).Append(r.OK)
		build.Field(5).(*array.Decimal128Builder).Append(decimal128.FromBigInt(r.Price.Mul(r.Price, scale).Num()))
		build.Field(6).(*array.Date32Builder).Append(arrow.Date32FromTime(r.Day.In(time.UTC)))
		build.Field(7).(*array.StringBuilder).Append(r.Country)
		if rows++; rows < 16_384 {
			return nil
		}
		return flush()
	})
	return errors.Join(err, flush())
}

func (l *benchTable) officialBatches(b *testing.B) {
	l.file(b, func(w *bufio.Writer) error {
		it, err := l.c.Dataset("d").Table("t").Read(b.Context()).ArrowIterator()
		if err != nil {
			return err
		}
		r, err := ipc.NewReader(official.NewArrowIteratorReader(it))
		if err != nil {
			return err
		}
		defer r.Release()
		out := ipc.NewWriter(w, ipc.WithSchema(r.Schema()))
		for r.Next() {
			if err := out.Write(r.RecordBatch()); err != nil {
				return err
			}
		}
		return errors.Join(r.Err(), out.Close())
	})
}
