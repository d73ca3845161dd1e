package fileload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

func TestWriterRecords(t *testing.T) {
	t.Parallel()
	t.Run("FL-12 a record that cannot be routed is handed over, and counted for no table", func(t *testing.T) {
		d := newDesk(t, func(c *Config) { c.PerDestinationMetrics = true })
		if err := d.w.Reject(t.Context(), nil, &stream.FailedRecord{Reason: "no such field", Original: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if f := d.taker.records[0]; f.Destination != stream.Unresolved || f.Connector != "bigquery" || string(f.Original) != "x" {
			t.Errorf("handed over %+v", f)
		}
		d.wants("send_errors=1", "send_errors{p.d.t}=0", "records_sent=0")
		if len(d.heap.created) != 0 {
			t.Errorf("created %q", d.heap.created)
		}
	})
	t.Run("FL-15 a skipped record leaves no trace, an empty row is a row", func(t *testing.T) {
		d := newDesk(t)
		d.w.Skip()
		d.wants("records_skipped=1", "open_destinations=0")
		if len(d.rows.asked) != 0 {
			t.Errorf("asked %v", d.rows.asked)
		}
		if err := d.put("t", []byte{}); err != nil {
			t.Fatal(err)
		}
		if _, got := d.commit(); !cmp.Equal(got, []string{"t:1"}) {
			t.Errorf("got %q", got)
		}
		if got := d.w.Tally(); got != (stream.Tally{Written: 1, Skipped: 1}) {
			t.Errorf("tally %+v", got)
		}
	})
	t.Run("FL-16 the longest row", func(t *testing.T) {
		d := newDesk(t)
		head := len(d.encode(1, strings.Repeat("x", 14_000_000))) - 14_000_000
		long := d.encode(1, strings.Repeat("x", 15_000_001-head))
		if len(long) != 15_000_001 {
			t.Fatal(len(long))
		}
		if err := d.put("t", long); err != nil {
			t.Fatal(err)
		}
		if f := d.taker.records; len(f) != 1 || len(f[0].Row) != 15_000_001 || !strings.Contains(f[0].Reason, "15000001 bytes long: expected at most 15000000") {
			t.Errorf("%d are handed over", len(f))
		}
		if len(d.heap.created) != 0 || len(d.rows.asked) != 0 {
			t.Errorf("created %q, asked %v", d.heap.created, d.rows.asked)
		}
		if err := d.put("t", d.encode(1, strings.Repeat("x", 15_000_000-head))); err != nil {
			t.Fatal(err)
		}
		if _, got := d.commit(); !cmp.Equal(got, []string{"t:1"}) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("FL-17 bytes that are no row, then a row", func(t *testing.T) {
		d := newDesk(t)
		for _, bad := range [][]byte{{0xff}, protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 1), rowtest.Encode(plainSchema.Fields, []row.Value{{Int: 1}, rowtest.Text("\xff")})} {
			if err := d.put("t", bad); err != nil {
				t.Fatal(err)
			}
		}
		if len(d.heap.created) != 0 {
			t.Errorf("created %q", d.heap.created)
		}
		d.add("t")
		if err := d.put("t", []byte{0xff}); err != nil {
			t.Fatal(err)
		}
		d.add("t")
		if f := d.taker.records; len(f) != 4 || !bytes.Equal(f[0].Row, []byte{0xff}) || f[0].Destination != "p.d.t" {
			t.Errorf("handed over %+v", f)
		}
		if _, got := d.commit(); !cmp.Equal(got, []string{"t:2"}) {
			t.Errorf("got %q", got)
		}
		d.wants("send_errors=4", "records_sent=2")
	})
	t.Run("FL-84 rows by destination", func(t *testing.T) {
		d := newDesk(t, func(c *Config) { c.PerDestinationMetrics = true })
		d.add("t", "t")
		if err := d.put("t", []byte{0xff}); err != nil {
			t.Fatal(err)
		}
		d.wants("records_sent{p.d.t}=2", "send_errors{p.d.t}=1", "records_sent=2", "send_errors=1")
		reports := d.cfg.Ledger.Reports()
		if len(reports) != 1 || reports[0].Rows != 2 || reports[0].DeadLettered != 1 || reports[0].Bytes != int64(2*len(d.encode(0, "t"))) {
			t.Errorf("reports %+v", reports)
		}
	})
	t.Run("FL-85 a record that fails the job ends the writer", func(t *testing.T) {
		d := newDesk(t)
		d.taker.handle = errors.New("handler says no")
		d.add("t")
		if err := d.put("t", []byte{0xff}); !errors.Is(err, d.taker.handle) {
			t.Errorf("got %v", err)
		}
		if err := d.put("t", d.encode(1, "")); !errors.Is(err, d.taker.handle) {
			t.Errorf("the next row: %v", err)
		}
		if files, err := d.checkpoint(false); !errors.Is(err, d.taker.handle) || files != nil {
			t.Errorf("a checkpoint: %v, %v", files, err)
		}
		if got := d.w.Tally(); got != (stream.Tally{Written: 1, Failed: 1, Bytes: int64(len(d.encode(0, "t")))}) {
			t.Errorf("tally %+v", got)
		}
	})
	t.Run("an error of the depot ends the writer", func(t *testing.T) {
		d := newDesk(t)
		d.heap.write = errors.New("disk full")
		err := d.put("t", d.encode(1, ""))
		var bad *RowError
		if !errors.Is(err, d.heap.write) || errors.As(err, &bad) || !strings.Contains(err.Error(), "stage rows of p.d.t") {
			t.Errorf("got %v", err)
		}
		if len(d.taker.records) != 0 {
			t.Error("the row is blamed")
		}
	})
}

func TestWriterFiles(t *testing.T) {
	t.Parallel()
	t.Run("FL-18 files are rolled", func(t *testing.T) {
		d := newDesk(t, func(c *Config) { c.Options.MaxFileBytes = 1 })
		d.add("t", "t", "t")
		files, got := d.commit()
		if !cmp.Equal(got, []string{"t:1", "t:1", "t:1"}) {
			t.Errorf("got %q", got)
		}
		if files[0].URI == files[1].URI || files[1].URI == files[2].URI || files[0].URI == files[2].URI {
			t.Errorf("files %+v", files)
		}
		d.wants("files_staged=3", "records_sent=3", fmt.Sprintf("bytes_sent=%d", files[0].Bytes+files[1].Bytes+files[2].Bytes))
		if d.rows.asked["t"] != 1 {
			t.Errorf("the schema is read %d times", d.rows.asked["t"])
		}
	})
	t.Run("FL-19 FL-39 the sequence goes on from checkpoint to checkpoint, each with its own rows and its own stamp", func(t *testing.T) {
		d := newDesk(t)
		d.add("t")
		first, _ := d.commit()
		d.add("t", "t")
		second, _ := d.commit()
		name := regexp.MustCompile(`^gs://staged/x/` + testRun + `/p\.d\.t/3-2-[0-9a-f]{8}-(\d+)\.avro$`)
		a, b := name.FindStringSubmatch(first[0].URI), name.FindStringSubmatch(second[0].URI)
		if a == nil || b == nil || a[1] != "0" || b[1] != "1" || strings.TrimSuffix(first[0].URI, "0.avro") != strings.TrimSuffix(second[0].URI, "1.avro") {
			t.Errorf("named %s and %s", first[0].URI, second[0].URI)
		}
		if first[0].Rows != 1 || second[0].Rows != 2 || first[0].Checkpoint != (loadplan.Checkpoint{ID: 1, Set: true}) || second[0].Checkpoint.ID != 2 {
			t.Errorf("files %+v, %+v", first, second)
		}
		if first[0].Run != testRun || first[0].Profile != new(loadplan.Config).Profile() || first[0].Destination != at("t") || first[0].Format != loadplan.Avro {
			t.Errorf("file %+v", first[0])
		}
	})
	t.Run("FL-20 the file without a row for longest is finished for another one", func(t *testing.T) {
		d := newDesk(t)
		d.add(names(17)...)
		d.wants("capacity_evictions=1", "open_destinations=16", "pending_files=17", "files_staged=1")
		if got := d.heap.uris(); len(got) != 1 || !strings.Contains(got[0], "/p.d.t1/") {
			t.Errorf("finished %q", got)
		}
	})
	t.Run("FL-21 a row counts, whichever file was opened first", func(t *testing.T) {
		d := newDesk(t)
		d.add(names(16)...)
		d.add("t1", "t17")
		if got := d.heap.uris(); len(got) != 1 || !strings.Contains(got[0], "/p.d.t2/") {
			t.Errorf("finished %q", got)
		}
	})
	t.Run("FL-22 a table whose file was finished gets another one, under the schema of then", func(t *testing.T) {
		d := newDesk(t)
		d.add(names(17)...)
		d.add("t1")
		d.wants("capacity_evictions=2", "pending_files=18")
		if d.rows.asked["t1"] != 2 || d.rows.asked["t3"] != 1 {
			t.Errorf("schemas read %v", d.rows.asked)
		}
		files, _ := d.commit()
		var seqs []string
		for _, f := range files {
			if f.Destination == at("t1") {
				seqs = append(seqs, f.URI[strings.LastIndexByte(f.URI, '-'):])
			}
		}
		if len(files) != 18 || !cmp.Equal(seqs, []string{"-0.avro", "-17.avro"}) {
			t.Errorf("%d files, of t1 %q", len(files), seqs)
		}
	})
	t.Run("FL-23 more files than one commit may be handed", func(t *testing.T) {
		d := newDesk(t, func(c *Config) { c.Options.MaxPendingFiles, c.Options.MaxFileBytes = 16, 1 })
		for range 16 {
			d.add("t")
		}
		created := len(d.heap.created)
		err := d.put("t", d.encode(1, ""))
		if !errors.Is(err, ErrPendingFilesExceeded) || !strings.Contains(err.Error(), "MaxPendingFiles is 16") {
			t.Errorf("got %v", err)
		}
		if len(d.heap.created) != created {
			t.Errorf("created %q", d.heap.created[created:])
		}
		d.wants("capacity_evictions=0", "pending_files=16", "open_destinations=0")
		var permanent interface{ Permanent() bool }
		if errors.As(err, &permanent) {
			t.Errorf("a stream gives up for good: %v", err)
		}
	})
	t.Run("FL-23 open files are pending too, and none is finished", func(t *testing.T) {
		d := newDesk(t, func(c *Config) { c.Options.MaxPendingFiles, c.Streaming = 16, false })
		d.add(names(16)...)
		err := d.put("t17", d.encode(1, ""))
		var permanent interface{ Permanent() bool }
		if !errors.Is(err, ErrPendingFilesExceeded) || !errors.As(err, &permanent) || !permanent.Permanent() {
			t.Errorf("got %v, which a batch meets again", err)
		}
		if got := d.heap.uris(); got != nil {
			t.Errorf("finished %q", got)
		}
	})
	t.Run("FL-24 an idle file is finished at a tick, and its conversion forgotten", func(t *testing.T) {
		d := newDesk(t)
		d.add("t", "u")
		d.now = 60_000
		d.add("u")
		d.now = 60_001
		if err := d.w.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.wants("idle_evictions=1", "open_destinations=1", "pending_files=2", "capacity_evictions=0")
		d.add("t")
		if d.rows.asked["t"] != 2 || d.rows.asked["u"] != 1 {
			t.Errorf("schemas read %v", d.rows.asked)
		}
		if _, got := d.commit(); !cmp.Equal(got, []string{"t:1", "t:1", "u:2"}) {
			t.Errorf("got %q", got)
		}
		if d.w.Every() != 15*time.Second {
			t.Errorf("ticks every %v", d.w.Every())
		}
	})
	t.Run("FL-24 and at any row, bad ones included", func(t *testing.T) {
		d := newDesk(t, func(c *Config) { c.Options.IdleTimeout = 10 * time.Second })
		d.add("t")
		d.now = 10_001
		if err := d.put("u", make([]byte, 15_000_001)); err != nil {
			t.Fatal(err)
		}
		d.wants("idle_evictions=1", "open_destinations=0")
		if d.w.Every() != 5*time.Second {
			t.Errorf("ticks every %v", d.w.Every())
		}
	})
	t.Run("rows of another schema go to another file", func(t *testing.T) {
		d := newDesk(t)
		d.rows.fingerprint = 1
		d.add("t", "t")
		d.rows.fingerprint, d.rows.schema = 2, &table.Schema{Fields: append(plainSchema.Fields[:2:2], table.Field{Name: "more", Type: table.Date})}
		d.add("t")
		if _, got := d.commit(); !cmp.Equal(got, []string{"t:2", "t:1"}) {
			t.Errorf("got %q", got)
		}
		if d.rows.asked["t"] != 2 || !strings.Contains(d.log.String(), "row schema changed") {
			t.Errorf("schemas read %v, log %s", d.rows.asked, d.log)
		}
	})
	t.Run("tables of bad rows alone do not pile up", func(t *testing.T) {
		d := newDesk(t)
		for _, name := range names(100) {
			if err := d.put(name, []byte{0xff}); err != nil {
				t.Fatal(err)
			}
		}
		held := 0
		for _, target := range d.w.targets {
			if target.conversion != nil {
				held++
			}
		}
		if held != 16 || len(d.w.spare) != 16 {
			t.Errorf("%d conversions are held, %d set aside", held, len(d.w.spare))
		}
	})
}

func TestWriterSchemas(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]table.Field{
		"FL-34 INTERVAL":        {Name: "v", Type: table.Interval},
		"FL-34 RANGE":           {Name: "v", Type: table.Range, Range: table.Date},
		"FL-34 a flexible name": {Name: "a-b", Type: table.Int64},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.rows.schema = &table.Schema{Fields: []table.Field{f}}
			err := d.put("t", nil)
			var permanent interface{ Permanent() bool }
			if err == nil || !strings.Contains(err.Error(), "FILE_LOADS") || !strings.Contains(err.Error(), f.Name) || !errors.As(err, &permanent) || !permanent.Permanent() {
				t.Errorf("got %v", err)
			}
			if len(d.taker.records) != 0 || len(d.heap.created) != 0 {
				t.Errorf("handed over %d, created %q", len(d.taker.records), d.heap.created)
			}
			if err := d.put("u", nil); err == nil {
				t.Error("the writer goes on")
			}
		})
	}
	t.Run("CSV refuses lists and STRUCTs when they are first met", func(t *testing.T) {
		d := newDesk(t, func(c *Config) { c.Options.Format = loadplan.CSV })
		d.rows.schema = &table.Schema{Fields: []table.Field{{Name: "l", Type: table.Int64, Mode: table.Repeated}}}
		if err := d.put("t", nil); err == nil || !strings.Contains(err.Error(), "FILE_LOADS") || !strings.Contains(err.Error(), "field l") || !strings.Contains(err.Error(), "CSV") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a schema that is not to be had now may be later", func(t *testing.T) {
		d := newDesk(t)
		d.rows.err = fmt.Errorf("registry: %w", row.ErrUnavailable)
		err := d.put("t", nil)
		var permanent interface{ Permanent() bool }
		if !errors.Is(err, row.ErrUnavailable) || !errors.As(err, &permanent) || permanent.Permanent() {
			t.Errorf("got %v", err)
		}
	})
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	t.Run("FL-25 nothing is promised where nothing was staged", func(t *testing.T) {
		d := newDesk(t)
		if files, err := d.checkpoint(true); err != nil || files != nil {
			t.Errorf("%v, %v", files, err)
		}
	})
	t.Run("FL-26 eight at once at most, in the order of paths", func(t *testing.T) {
		d := newDesk(t, func(c *Config) { c.Options.Finalizations = 8 })
		d.add("j", "c", "a", "h", "b", "g", "d", "i", "f", "e")
		d.heap.gate, d.heap.reached = make(chan struct{}), make(chan struct{})
		go func() {
			for range 8 {
				<-d.heap.reached
			}
			for range 2 {
				d.heap.gate <- struct{}{}
				<-d.heap.reached
			}
			for range 8 {
				d.heap.gate <- struct{}{}
			}
		}()
		_, got := d.commit()
		if !cmp.Equal(got, strings.Fields("a:1 b:1 c:1 d:1 e:1 f:1 g:1 h:1 i:1 j:1")) {
			t.Errorf("got %q", got)
		}
		if d.heap.most != 8 {
			t.Errorf("%d at once", d.heap.most)
		}
		d.wants("open_destinations=0", "pending_files=0", "files_staged=10")
	})
	t.Run("FL-27 one of ten fails: those under way are waited for, none is promised", func(t *testing.T) {
		d := newDesk(t, func(c *Config) { c.Options.Finalizations = 3 })
		first, second := errors.New("first"), errors.New("second")
		d.heap.fail["/p.d.b/"], d.heap.fail["/p.d.c/"] = second, first
		d.add("j", "c", "a", "h", "b", "g", "d", "i", "f", "e")
		d.heap.gate, d.heap.reached = make(chan struct{}), make(chan struct{})
		go func() {
			for range 3 {
				<-d.heap.reached
			}
			close(d.heap.gate)
			for range d.heap.reached {
			}
		}()
		files, err := d.checkpoint(false)
		close(d.heap.reached)
		if files != nil || !errors.Is(err, first) || !errors.Is(err, second) || strings.Index(err.Error(), "p.d.b") > strings.Index(err.Error(), "p.d.c") {
			t.Errorf("%v, %v", files, err)
		}
		if d.heap.closing != 0 {
			t.Errorf("%d are still being closed", d.heap.closing)
		}
		if files, again := d.checkpoint(false); again == nil || files != nil {
			t.Errorf("another checkpoint: %v, %v", files, again)
		}
		if err := d.w.Close(); err != nil {
			t.Error(err)
		}
		if ended := len(d.heap.published) + len(d.heap.aborted); ended < 8 {
			t.Errorf("%d are left open", 8-ended)
		}
		d.meter.mu.Lock()
		defer d.meter.mu.Unlock()
		if d.meter.series["open_destinations"] != 0 || d.meter.series["pending_files"] != 0 {
			t.Errorf("gauges %v", d.meter.series)
		}
	})
	t.Run("the state of tables does not outlive a checkpoint", func(t *testing.T) {
		d := newDesk(t)
		d.add("t")
		d.commit()
		d.add("t")
		if d.rows.asked["t"] != 2 || len(d.w.targets) != 1 {
			t.Errorf("schemas read %v", d.rows.asked)
		}
	})
	t.Run("a batch stamps what it stages before its end, and nothing at its end", func(t *testing.T) {
		d := newDesk(t, func(c *Config) { c.Streaming = false })
		d.add("t")
		before, err := d.checkpoint(false)
		if err != nil {
			t.Fatal(err)
		}
		d.add("t")
		last, err := d.checkpoint(true)
		if err != nil {
			t.Fatal(err)
		}
		if before[0].Checkpoint != (loadplan.Checkpoint{ID: 1, Set: true}) || last[0].Checkpoint != (loadplan.Checkpoint{}) {
			t.Errorf("stamped %+v and %+v", before[0].Checkpoint, last[0].Checkpoint)
		}
	})
	t.Run("a stream stamps its last files too", func(t *testing.T) {
		d := newDesk(t)
		d.add("t")
		last, err := d.checkpoint(true)
		if err != nil || last[0].Checkpoint != (loadplan.Checkpoint{ID: 1, Set: true}) {
			t.Errorf("stamped %+v, %v", last, err)
		}
	})
}

