package fileload_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/internal/fileload"
	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/internal/staging/parquetfile"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/stream"
)

// lane is a writer that writes to a bench.
type lane struct {
	*bench
	w *fileload.Writer
}

// newLane makes a writer, of a stream unless it is told otherwise.
func (b *bench) newLane(change ...func(*fileload.Config)) *lane {
	b.Helper()
	c := b.cfg
	c.Failures, c.Run, c.Attempt, c.Streaming = stream.FailJob(), runA, 1, true
	o := &c.Options
	o.MaxFileBytes, o.MaxOpenDestinations, o.MaxPendingFiles, o.MaxRowBytes, o.IdleTimeout, o.Finalizations = 16<<20, 16, 10_000, 15_000_000, time.Minute, 1
	o.Parquet = parquetfile.Encoder{}
	for _, f := range change {
		f(&c)
	}
	w, err := fileload.New(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := w.Close(); err != nil {
			b.Error(err)
		}
	})
	return &lane{b, w}
}

func as(f loadplan.Format) func(*fileload.Config) {
	return func(c *fileload.Config) { c.Options.Format = f }
}

// write writes rows to a table.
func (l *lane) write(to table.Destination, rows ...[]byte) error {
	l.Helper()
	t, err := l.w.Target(to)
	if err != nil {
		l.Fatal(err)
	}
	for _, r := range rows {
		if err := l.w.Row(l.Context(), t, r); err != nil {
			return err
		}
	}
	return nil
}

func (l *lane) mustWrite(to table.Destination, rows ...[]byte) {
	l.Helper()
	if err := l.write(to, rows...); err != nil {
		l.Fatal(err)
	}
}

// prepare takes checkpoint 7.
func (l *lane) prepare() (promises []stream.Committable, files []loadplan.Committable) {
	l.Helper()
	err := l.w.Flush(l.Context(), false)
	if err == nil {
		promises, err = l.w.Prepare(l.Context(), 7)
	}
	if err != nil {
		l.Fatal(err)
	}
	for _, p := range promises {
		var f loadplan.Committable
		if err := f.UnmarshalBinary(p.Data); err != nil {
			l.Fatal(err)
		}
		files = append(files, f)
	}
	return promises, files
}

// object is what a staged file has.
func (b *bench) object(f loadplan.Committable) []byte {
	b.Helper()
	r, err := b.bucket.Object(strings.TrimPrefix(f.URI, "gs://staged/")).NewReader(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		b.Fatal(err)
	}
	return data
}

func id(n int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(n))
}

func TestStagedAvro(t *testing.T) {
	t.Parallel()
	b := newBench(t, localbq.Config{})
	l := b.newLane()
	l.mustWrite(dst("t"), id(1), id(2))
	if names := b.objects(); names != nil {
		t.Errorf("there are %q before the checkpoint", names)
	}
	promises, files := l.prepare()
	t.Run("FL-30 a container of zstandard blocks, as long as it is said to be", func(t *testing.T) {
		data := b.object(files[0])
		if !bytes.HasPrefix(data, []byte("Obj\x01")) || !bytes.Contains(data, []byte("zstandard")) || !bytes.Contains(data, []byte(`"name":"Row"`)) {
			t.Errorf("the object is %.200q", data)
		}
		if files[0].Bytes != int64(len(data)) || files[0].Rows != 2 || files[0].Format != loadplan.Avro || path.Ext(files[0].URI) != ".avro" {
			t.Errorf("promised %+v, of %d bytes", files[0], len(data))
		}
	})
	c := b.committer()
	if err := errors.Join(c.Commit(t.Context(), promises), c.Close()); err != nil {
		t.Fatal(err)
	}
	b.holds(dst("t"), 1, 2)
	if names := b.objects(); names != nil {
		t.Errorf("left behind %q", names)
	}
}

// TestOddNames: tables whose names mean something in URIs are staged and loaded, each on its own.
func TestOddNames(t *testing.T) {
	t.Parallel()
	b := newBench(t, localbq.Config{})
	l := b.newLane()
	names := []string{"a b", "a20b", "日本語", "Größe", "a-b", "a_b"}
	for i, name := range names {
		l.mustWrite(dst(name), id(int64(i)))
	}
	promises, files := l.prepare()
	for _, f := range files {
		if strings.ContainsFunc(f.URI, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("*?#[]%", r) }) {
			t.Errorf("named %q", f.URI)
		}
	}
	c := b.committer()
	if err := errors.Join(c.Commit(t.Context(), promises), c.Close()); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		b.holds(dst(name), int64(i))
	}
}

