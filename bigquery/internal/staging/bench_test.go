package staging_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// benchRows are rows of twelve columns, as an event has them, with a note of so many words.
func benchRows(b *testing.B, words int) (*staging.Plan, [][]byte) {
	s := &table.Schema{Fields: []table.Field{
		{Name: "id", Type: table.Int64, Mode: table.Required}, {Name: "at", Type: table.Timestamp}, {Name: "name", Type: table.String},
		{Name: "path", Type: table.String}, {Name: "status", Type: table.Int64}, {Name: "took", Type: table.Float64}, {Name: "ok", Type: table.Bool},
		{Name: "day", Type: table.Date}, {Name: "price", Type: table.Numeric}, {Name: "tags", Type: table.String, Mode: table.Repeated},
		{Name: "user", Type: table.Struct, Fields: []table.Field{{Name: "id", Type: table.Int64}, {Name: "mail", Type: table.String}}},
		{Name: "note", Type: table.String},
	}}
	rows := make([][]byte, 1000)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		note := rowtest.Null
		if words > 0 {
			note = rowtest.Text(text(rnd, words))
		}
		rows[i] = rowtest.Encode(s.Fields, []row.Value{
			{Int: int64(i) * 7919}, {Int: 1785027723456789 + int64(i)*104729}, rowtest.Text(fmt.Sprintf("visitor %d", i*31)), rowtest.Text(fmt.Sprintf("/articles/%d/comments?page=%d", i%97, i%13)),
			{Int: int64(200 + i%4*100)}, rowtest.Float(float64(i) / 7), {Int: int64(i % 2)}, {Int: 20660 + int64(i%30)}, rowtest.Decimal(table.Numeric, fmt.Sprintf("%d.%02d", i, i%100)),
			rowtest.List(rowtest.Text("a"), rowtest.Text(fmt.Sprintf("tag-%d", i%11))), rowtest.List(row.Value{Int: int64(i)}, rowtest.Text(fmt.Sprintf("u%d@example.com", i*17))), note,
		})
	}
	return mustPlan(b, s), rows
}

// text is some words of a language of 500.
func text(rnd *rand.Rand, words int) string {
	var b strings.Builder
	for range words {
		fmt.Fprintf(&b, "w%x ", rnd.IntN(500)*rnd.IntN(500))
	}
	return b.String()
}

// BenchmarkText writes rows without lists to files of JSON and CSV that go nowhere. MB/s are of rows.
func BenchmarkText(b *testing.B) {
	for _, words := range []int{0, 140} {
		plan, rows := benchRows(b, words)
		flat := &table.Schema{}
		for _, f := range plan.Schema.Fields {
			if f.Mode != table.Repeated && f.Type != table.Struct {
				flat.Fields = append(flat.Fields, f)
			}
		}
		b.Run(fmt.Sprintf("JSON/%d words", words), func(b *testing.B) { benchFile(b, staging.JSONFiles, plan, rows) })
		flatRows := make([][]byte, 0, len(rows))
		for _, r := range rows {
			values, err := rowtest.Decode(plan.Descriptor, plan.Schema, r)
			if err != nil {
				b.Fatal(err)
			}
			flatRows = append(flatRows, rowtest.Encode(flat.Fields, slices.Concat(values[:9], values[11:])))
		}
		b.Run(fmt.Sprintf("CSV/%d words", words), func(b *testing.B) { benchFile(b, staging.CSVFiles, mustPlan(b, flat), flatRows) })
	}
}

func benchFile(b *testing.B, e staging.Encoding, plan *staging.Plan, rows [][]byte) {
	f, err := e.NewFile(io.Discard, plan)
	if err != nil {
		b.Fatal(err)
	}
	bytes := 0
	for _, r := range rows {
		bytes += len(r)
	}
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		for _, r := range rows {
			if err := f.Write(r); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*len(rows))/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(f.Size())/float64(b.N*bytes), "size")
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAvro writes rows to a file that goes nowhere. The compressor alone has the same blocks, ready made. MB/s are of
// datums, before they are packed.
func BenchmarkAvro(b *testing.B) {
	b.Run("small rows", func(b *testing.B) { benchAvro(b, 0) })
	b.Run("rows of 1 kB", func(b *testing.B) { benchAvro(b, 140) })
}

func benchAvro(b *testing.B, words int) {
	plan, rows := benchRows(b, words)
	e := staging.NewAvroEncoder(plan)
	var datums []byte
	for _, r := range rows {
		var err error
		if datums, err = e.Append(datums, r); err != nil {
			b.Fatal(err)
		}
	}
	report := func(b *testing.B) {
		b.ReportMetric(float64(b.N*len(rows))/b.Elapsed().Seconds(), "rows/s")
	}
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(datums)))
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf = buf[:0]
			for _, r := range rows {
				buf, _ = e.Append(buf, r)
			}
		}
		report(b)
	})
	b.Run("compressor alone", func(b *testing.B) {
		z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(datums)))
		var out []byte
		for b.Loop() {
			for rest := datums; len(rest) > 0; {
				n := min(64_000, len(rest))
				out = z.EncodeAll(rest[:n], out[:0])
				rest = rest[n:]
			}
		}
		report(b)
	})
	b.Run("file", func(b *testing.B) {
		f, err := staging.NewAvroFile(io.Discard, plan)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(datums)))
		b.ReportAllocs()
		for b.Loop() {
			for _, r := range rows {
				if err := f.Write(r); err != nil {
					b.Fatal(err)
				}
			}
		}
		report(b)
	})
}
