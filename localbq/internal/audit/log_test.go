package audit

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/clock"
)

func open(t *testing.T, o Options) *Log {
	t.Helper()
	o.Clock = clock.NewManual(clock.Start)
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.file.Close() })
	return l
}

// visible writes the record of an append of rows with these digests.
func visible(l *Log, first int64, digests ...uint64) *Event {
	e := l.Begin(Record{RPC: "AppendRows", Table: "t", Digests: digests, Rows: int64(len(digests))})
	e.Update(func(r *Record) {
		r.Effect, r.Instance, r.First, r.Count, r.After, r.Code = Visible, 1, first, int64(len(digests)), 100+first, "OK"
	})
	return e
}

func all(t *testing.T, l *Log) (out []*Record) {
	t.Helper()
	for r, err := range l.Records() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func TestRecordJSON(t *testing.T) {
	in := Record{
		Seq: 3, RPC: "AppendRows", Request: 0xabc, Digests: Digests{1, 1 << 63}, Offset: new(int64(0)), Effect: Visible, Fate: Sent,
		Rules: []string{"r"}, Time: clock.Start, Wall: clock.Start,
	}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out Record
	if err := json.Unmarshal(b, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%s became %+v, %v", b, out, err)
	}
	if !strings.Contains(string(b), `"request":"0000000000000abc"`) {
		t.Errorf("got %s", b)
	}
}

func TestMemory(t *testing.T) {
	for _, path := range []string{"", filepath.Join(t.TempDir(), "audit.jsonl")} {
		l := open(t, Options{MaxBytes: 3000, Path: path})
		held := visible(l, 0, 1)
		for i := range int64(20) {
			visible(l, 1+i, 2).Done(Sent)
		}
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
		records := all(t, l)
		if l.bytes > 3000 || records[0].Seq != 1 || records[0].Fate != Pending || int64(len(records))+l.Dropped() != 21 {
			t.Errorf("%d bytes, %d records, %d dropped: want at most 3000, the first, which is open, and all that were not dropped", l.bytes, len(records), l.Dropped())
		}
		held.Done(Sent)
		records = all(t, l)
		if int64(len(records))+l.Dropped() != 21 || records[len(records)-1].Seq != 21 || records[0].Seq != l.Dropped()+1 || records[0].Fate != Sent || (l.Dropped() == 0) != (path != "") {
			t.Errorf("%d records from %d to %d and %d dropped", len(records), records[0].Seq, records[len(records)-1].Seq, l.Dropped())
		}
	}
}

func TestCountsOnly(t *testing.T) {
	l := open(t, Options{CountsOnly: true})
	visible(l, 0, 1, 2).Done(Sent)
	if r := all(t, l)[0]; r.Digests != nil || r.Rows != 2 || l.Digests() {
		t.Errorf("got %+v", r)
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, Options{Path: path, MaxBytes: 1000})
	for i := range int64(10) {
		visible(l, i, uint64(i)).Done(Sent)
	}
	t.Run("what memory has dropped is read back", func(t *testing.T) {
		records := all(t, l)
		if len(records) != 10 || l.Dropped() != 0 || len(l.records) >= 10 {
			t.Fatalf("%d records, %d of them in memory, %d dropped", len(records), len(l.records), l.Dropped())
		}
		for i, r := range records {
			if r.Seq != int64(i+1) || r.First != int64(i) || r.Digests[0] != uint64(i) {
				t.Errorf("record %d: %+v", i, r)
			}
		}
	})
	pending := visible(l, 10, 10)
	note := pending.Note()
	unwritten := visible(l, 11, 11)
	unwrittenNote := unwritten.Note()

	t.Run("after a kill the file goes on, and notes make up for what is not in it", func(t *testing.T) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(`{"seq":99,"rpc":"torn`); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		again := open(t, Options{Path: path})
		for _, r := range []struct {
			note  []byte
			first int64
		}{{nil, 9}, {note, 10}, {unwrittenNote, 11}, {nil, 12}} { // the record of row 9 is in the file
			err := again.Recovered(r.note, Record{Table: "t", Effect: Visible, Instance: 1, First: r.first, Count: 1, Before: 5, After: 100 + r.first})
			if err != nil {
				t.Fatal(err)
			}
		}
		records := all(t, again)
		if len(records) != 13 {
			t.Fatalf("%d records, want 13", len(records))
		}
		for i, r := range records {
			if r.First != int64(i) || r.Seq != int64(i+1) {
				t.Errorf("record %d: %+v", i, r)
			}
		}
		if r := records[10]; r.Fate != Lost || r.Note != "recovered" || r.Digests[0] != 10 || r.RPC != "AppendRows" || r.Acked() {
			t.Errorf("recovered with a note: %+v", r)
		}
		if r := records[12]; r.RPC != "write" || r.Table != "t" {
			t.Errorf("recovered without a note: %+v", r)
		}
	})
}