// TestEmptyBatch: lane 0 of a batch that is to load nothing too promises a file that has no URI.
func TestEmptyBatch(t *testing.T) {
	t.Parallel()
	empty := func(c *Config) {
		c.Options.LoadEmpty, c.Fixed, c.Lane, c.Streaming = true, at("t"), 0, false
	}
	marker := []loadplan.Committable{{Run: testRun, Destination: at("t"), Profile: new(loadplan.Config).Profile()}}
	for name, c := range map[string]struct {
		change func(*Config)
		rows   bool
		final  bool
		want   int
	}{
		"FL-80 no rows":                {final: true, want: 1},
		"not at the end":               {},
		"FL-80 rows":                   {rows: true, final: true, want: 1},
		"FL-80 LEAVE":                  {change: func(c *Config) { c.Options.LoadEmpty = false }, final: true},
		"another lane":                 {change: func(c *Config) { c.Lane = 1 }, final: true},
		"a table that each record has": {change: func(c *Config) { c.Fixed = table.Destination{} }, final: true},
		"a stream":                     {change: func(c *Config) { c.Streaming = true }, final: true},
	} {
		t.Run(name, func(t *testing.T) {
			changes := []func(*Config){empty}
			if c.change != nil {
				changes = append(changes, c.change)
			}
			d := newDesk(t, changes...)
			if c.rows {
				d.add("t")
			}
			files, err := d.checkpoint(c.final)
			if err != nil || len(files) != c.want {
				t.Fatalf("%+v, %v", files, err)
			}
			if c.want == 1 && !c.rows && !cmp.Equal(files, marker) {
				t.Errorf("promised %+v", files)
			}
			if c.rows && files[0].Rows != 1 {
				t.Errorf("promised %+v", files)
			}
		})
	}
}

