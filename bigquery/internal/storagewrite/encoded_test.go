package storagewrite

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/internal/outcome"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// pack makes encoded batches of rows for one table.
func pack(t *testing.T, rows *schemas, put func(p *Packer, row func(string))) []stream.EncodedBatch {
	t.Helper()
	var out []stream.EncodedBatch
	emit := func(b stream.EncodedBatch) error { out = append(out, b); return nil }
	e, err := NewEncoder(t.Context(), Config{Rows: rows, Failures: &handler{}, Ledger: &outcome.Ledger{}, Meter: stream.NoMeter})
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Packer(tableT)
	if err != nil {
		t.Fatal(err)
	}
	put(p, func(row string) {
		t.Helper()
		if err := p.Commit(append(p.Begin(), row...), emit); err != nil {
			t.Fatal(err)
		}
	})
	if err := errors.Join(e.Flush(t.Context(), emit), e.Close()); err != nil {
		t.Fatal(err)
	}
	return out
}

// Encoded batches cross processes, so versions of millrace must agree on them for as long as both run.
func TestEncodedBatchesStayWhatTheyAre(t *testing.T) {
	t.Parallel()
	got := pack(t, &schemas{fingerprint: 7}, func(_ *Packer, row func(string)) { row("aa"); row(""); row("bbb") })
	want := "5201" + "08" + "0a06" + "0a04" + hex.EncodeToString([]byte("Row7")) + // kind, version, schema
		"03" + "0a02" + hex.EncodeToString([]byte("aa")) + "0a00" + "0a03" + hex.EncodeToString([]byte("bbb"))
	if len(got) != 1 || got[0].Destination != "p.d.t" || got[0].Shard != "" || hex.EncodeToString(got[0].Data) != want {
		t.Errorf("got %x, want %s", got, want)
	}
}

func TestEncodedBatchesGrowTo512KiB(t *testing.T) {
	t.Parallel()
	got := pack(t, &schemas{}, func(_ *Packer, row func(string)) {
		for range 30 {
			row(strings.Repeat("x", 50_000))
		}
	})
	rows := 0
	for _, b := range got {
		_, n, framed, err := unpack(b.Data)
		if err != nil || len(framed) > encodedBytes+50_010 {
			t.Errorf("%d bytes, %v", len(framed), err)
		}
		rows += n
	}
	if rows != 30 || len(got) != 3 {
		t.Errorf("%d rows in %d batches", rows, len(got))
	}
}

func TestBatchesAsLargeAsARequestAreNotCopied(t *testing.T) {
	t.Parallel()
	batches := pack(t, &schemas{}, func(_ *Packer, row func(string)) {
		for range 1100 {
			row(strings.Repeat("x", 500))
		}
	})
	b := newBench(t, &far{}, nil)
	b.w.cfg.Options.MaxAppendBytes = 512 << 10
	for i, eb := range batches {
		if err := b.w.WriteEncoded(t.Context(), eb); err != nil {
			t.Fatal(err)
		}
		sent := b.w.flight.entries
		if i == 0 && (len(sent) != 1 || &sent[0].batch.rows.data[0] != &eb.Data[len(eb.Data)-sent[0].batch.size()]) {
			t.Errorf("%d appends, of other memory", len(sent))
		}
		if i == 1 && len(sent) != 1 {
			t.Errorf("the rest, of %d bytes, did not wait for more", len(eb.Data))
		}
	}
	b.flush()
	if tally := b.w.Tally(); tally.Written != 1100 || tally.Bytes != 550_000 || len(batches) != 2 {
		t.Errorf("%d batches, %+v", len(batches), tally)
	}
}

func TestSchemaChangeDividesEncodedBatches(t *testing.T) {
	t.Parallel()
	rows := &schemas{fingerprint: 1}
	batches := pack(t, rows, func(_ *Packer, row func(string)) {
		row("aa")
		rows.fingerprint = 2
		row("bb")
		row("cc")
	})
	b := newBench(t, &far{}, nil)
	b.rows.fingerprint = 3
	for _, eb := range batches {
		if err := b.w.WriteEncoded(t.Context(), eb); err != nil {
			t.Fatal(err)
		}
	}
	b.write("dd") // under this process's own schema
	b.flush()
	b.sent("t: aa", "t: bb cc", "t: dd")
	b.sees("B=8 S=4")
}

func TestRowsThatNoRequestHolds(t *testing.T) {
	t.Parallel()
	pack(t, &schemas{}, func(p *Packer, row func(string)) {
		long := make([]byte, MaxRowBytes+1)
		if err := p.Commit(append(p.Begin(), long...), nil); !errors.Is(err, ErrRowTooLong) {
			t.Errorf("got %v", err)
		}
		row(string(long[1:]))
	})
}

func TestDamagedEncodedBatches(t *testing.T) {
	t.Parallel()
	good := pack(t, &schemas{}, func(_ *Packer, row func(string)) { row("aa"); row("bb") })[0]
	for i := range len(good.Data) {
		if _, _, _, err := unpack(good.Data[:i]); err == nil {
			t.Errorf("cut to %d of %d bytes and taken", i, len(good.Data))
		}
	}
	newer := bytes.Clone(good.Data)
	newer[1] = 2
	if _, _, _, err := unpack(newer); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("got %v", err)
	}
	b := newBench(t, &far{}, nil)
	if err := b.w.WriteEncoded(t.Context(), stream.EncodedBatch{Destination: "p.d.t", Data: good.Data[:5]}); !errors.Is(err, errEncoded) {
		t.Errorf("got %v", err)
	}
	if err := b.w.WriteEncoded(t.Context(), stream.EncodedBatch{Destination: "p.d/t", Data: good.Data}); !errors.Is(err, table.ErrDestination) {
		t.Errorf("got %v", err)
	}
	b.flush()
	b.sent()
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("R\x01\x02\x0a\x00\x01\x0a\x02aa"))
	f.Add([]byte("R\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, n, framed, err := unpack(data)
		if err != nil {
			return
		}
		b := &batch{rows: &rowBuffer{data: framed}, count: n}
		seen := 0
		if err := b.each(func(int, []byte) error { seen++; return nil }); err != nil || seen != n || len(s.encoded) > len(data) {
			t.Fatalf("%d rows of %d, %v", seen, n, err)
		}
	})
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	var o origins
	want := []string{}
	for i := range 10 {
		split := "a"
		if i/3%2 == 1 {
			split = "b"
		}
		o.add(&stream.Position{Split: split, Row: int64(100 * i)})
		text := ""
		if i != 4 {
			text = fmt.Sprint("record ", i)
		}
		o.keep([]byte(text))
		want = append(want, fmt.Sprintf("%s@%d %s", split, 100*i, text))
	}
	var got []string
	for i := range 10 {
		got = append(got, fmt.Sprintf("%s %s", o.at(i), o.original(i)))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if o.original(4) != nil {
		t.Error("a record without an original has one")
	}
	o.reset()
	o.add(&stream.Position{Split: "c", Row: 1})
	if got := o.at(0).String(); got != "c@1" || o.original(0) != nil {
		t.Errorf("after a reset: %s %q", got, o.original(0))
	}
}