// TestEveryFormatIsLoaded: whatever rows are staged as, a commit loads them, and tells the load job what it must be told.
func TestEveryFormatIsLoaded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		format loadplan.Format
		ext    string
		change func(*fileload.Config)
	}{
		"AVRO":                      {loadplan.Avro, ".avro", nil},
		"FL-32 PARQUET":             {loadplan.Parquet, ".parquet", nil},
		"FL-32 PARQUET, unpacked":   {loadplan.Parquet, ".parquet", func(c *fileload.Config) { c.Options.ParquetUncompressed = true }},
		"JSONL":                     {loadplan.JSONL, ".jsonl.gz", nil},
		"CSV":                       {loadplan.CSV, ".csv.gz", nil},
		"CUSTOM, lines of its own":  {loadplan.Custom, ".psv", custom},
		"JSONL, many small files":   {loadplan.JSONL, ".jsonl.gz", func(c *fileload.Config) { c.Options.MaxOpenDestinations = 1 }},
		"FL-33 PARQUET, rolled":     {loadplan.Parquet, ".parquet", func(c *fileload.Config) { c.Options.MaxFileBytes = 1 }},
		"FL-18 AVRO, a file a row ": {loadplan.Avro, ".avro", func(c *fileload.Config) { c.Options.MaxFileBytes = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, localbq.Config{})
			more := field("s", table.String)
			values := func(n int64) []row.Value { return []row.Value{{Int: n}, rowtest.Text(fmt.Sprintf("a,\"b\"|\n%d", n))} }
			if c.format == loadplan.Parquet {
				more.Mode = table.Repeated
				values = func(n int64) []row.Value {
					return []row.Value{{Int: n}, rowtest.List(rowtest.Text("x"), rowtest.Text(fmt.Sprint(n)))}
				}
			}
			s := columns(more)
			for _, name := range []string{"t", "u"} {
				b.rows.of[dst(name)] = s
			}
			changes := []func(*fileload.Config){as(c.format)}
			if c.change != nil {
				changes = append(changes, c.change)
				c.change(&b.cfg)
			}
			l := b.newLane(changes...)
			var want []int64
			for n := range int64(20) {
				l.mustWrite(dst("t"), rowtest.Encode(s.Fields, values(n)))
				l.mustWrite(dst("u"), rowtest.Encode(s.Fields, values(n+100)))
				want = append(want, n)
			}
			promises, files := l.prepare()
			for _, f := range files {
				if f.Format != c.format || !strings.HasSuffix(f.URI, c.ext) || f.Bytes != int64(len(b.object(f))) {
					t.Errorf("promised %+v", f)
				}
			}
			committer := b.committer()
			if err := errors.Join(committer.Commit(t.Context(), promises), committer.Close()); err != nil {
				t.Fatal(err)
			}
			b.holds(dst("t"), want...)
			texts(b, dst("t"), s, values(3))
		})
	}
}

// shown are the rows of a table, as JSON has them.
func (b *bench) shown(of table.Destination) (rows []map[string]any) {
	b.Helper()
	batches, err := b.bq.Batches(of.String())
	if err != nil {
		b.Fatal(err)
	}
	for _, batch := range batches {
		text, err := batch.MarshalJSON()
		if err != nil {
			b.Fatal(err)
		}
		var some []map[string]any
		if err := json.Unmarshal(text, &some); err != nil {
			b.Fatal(err)
		}
		rows = append(rows, some...)
	}
	return rows
}

// texts requires a table to have a row, as it is shown.
func texts(b *bench, to table.Destination, s *table.Schema, values []row.Value) {
	b.Helper()
	for _, r := range b.shown(to) {
		if fmt.Sprint(r["id"]) != fmt.Sprint(values[0].Int) {
			continue
		}
		want := fmt.Sprint(string(values[1].Bytes))
		if s.Fields[1].Mode == table.Repeated {
			want = fmt.Sprintf("[%s %s]", values[1].List[0].Bytes, values[1].List[1].Bytes)
		}
		if fmt.Sprint(r["s"]) != want {
			b.Errorf("row %v, want %q", r, want)
		}
		return
	}
	b.Errorf("no row of id %d", values[0].Int)
}

