package staging_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-dev/millrace/bigquery/internal/staging"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func TestChoice(t *testing.T) {
	dst := table.Destination{Project: "p", Dataset: "d", Table: "t"}
	nested := func(typ table.Type) *table.Schema {
		return schemaOf(table.Field{Name: "id", Type: table.Int64}, table.Field{Name: "s", Type: table.Struct, Mode: table.Repeated,
			Fields: []table.Field{{Name: "v", Type: typ}}})
	}
	for _, typ := range []table.Type{table.JSON, table.DateTime} {
		t.Run("SER-155 "+typ.String()+" with Parquet selected: Avro, said once for each destination", func(t *testing.T) {
			var log bytes.Buffer
			c, to := staging.NewChoice(staging.Parquet), slog.New(slog.NewTextHandler(&log, nil))
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() { // ends after its calls
					for range 10 {
						if f := c.Of(dst, nested(typ), to); f != staging.Avro {
							t.Errorf("staged as %v", f)
						}
					}
				})
			}
			wg.Wait()
			text := log.String()
			if strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=INFO") || !strings.Contains(text, "destination=p.d.t") || !strings.Contains(text, "column=s.v") {
				t.Errorf("the log has\n%s", text)
			}
			other := dst
			other.Table = "other"
			c.Of(other, nested(typ), to)
			if text := log.String(); strings.Count(text, "\n") != 2 {
				t.Errorf("after a second destination the log has\n%s", text)
			}
		})
	}
	if f := staging.NewChoice(staging.Parquet).Of(dst, nested(table.Timestamp), slog.New(slog.DiscardHandler)); f != staging.Parquet {
		t.Errorf("a table without them is staged as %v", f)
	}
	if f := staging.NewChoice(staging.Avro).Of(dst, nested(table.JSON), slog.New(slog.DiscardHandler)); f != staging.Avro {
		t.Errorf("a table is staged as %v, want AVRO", f)
	}
}

func TestLoad(t *testing.T) {
	s := schemaOf(table.Field{Name: "id", Type: table.Int64})
	if diff := cmp.Diff(staging.Load{SourceFormat: "AVRO", Schema: s, UseAvroLogicalTypes: true}, staging.LoadOf(staging.Avro, s)); diff != "" {
		t.Error(diff)
	}
	t.Run("SER-156 Parquet is loaded with enableListInference", func(t *testing.T) {
		if diff := cmp.Diff(staging.Load{SourceFormat: "PARQUET", Schema: s, EnableListInference: true}, staging.LoadOf(staging.Parquet, s)); diff != "" {
			t.Error(diff)
		}
	})
	for e, want := range map[staging.Encoding]string{staging.AvroFiles: "AVRO .avro", staging.JSONFiles: "JSONL .jsonl.gz", staging.CSVFiles: "CSV .csv.gz"} {
		if got := e.Format().String() + " " + e.Extension(); got != want {
			t.Errorf("files of %s, want %s", got, want)
		}
	}
}