func TestFlush(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, Options{Path: path})
	e := visible(l, 0, 1)
	if err := l.Flush(); err != nil { // the store is about to forget the note
		t.Fatal(err)
	}
	killed := open(t, Options{Path: path})
	if r := all(t, killed); len(r) != 1 || r[0].Fate != Lost {
		t.Errorf("after a kill: %+v", r)
	}
	e.Done(Sent)
	later := open(t, Options{Path: path})
	if r := all(t, later); len(r) != 1 || r[0].Fate != Sent {
		t.Errorf("when it is complete: %+v", r)
	}
}

func TestWriteTo(t *testing.T) {
	l := open(t, Options{})
	visible(l, 0, 1).Done(Sent)
	visible(l, 1, 2).Done(Cut)
	var out bytes.Buffer
	n, err := l.WriteTo(&out)
	if err != nil || n != int64(out.Len()) || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%d bytes, %v:\n%s", n, err, out.String())
	}
}

func TestChecks(t *testing.T) {
	l := open(t, Options{})
	visible(l, 0, 1, 2).Done(Sent)     // rows 0, 1
	visible(l, 2, 3, 1).Done(Withheld) // rows 2, 3: row 3 has the bytes of row 0
	visible(l, 4, 9, 9).Done(Sent)     // rows 4, 5: equal, in one append
	other := visible(l, 0, 1)          // of another instance of the table
	other.Update(func(r *Record) { r.Instance = 2 })
	other.Done(Sent)
	table := func(live ...Range) Table { return Table{Path: "t", Instance: 1, Live: live} }
	whole := table(Range{0, 6})

	rows, err := l.Visible(whole)
	if err != nil || len(rows) != 6 || rows[3] != (Row{ID: 3, Digest: 1, Seq: 2, Index: 1}) {
		t.Errorf("visible: %+v, %v", rows, err)
	}
	twice, err := l.AppliedTwice(whole)
	if err != nil || len(twice) != 1 || len(twice[0]) != 2 || twice[0][0].ID != 0 || twice[0][1].ID != 3 {
		t.Errorf("applied twice: %+v, %v", twice, err)
	}
	never, err := l.VisibleNeverAcked(whole)
	if err != nil || len(never) != 2 || never[0].ID != 2 || never[1].ID != 3 {
		t.Errorf("visible and never acknowledged: %+v, %v", never, err)
	}
	for _, c := range []struct {
		live []Range
		lost []int64
	}{{[]Range{{0, 6}}, nil}, {[]Range{{0, 1}, {2, 3}}, []int64{1, 5}}, {nil, []int64{0, 1, 4, 5}}} {
		lost, err := l.AckedNotVisible(table(c.live...))
		var ids []int64
		for _, r := range lost {
			ids = append(ids, r.ID)
		}
		if err != nil || !reflect.DeepEqual(ids, c.lost) {
			t.Errorf("acknowledged and not visible in %v: %v, %v, want %v", c.live, ids, err, c.lost)
		}
	}
	for _, c := range []struct{ live, want []Range }{
		{[]Range{{0, 6}}, nil}, {[]Range{{0, 8}}, []Range{{6, 2}}}, {[]Range{{10, 2}}, []Range{{10, 2}}}, {nil, nil}, {[]Range{{1, 2}, {5, 3}}, []Range{{6, 2}}},
	} {
		if got, err := l.Unaccounted(table(c.live...)); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("unaccounted of %v: %v, %v, want %v", c.live, got, err, c.want)
		}
	}

	removed := l.Begin(Record{RPC: "write", Table: "t", Instance: 1, Effect: Removed, First: 0, Count: 4})
	removed.Done(Sent)
	if rows, err := l.Visible(whole); err != nil || len(rows) != 2 || rows[0].ID != 4 {
		t.Errorf("after a removal: %+v, %v", rows, err)
	}
	if lost, err := l.AckedNotVisible(table(Range{4, 2})); err != nil || len(lost) != 0 {
		t.Errorf("rows that were removed are lost: %+v, %v", lost, err)
	}
}

func TestUnaccountedGaps(t *testing.T) {
	l := open(t, Options{})
	visible(l, 3, 1, 2).Done(Sent) // rows 3, 4
	visible(l, 7, 3).Done(Sent)    // row 7
	got, err := l.Unaccounted(Table{Path: "t", Instance: 1, Live: []Range{{0, 10}}})
	if want := []Range{{0, 3}, {5, 2}, {8, 2}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}