// custom writes an id, a bar and JSON text a line, as CSV with another delimiter.
func custom(c *fileload.Config) {
	quote := "'"
	c.Options.Custom = &staging.CustomFiles{
		Suffix: ".psv",
		Open: func(w io.Writer, s *table.Schema, d *descriptorpb.DescriptorProto) (staging.File, error) {
			decoder, err := row.NewDecoder(s)
			return &bars{w: w, decoder: decoder}, err
		},
		Configure: func(l *staging.Load) {
			l.SourceFormat = "CSV"
			l.CSV = &staging.CSVLoad{FieldDelimiter: "|", Quote: &quote, AllowQuotedNewlines: true, SkipLeadingRows: 1}
		},
	}
}

type bars struct {
	w       io.Writer
	decoder *row.Decoder
	n       int64
}

func (f *bars) Write(data []byte) error {
	r, err := f.decoder.Decode(data)
	if err != nil {
		return err
	}
	if f.n == 0 {
		if err := f.put("id|s\n"); err != nil {
			return err
		}
	}
	return f.put(fmt.Sprintf("%d|'%s'\n", r.Values[0].Int, r.Values[1].Bytes))
}

func (f *bars) put(s string) error {
	n, err := io.WriteString(f.w, s)
	f.n += int64(n)
	return err
}

func (f *bars) Size() int64  { return f.n }
func (f *bars) Close() error { return nil }

func TestParquetIsOverridden(t *testing.T) {
	t.Parallel()
	for _, of := range []table.Type{table.JSON, table.DateTime} {
		t.Run("FL-31 "+of.String(), func(t *testing.T) {
			b := newBench(t, localbq.Config{})
			s := columns(table.Field{Name: "st", Type: table.Struct, Mode: table.Repeated, Fields: []table.Field{{Name: "deep", Type: of}}})
			b.rows.of[dst("t")] = s
			choice := staging.NewChoice(loadplan.Parquet)
			for lane := range 2 {
				l := b.newLane(as(loadplan.Parquet), func(c *fileload.Config) { c.Choice, c.Lane = choice, lane })
				for range 100 {
					l.mustWrite(dst("t"), id(1))
				}
				l.mustWrite(dst("other"), id(1))
				_, files := l.prepare()
				if len(files) != 2 || files[0].Format != loadplan.Parquet || files[1].Format != loadplan.Avro || path.Ext(files[1].URI) != ".avro" {
					t.Errorf("staged %+v", files)
				}
				if !bytes.HasPrefix(b.object(files[1]), []byte("Obj\x01")) || !bytes.HasPrefix(b.object(files[0]), []byte("PAR1")) {
					t.Error("the files are not what they are called")
				}
			}
			if n := len(b.log.with("files are staged as Avro")); n != 1 {
				t.Errorf("%d lines in the log, want 1", n)
			}
		})
	}
}

// TestLargeParquet: row groups are written as they fill, so that files are finished at their size.
func TestLargeParquet(t *testing.T) {
	t.Parallel()
	b := newBench(t, localbq.Config{})
	s := columns(field("s", table.Bytes))
	b.rows.of[dst("t")] = s
	l := b.newLane(as(loadplan.Parquet))
	noise := rand.NewChaCha8([32]byte{})
	for n := range int64(40) {
		data := make([]byte, 1<<20)
		_, _ = noise.Read(data)
		l.mustWrite(dst("t"), rowtest.Encode(s.Fields, []row.Value{{Int: n}, {Bytes: data}}))
	}
	_, files := l.prepare()
	rows := int64(0)
	for _, f := range files {
		rows += f.Rows
	}
	t.Run("FL-33 40 MiB are two files at least", func(t *testing.T) {
		if len(files) < 2 || rows != 40 || files[0].Bytes < 16<<20 || files[0].Bytes > 20<<20 {
			t.Errorf("%d files of %d rows, the first %+v", len(files), rows, files[0])
		}
	})
}

