package sqlrow_test

import (
	"testing"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/rowtest"
	"github.com/millrace-dev/millrace/bigquery/row/sqlrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// benched is a row of eight columns.
func benched(b *testing.B) ([]sqlrow.Column, sqlrow.Record, *sqlrow.Serializer[sqlrow.Record]) {
	columns := []sqlrow.Column{col("id", kind(sqlrow.BigInt)), col("name", kind(sqlrow.Varchar)), col("score", kind(sqlrow.Double)),
		col("at", precise(sqlrow.TimestampLTZ, 6)), col("day", kind(sqlrow.Date)), col("total", decimal(10, 2)), col("open", kind(sqlrow.Boolean)), col("note", kind(sqlrow.Varchar))}
	r := sqlrow.Record{Values: []row.Value{{Int: 123456789}, text("a name of some length"), rowtest.Float(0.25), {Int: 1_785_027_723_456_789}, {Int: 20_660}, unscaled(12_345, 2), {Int: 1}, text("and a note")}}
	s, err := sqlrow.New(columns, itself, sqlrow.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return columns, r, s
}

func BenchmarkAppendRow(b *testing.B) {
	_, r, s := benched(b)
	var buf []byte
	var err error
	b.ReportAllocs()
	for b.Loop() {
		if buf, err = s.AppendRow(buf[:0], table.Destination{}, r); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(buf)))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkRead(b *testing.B) {
	columns, r, s := benched(b)
	schema, _ := s.Schema(table.Destination{})
	encoded, err := s.AppendRow(nil, table.Destination{}, r)
	if err != nil {
		b.Fatal(err)
	}
	d, err := row.NewDecoder(schema)
	if err != nil {
		b.Fatal(err)
	}
	in, err := d.Decode(encoded)
	if err != nil {
		b.Fatal(err)
	}
	reader, err := sqlrow.NewReader(columns, schema)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reader.Read(in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
