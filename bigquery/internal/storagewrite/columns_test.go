package storagewrite

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// texts is an Arrow batch of the tests: rows are texts, a part of it is the texts with bars between them. A text with a "!" makes no
// row.
type texts struct {
	rows   []string
	schema string
	holds  int
}

func batchOf(rows ...string) *texts { return &texts{rows: rows, schema: "s"} }

func (x *texts) Schema() []byte { return []byte(x.schema) }

func (x *texts) Append(buf []byte, from, to int) ([]byte, error) {
	for _, r := range x.rows[from:to] {
		if r == "broken" {
			return buf, errBroken
		}
	}
	return append(buf, strings.Join(x.rows[from:to], "|")...), nil
}

var (
	errBroken = errors.New("broken batch")
	errNoRow  = errors.New("makes no row")
)

func (x *texts) AppendRow(buf []byte, i int) ([]byte, error) {
	if strings.Contains(x.rows[i], "!") {
		return append(buf, "part of it"...), errNoRow
	}
	return append(buf, x.rows[i]...), nil
}

func (x *texts) Retain()  { x.holds++ }
func (x *texts) Release() { x.holds-- }

type unpacker struct{}

func (unpacker) Unpack(_ table.Destination, schema, batch []byte, each func(row []byte, err error) error) error {
	if string(schema) != "s" {
		return errBroken
	}
	for r := range strings.SplitSeq(string(batch), "|") {
		row, err := []byte(r), error(nil)
		if strings.Contains(r, "!") {
			row, err = nil, errNoRow
		}
		if err := each(row, err); err != nil {
			return err
		}
	}
	return nil
}

// newColumnBench is a bench whose target is known to have rows of two bytes, so that runs of more than two fill a request.
func newColumnBench(t *testing.T, f *far, change func(*Config)) *bench {
	t.Helper()
	b := newBench(t, f, func(c *Config) {
		c.Columns, c.KeepOriginals = unpacker{}, true
		c.Options.MaxAppendBytes = 48
		if change != nil {
			change(c)
		}
	})
	for _, name := range []string{"t", "u"} {
		target, err := b.w.Target(tableOf(name))
		if err != nil {
			t.Fatal(err)
		}
		target.rowBytes = 2
	}
	return b
}