func TestCloseWriter(t *testing.T) {
	t.Parallel()
	t.Run("FL-28 without Prepare nothing is published or promised", func(t *testing.T) {
		d := newDesk(t)
		d.add(names(3)...)
		if err := errors.Join(d.w.Close(), d.w.Close()); err != nil {
			t.Fatal(err)
		}
		if len(d.heap.published) != 0 || len(d.heap.aborted) != 3 || d.heap.closes != 1 {
			t.Errorf("published %q, aborted %q", d.heap.uris(), d.heap.aborted)
		}
		d.meter.mu.Lock()
		defer d.meter.mu.Unlock()
		if d.meter.series["open_destinations"] != 0 || d.meter.series["pending_files"] != 0 {
			t.Errorf("gauges %v", d.meter.series)
		}
		if err := d.w.Flush(context.Background(), true); err == nil {
			t.Error("a closed writer is flushed")
		}
	})
	t.Run("FL-29 every step is taken, the first error comes first", func(t *testing.T) {
		d := newDesk(t)
		d.heap.abort, d.heap.close, d.taker.closing = errors.New("abort fails"), errors.New("client fails"), errors.New("handler fails")
		d.add("t")
		err := d.w.Close()
		if !errors.Is(err, d.heap.abort) || !errors.Is(err, d.heap.close) || !errors.Is(err, d.taker.closing) ||
			!strings.HasPrefix(err.Error(), "give up gs://staged/x/"+testRun+"/p.d.t/") {
			t.Errorf("got %v", err)
		}
		text := err.Error()
		if a, h, c := strings.Index(text, "abort fails"), strings.Index(text, "handler fails"), strings.Index(text, "client fails"); a > h || h > c {
			t.Errorf("out of order: %v", err)
		}
		if !cmp.Equal(d.taker.events, []string{"close"}) || d.heap.closes != 1 {
			t.Errorf("%q, %d", d.taker.events, d.heap.closes)
		}
	})
}

func TestLongStagingPath(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]bool{600: true, 700: false} {
		cfg := newDesk(t).cfg
		cfg.Options.StagingPath = "gs://staged/" + strings.Repeat("x", length)
		_, err := newWriter(t.Context(), cfg, newHeap(), nil)
		var permanent interface{ Permanent() bool }
		if want != (err == nil) || err != nil && (!errors.As(err, &permanent) || !strings.Contains(err.Error(), "StagingPath is too long")) {
			t.Errorf("a path of %d bytes: %v", length, err)
		}
	}
}

func TestRunIsNeeded(t *testing.T) {
	t.Parallel()
	for _, run := range []string{"", "0123456789ABCDEF0123456789ABCDEF", testRun + "0", strings.Repeat("/", 32), strings.Repeat("*", 32)} {
		_, err := newWriter(t.Context(), Config{Run: run, Failures: &taker{}, Meter: stream.NoMeter, Log: newDesk(t).cfg.Log}, newHeap(), nil)
		if err == nil || !strings.Contains(err.Error(), "WriterContext.Run") {
			t.Errorf("run %q: %v", run, err)
		}
	}
}