// TestUploadsGoOn: faults of Cloud Storage that pass leave no mark on what is loaded.
func TestUploadsGoOn(t *testing.T) {
	t.Parallel()
	b := newBench(t, localbq.Config{})
	s := columns(field("s", table.Bytes))
	b.rows.of[dst("t")] = s
	gcs := func(method string, nth int, a localbq.FaultAction) localbq.Fault {
		return localbq.Fault{Match: localbq.FaultMatch{Service: "gcs", Method: method, Nth: nth}, Action: a}
	}
	b.arm(gcs("gcs.upload.chunk", 1, localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 503, Reason: "backendError"}}),
		gcs("gcs.upload.chunk", 3, localbq.FaultAction{LoseAck: true}), gcs("gcs.upload.chunk", 5, localbq.FaultAction{Reset: true}),
		gcs("gcs.upload.start", 2, localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 503, Reason: "backendError"}}),
		gcs("objects.insert", 1, localbq.FaultAction{LoseAck: true}))
	l := b.newLane(func(c *fileload.Config) { c.Options.MaxFileBytes = 5 << 20 })
	noise := rand.NewChaCha8([32]byte{})
	var want []int64
	for n := range int64(24) {
		data := make([]byte, 512<<10)
		_, _ = noise.Read(data)
		l.mustWrite(dst("t"), rowtest.Encode(s.Fields, []row.Value{{Int: n}, {Bytes: data}}))
		want = append(want, n)
	}
	l.mustWrite(dst("u"), id(1))
	promises, _ := l.prepare()
	b.bq.Faults().MustAllFire(t)
	c := b.committer()
	if err := errors.Join(c.Commit(t.Context(), promises), c.Close()); err != nil {
		t.Fatal(err)
	}
	b.holds(dst("t"), want...)
	b.holds(dst("u"), 1)
}

// TestLostUpload: a file whose upload is gone ends the writer, and promises nothing.
func TestLostUpload(t *testing.T) {
	t.Parallel()
	b := newBench(t, localbq.Config{})
	s := columns(field("s", table.Bytes))
	b.rows.of[dst("t")] = s
	b.arm(localbq.Fault{Match: localbq.FaultMatch{Service: "gcs", Method: "gcs.upload.chunk"}, Count: localbq.FaultAlways,
		Action: localbq.FaultAction{HTTP: &localbq.FaultHTTP{Code: 410, Reason: "gone"}}})
	l := b.newLane()
	noise := rand.NewChaCha8([32]byte{})
	var err error
	for n := 0; n < 100 && err == nil; n++ {
		data := make([]byte, 512<<10)
		_, _ = noise.Read(data)
		err = l.write(dst("t"), rowtest.Encode(s.Fields, []row.Value{{Int: 1}, {Bytes: data}}))
	}
	var bad *fileload.RowError
	if err == nil || errors.As(err, &bad) || !strings.Contains(err.Error(), "stage rows of p.d.t") || !strings.Contains(err.Error(), "410") {
		t.Errorf("got %v", err)
	}
	if again := l.write(dst("u"), id(1)); !cmp.Equal(fmt.Sprint(again), fmt.Sprint(err)) {
		t.Errorf("the next row: %v", again)
	}
	if err := l.w.Close(); err != nil {
		t.Error(err)
	}
	if names := b.objects(); names != nil {
		t.Errorf("there are %q", names)
	}
}

// TestDatetimeText: texts of DATETIME columns are staged as what they mean, those that mean nothing are their rows' fault.
func TestDatetimeText(t *testing.T) {
	t.Parallel()
	b := newBench(t, localbq.Config{})
	b.rows.of[dst("t")] = columns(field("at", table.DateTime))
	l := b.newLane(as(loadplan.JSONL), func(c *fileload.Config) { c.Rows = texting{b.rows} })
	put := func(text string) error {
		return l.write(dst("t"), protowire.AppendString(protowire.AppendTag(id(1), 2, protowire.BytesType), text))
	}
	for _, good := range []string{"2026-8-4 12:34:56", "2026-08-04t12:34:56", "2026-08-04T12:34", "2026-08-04", "2026-08-04 12:34:56.123456789"} {
		if err := put(good); err != nil {
			t.Errorf("FL-35 %q: %v", good, err)
		}
	}
	for _, wrong := range []string{"2026-02-30", "2027-02-29", "2026-08-04 24:00:00", "", "04/08/2026", "12026-08-04"} {
		t.Run("FL-35 "+wrong, func(t *testing.T) {
			err := put(wrong)
			var bad *fileload.RowError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), "field at") {
				t.Errorf("got %v", err)
			}
		})
	}
	_, files := l.prepare()
	want := []string{"2026-08-04T12:34:56", "2026-08-04T12:34:56", "2026-08-04T12:34:00", "2026-08-04T00:00:00", "2026-08-04T12:34:56.123456"}
	z, err := gzip.NewReader(bytes.NewReader(b.object(files[0])))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(text)))
	if len(lines) != len(want) {
		t.Fatalf("FL-35: staged %q", lines)
	}
	for i, line := range lines {
		t.Run("FL-35 as it is staged", func(t *testing.T) {
			if line != `{"id":1,"at":"`+want[i]+"\"}\n" {
				t.Errorf("staged %q, want %q", line, want[i])
			}
		})
	}
}