func (b *bench) extend(name string, x *texts, rows ...int) error {
	for _, i := range rows {
		if err := b.w.Enter(b.Context()); err != nil {
			return err
		}
		t, err := b.w.Target(tableOf(name))
		if err != nil {
			return err
		}
		if err := b.w.Extend(b.Context(), t, x, i, &stream.Position{Split: "f", Row: int64(i)}, []byte("<"+x.rows[i]+">")); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) extendAll(name string, x *texts) {
	b.Helper()
	for i := range x.rows {
		if err := b.extend(name, x, i); err != nil {
			b.Fatal(err)
		}
	}
}

// settled checks that nothing is held on to.
func (b *bench) settled(all ...*texts) {
	b.Helper()
	for i, x := range all {
		if x.holds != 0 {
			b.Errorf("batch %d is held on to %d times", i, x.holds)
		}
	}
	if n := b.w.pending; n != 0 {
		b.Errorf("%d bytes count as pending", n)
	}
	if n := b.w.load.Load(); n != 0 {
		b.Errorf("%d bytes count as unanswered", n)
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	t.Run("a run is one append", func(t *testing.T) {
		b := newColumnBench(t, &far{}, nil)
		x := batchOf("aa", "bb", "cc", "dd")
		b.extendAll("t", x)
		b.flush()
		b.sent("t: [aa|bb|cc|dd]")
		b.sees("B=11 S=4")
		if got := b.w.Tally(); got.Written != 4 {
			t.Errorf("tally %+v", got)
		}
		b.settled(x)
	})
	t.Run("a batch, a gap and a table end a run", func(t *testing.T) {
		b := newColumnBench(t, &far{}, nil)
		x, y := batchOf("aa", "bb", "cc", "dd", "ee", "ff", "gg"), batchOf("hh", "ii", "jj")
		if err := errors.Join(b.extend("t", x, 0, 1, 2, 4, 5, 6), b.extend("u", y, 0), b.extend("t", y, 0, 1, 2), b.extend("u", y, 1, 2)); err != nil {
			t.Fatal(err)
		}
		b.flush()
		b.sent("t: [aa|bb|cc]", "t: [ee|ff|gg]", "t: [hh|ii|jj]", "u: [hh|ii|jj]")
		b.settled(x, y)
	})
	t.Run("a long run is several appends", func(t *testing.T) {
		b := newColumnBench(t, &far{}, small(24))
		x := batchOf(strings.Split(strings.Repeat("aa ", 20), " ")[:20]...)
		b.extendAll("t", x)
		b.flush()
		// Rows of 2 bytes, then of 3, which is what 12 of them have shown.
		b.sent("t: ["+strings.TrimSuffix(strings.Repeat("aa|", 12), "|")+"]", "t: ["+strings.TrimSuffix(strings.Repeat("aa|", 8), "|")+"]")
		b.settled(x)
	})
	t.Run("a short run is rows, which share an append", func(t *testing.T) {
		b := newColumnBench(t, &far{}, nil)
		x := batchOf("aa", "bb", "!c", "dd", "ee", "ff")
		if err := errors.Join(b.extend("t", x, 0, 1), b.extend("t", x, 5), b.extend("t", x, 2, 3)); err != nil {
			t.Fatal(err)
		}
		b.write("gg")
		b.flush()
		b.sent("t: aa bb ff gg dd")
		if f := b.handler.records; len(f) != 1 || !errors.Is(f[0].Err, errNoRow) || string(f[0].Original) != "<!c>" || f[0].At.Row != 2 || f[0].Destination != "p.d.t" {
			t.Errorf("%+v", f)
		}
		b.settled(x)
	})
	t.Run("the first rows of a table are rows", func(t *testing.T) {
		b := newColumnBench(t, &far{}, func(c *Config) { c.Options.MaxAppendBytes = 512 << 10 })
		x := batchOf(strings.Split(strings.Repeat("aa ", 200), " ")[:200]...)
		b.w.targets[tableT].rowBytes = 0
		b.extendAll("t", x)
		b.flush()
		b.sent("t:" + strings.Repeat(" aa", 200))
		if n := b.w.targets[tableT].rowBytes; n != 2 {
			t.Errorf("rows are taken to have %d bytes", n)
		}
		b.settled(x)
	})
	t.Run("refused rows leave, and the others go as rows", func(t *testing.T) {
		f := &far{appends: map[string][]string{"t": {"rows 1 3", "ok"}}}
		b := newColumnBench(t, f, nil)
		x := batchOf("aa", "bb", "cc", "!d", "ee")
		b.extendAll("t", x)
		b.flush()
		b.sent("t: [aa|bb|cc|!d|ee]", "t: aa cc ee")
		var got []string
		for _, r := range b.handler.records {
			got = append(got, string(r.Row)+" "+string(r.Original)+" "+r.At.String())
			if !strings.HasPrefix(r.Reason, "row refused by the service") {
				t.Error(r.Reason)
			}
		}
		if d := cmp.Diff([]string{"bb <bb> f@1", " <!d> f@3"}, got); d != "" {
			t.Error(d)
		}
		if f.schemas[1].arrow || !f.schemas[0].arrow {
			t.Error("what is left has another schema than its rows")
		}
		if got := b.w.Tally(); got.Written != 3 || got.DeadLettered != 2 {
			t.Errorf("tally %+v", got)
		}
		b.settled(x)
	})
	t.Run("a row that was not refused and cannot be made leaves, too", func(t *testing.T) {
		f := &far{appends: map[string][]string{"t": {"rows 0", "rows 0", "ok"}}}
		b := newColumnBench(t, f, nil)
		x := batchOf("aa", "!b", "cc", "dd")
		b.extendAll("t", x)
		b.flush()
		b.sent("t: [aa|!b|cc|dd]", "t: cc dd", "t: dd")
		if got := b.w.Tally(); got.Written != 1 || got.DeadLettered != 3 {
			t.Errorf("tally %+v", got)
		}
		b.settled(x)
	})
	t.Run("rows that are all refused leave nothing", func(t *testing.T) {
		f := &far{appends: map[string][]string{"t": {"rows 0 1 2"}}}
		b := newColumnBench(t, f, nil)
		x := batchOf("aa", "bb", "cc")
		b.extendAll("t", x)
		b.flush()
		b.sent("t: [aa|bb|cc]")
		b.settled(x)
	})
	t.Run("what fails in passing is sent again as it was", func(t *testing.T) {
		f := &far{appends: map[string][]string{"t": {"UNAVAILABLE", "ok"}}}
		b := newColumnBench(t, f, nil)
		x := batchOf("aa", "bb", "cc")
		b.extendAll("t", x)
		b.flush()
		b.sent("t: [aa|bb|cc]", "t: [aa|bb|cc]")
		b.settled(x)
	})
	t.Run("a table that is not there is created", func(t *testing.T) {
		f := &far{appends: map[string][]string{"t": {"NOT_FOUND", "ok"}}}
		b := newColumnBench(t, f, nil)
		x := batchOf("aa", "bb", "cc")
		b.extendAll("t", x)
		b.flush()
		b.sent("t: [aa|bb|cc]", "t: [aa|bb|cc]")
		if len(f.created) != 1 {
			t.Errorf("created %v", f.created)
		}
		b.settled(x)
	})
	t.Run("a batch that cannot be written down ends the writer", func(t *testing.T) {
		b := newColumnBench(t, &far{}, nil)
		x := batchOf("aa", "broken", "cc")
		b.extendAll("t", x)
		if err := b.w.Flush(t.Context(), true); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "p.d.t") {
			t.Errorf("%v", err)
		}
		if err := b.w.Enter(t.Context()); !errors.Is(err, errBroken) {
			t.Errorf("%v after that", err)
		}
		b.settled(x)
	})
	t.Run("memory is bounded", func(t *testing.T) {
		b := newColumnBench(t, &far{}, func(c *Config) { c.Options.MaxBufferedBytes = 30; c.Options.MaxAppendBytes = 1000 })
		x := batchOf(strings.Split(strings.Repeat("aa ", 40), " ")[:40]...)
		b.extendAll("t", x)
		if n := len(b.far.wire); n < 2 {
			t.Errorf("%d appends before the flush", n)
		}
		b.flush()
		b.settled(x)
	})
	t.Run("closing lets go of batches", func(t *testing.T) {
		b := newColumnBench(t, &far{}, nil)
		x := batchOf("aa", "bb", "cc")
		b.extendAll("t", x)
		if x.holds != 1 {
			t.Errorf("held %d times", x.holds)
		}
		if err := b.w.Close(); err != nil {
			t.Fatal(err)
		}
		if x.holds != 0 {
			t.Errorf("held %d times", x.holds)
		}
	})
}
