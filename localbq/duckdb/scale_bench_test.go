//go:build cgo

package duckdb_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery"
	"cloud.google.com/go/bigquery/storage/managedwriter"
	"google.golang.org/api/iterator"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/duckdb"
)

const (
	manyRows    = 10_000_000
	rowsRequest = 5_000
)

// BenchmarkMany is ten million different rows of 100 bytes, appended by the official client: what they take in memory, and
// what a statement over all of them takes through jobs.query, from the request to the last row of its result.
func BenchmarkMany(b *testing.B) {
	queries, err := duckdb.New()
	if err != nil {
		b.Fatal(err)
	}
	bq, err := localbq.Start(b.Context(), localbq.Config{Project: "p", Queries: queries, Audit: localbq.AuditOptions{CountsOnly: true}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := bq.Close(); err != nil {
			b.Error(err)
		}
	})
	client, err := bigquery.NewClient(b.Context(), "p", bq.ClientOptions()...)
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	before, _ := memory()
	appendMany(b, client, bq)
	_, process := memory() // the operating system's side of it, garbage of the appends included
	runtime.GC()
	kept, _ := memory()
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(kept-before)/(1<<20), "MiB-kept")
		b.ReportMetric(float64(process)/(1<<20), "MiB-process")
	})

	for _, sql := range []string{
		"SELECT kind, COUNT(*), SUM(score) FROM d.many GROUP BY kind",
		"SELECT id, COUNT(*), SUM(score) FROM d.many GROUP BY id HAVING COUNT(*) > 1",
		"SELECT COUNT(DISTINCT id), MIN(score), MAX(score) FROM d.many WHERE note LIKE '%7%'",
	} {
		b.Run(sql, func(b *testing.B) {
			for b.Loop() {
				countRows(b, client, sql)
			}
			b.ReportMetric(manyRows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// memory is what the process keeps on its heap, and what it has from the operating system, outside of the query engine.
func memory() (heap, process uint64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.Sys - m.HeapReleased
}

func countRows(b *testing.B, client *bigquery.Client, sql string) {
	q := client.Query(sql)
	q.DisableQueryCache = true
	rows, err := q.Read(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for {
		var row []bigquery.Value
		if err := rows.Next(&row); err == iterator.Done {
			return
		} else if err != nil {
			b.Fatal(err)
		}
	}
}

func appendMany(b *testing.B, client *bigquery.Client, bq *localbq.Instance) {
	if err := client.Dataset("d").Create(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	err := client.Dataset("d").Table("many").Create(b.Context(), &bigquery.TableMetadata{Schema: bigquery.Schema{
		{Name: "id", Type: bigquery.IntegerFieldType}, {Name: "kind", Type: bigquery.StringFieldType},
		{Name: "score", Type: bigquery.FloatFieldType}, {Name: "at", Type: bigquery.TimestampFieldType}, {Name: "note", Type: bigquery.StringFieldType},
	}})
	if err != nil {
		b.Fatal(err)
	}
	w, err := managedwriter.NewClient(b.Context(), "p", bq.GRPCClientOptions()...)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	stream, err := w.NewManagedStream(b.Context(), managedwriter.WithDestinationTable("projects/p/datasets/d/tables/many"),
		managedwriter.WithType(managedwriter.DefaultStream), managedwriter.WithSchemaDescriptor(manyDescriptor()))
	if err != nil {
		b.Fatal(err)
	}
	defer stream.Close()
	filler := strings.Repeat("abcdefghij", 5)
	var last *managedwriter.AppendResult
	for at := 0; at < manyRows; at += rowsRequest {
		rows := make([][]byte, rowsRequest)
		for i := range rows {
			rows[i] = manyRow(at+i, filler)
		}
		if last, err = stream.AppendRows(context.WithoutCancel(b.Context()), rows); err != nil {
			b.Fatal(err)
		}
		if _, err := last.FullResponse(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	if n, err := bq.NumRows("d.many"); err != nil || n != manyRows {
		b.Fatalf("%d rows, %v", n, err)
	}
}

func manyDescriptor() *descriptorpb.DescriptorProto {
	d := &descriptorpb.DescriptorProto{Name: proto.String("many")}
	for i, f := range []struct {
		name string
		kind descriptorpb.FieldDescriptorProto_Type
	}{
		{"id", descriptorpb.FieldDescriptorProto_TYPE_INT64}, {"kind", descriptorpb.FieldDescriptorProto_TYPE_STRING},
		{"score", descriptorpb.FieldDescriptorProto_TYPE_DOUBLE}, {"at", descriptorpb.FieldDescriptorProto_TYPE_INT64},
		{"note", descriptorpb.FieldDescriptorProto_TYPE_STRING},
	} {
		d.Field = append(d.Field, &descriptorpb.FieldDescriptorProto{Name: proto.String(f.name), Number: proto.Int32(int32(i + 1)),
			Type: f.kind.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()})
	}
	return d
}

// manyRow is row i, 100 bytes on the wire within one or two.
func manyRow(i int, filler string) []byte {
	r := make([]byte, 0, 112)
	r = protowire.AppendVarint(protowire.AppendTag(r, 1, protowire.VarintType), uint64(i))
	r = protowire.AppendString(protowire.AppendTag(r, 2, protowire.BytesType), fmt.Sprintf("kind %d", i%1000))
	r = protowire.AppendFixed64(protowire.AppendTag(r, 3, protowire.Fixed64Type), uint64(0x3ff0000000000000)+uint64(i))
	r = protowire.AppendVarint(protowire.AppendTag(r, 4, protowire.VarintType), uint64(1_785_027_723_456_789+i))
	return protowire.AppendString(protowire.AppendTag(r, 5, protowire.BytesType), fmt.Sprintf("%09d %s", i, filler))
}