// texting has text for DATETIME columns.
type texting struct{ *schemas }

func (s texting) Descriptor(d table.Destination) (*descriptorpb.DescriptorProto, error) {
	return row.Descriptor(columns(field("at", table.String)))
}

func TestDecimals(t *testing.T) {
	t.Parallel()
	b := newBench(t, localbq.Config{})
	short := field("n", table.Numeric)
	short.Precision, short.Scale = 10, 2
	b.rows.of[dst("short")], b.rows.of[dst("long")] = columns(short), columns(field("n", table.Numeric))
	l := b.newLane(as(loadplan.CSV))
	put := func(to, number string) error {
		return l.write(dst(to), rowtest.Encode(b.rows.of[dst("long")].Fields, []row.Value{{Int: 1}, rowtest.Decimal(table.Numeric, number)}))
	}
	t.Run("FL-36 a number that would be rounded is its row's fault", func(t *testing.T) {
		err := put("short", "1.005")
		var bad *fileload.RowError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), "field n") {
			t.Errorf("got %v", err)
		}
	})
	if err := errors.Join(put("short", "1.05"), put("long", "123.456")); err != nil {
		t.Fatal(err)
	}
	promises, _ := l.prepare()
	c := b.committer()
	if err := errors.Join(c.Commit(t.Context(), promises), c.Close()); err != nil {
		t.Fatal(err)
	}
	t.Run("FL-36 123.456 is loaded as it is", func(t *testing.T) {
		if got := b.shown(dst("long")); len(got) != 1 || strings.TrimRight(fmt.Sprint(got[0]["n"]), "0") != "123.456" {
			t.Errorf("got %v", got)
		}
	})
}

// TestAbsent: what a row has nothing for is NULL, or a list without elements.
func TestAbsent(t *testing.T) {
	t.Parallel()
	for _, f := range []loadplan.Format{loadplan.Avro, loadplan.Parquet, loadplan.JSONL} {
		t.Run("FL-37 "+f.String(), func(t *testing.T) {
			b := newBench(t, localbq.Config{})
			b.rows.of[dst("t")] = columns(field("s", table.String), table.Field{Name: "l", Type: table.String, Mode: table.Repeated})
			l := b.newLane(as(f))
			l.mustWrite(dst("t"), id(1))
			promises, _ := l.prepare()
			c := b.committer()
			if err := errors.Join(c.Commit(t.Context(), promises), c.Close()); err != nil {
				t.Fatal(err)
			}
			if got := b.shown(dst("t")); len(got) != 1 || fmt.Sprint(got[0]) != "map[id:1 l:[] s:<nil>]" {
				t.Errorf("got %v", got)
			}
		})
	}
}

// evolving has columns that change.
type evolving struct {
	*schemas
	fingerprint uint64
}

func (s *evolving) Fingerprint(table.Destination) uint64 { return s.fingerprint }

// TestSchemaChangesBetweenRows: rows of both schemas are staged, each in files of their own, and loaded together.
func TestSchemaChangesBetweenRows(t *testing.T) {
	t.Parallel()
	for _, f := range []loadplan.Format{loadplan.Avro, loadplan.Parquet, loadplan.JSONL} {
		t.Run(f.String(), func(t *testing.T) {
			b := newBench(t, localbq.Config{})
			b.cfg.Update.AllowNewFields = true
			rows := &evolving{b.rows, 1}
			b.cfg.Rows = rows
			l := b.newLane(as(f))
			l.mustWrite(dst("t"), id(1), id(2))
			s := columns(field("s", table.String))
			b.rows.of[dst("t")], rows.fingerprint = s, 2
			l.mustWrite(dst("t"), rowtest.Encode(s.Fields, []row.Value{{Int: 3}, rowtest.Text("x")}))
			promises, files := l.prepare()
			if len(files) != 2 || files[0].Rows != 2 || files[1].Rows != 1 {
				t.Errorf("staged %+v", files)
			}
			c := b.committer()
			if err := errors.Join(c.Commit(t.Context(), promises), c.Close()); err != nil {
				t.Fatal(err)
			}
			b.holds(dst("t"), 1, 2, 3)
			texts(b, dst("t"), s, []row.Value{{Int: 3}, rowtest.Text("x")})
		})
	}
}
