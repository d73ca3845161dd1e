package rest

import (
	"compress/gzip"
	"context"
	"io"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery"
)

// object is what an object holds.
func (x *transfers) object(name string) string {
	x.Helper()
	r, err := x.objects.Open(context.Background(), "b-1", name, 0)
	if err != nil {
		x.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if err != nil {
		x.Fatal(err)
	}
	return string(b)
}

func extracting(table, uri string, more ...string) string {
	return `"extract":{` + strings.Join(append([]string{`"sourceTable":{"projectId":"p","datasetId":"d","tableId":"` + table + `"}`, `"destinationUris":["` + uri + `"]`}, more...), ",") + `}`
}

func TestExtract(t *testing.T) {
	x := setupTransfers(t)
	x.table("flat", "n:INTEGER", "s:STRING", "at:TIMESTAMP", "b:BYTES", "f:FLOAT", "x:NUMERIC")
	x.puts("flat", `{"n":1,"s":"a,\"b\"\nc","at":"2020-01-02 03:04:05.5","b":"AQI=","f":1.5,"x":"-1.25"}`, `{"s":""}`)
	x.done("load", loading("flat", ndjson, "gs://b-1/flat"))

	job := x.done("csv", extracting("flat", "gs://b-1/out/*.csv"))
	if got, want := x.object("out/000000000000.csv"), "n,s,at,b,f,x\n1,\"a,\"\"b\"\"\nc\",2020-01-02 03:04:05.500000 UTC,AQI=,1.5,-1.25\n,\"\",,,,\n"; got != want {
		t.Errorf("CSV is %q, want %q", got, want)
	}
	if counts := job["statistics"].(map[string]any)["extract"].(map[string]any)["destinationUriFileCounts"]; quoted(counts) != `["1"]` {
		t.Errorf("destinationUriFileCounts is %v", counts)
	}
	x.done("json", extracting("flat", "gs://b-1/out.json.gz", `"destinationFormat":"NEWLINE_DELIMITED_JSON"`, `"compression":"GZIP"`))
	z, err := gzip.NewReader(strings.NewReader(x.object("out.json.gz")))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if want := `{"n":"1","s":"a,\"b\"\nc","at":"2020-01-02 03:04:05.500000 UTC","b":"AQI=","f":1.5,"x":"-1.25"}` + "\n" + `{"s":""}` + "\n"; err != nil || string(text) != want {
		t.Errorf("JSON is %q, want %q (%v)", text, want, err)
	}

	t.Run("there and back", func(t *testing.T) {
		x.do("POST", "/projects/p/datasets/d/tables", `{"tableReference":{"tableId":"nested"},"schema":{"fields":[{"name":"z","type":"INTEGER","mode":"REQUIRED"},{"name":"tags","type":"STRING","mode":"REPEATED"},
			{"name":"r","type":"RECORD","fields":[{"name":"y","type":"DATE"},{"name":"deep","type":"RECORD","mode":"REPEATED","fields":[{"name":"n","type":"NUMERIC"},{"name":"l","type":"INTEGER","mode":"REPEATED"}]}]},
			{"name":"t","type":"TIME"},{"name":"big","type":"BIGNUMERIC"}]}}`).ok()
		x.puts("nested", `{"z":1,"tags":["a","b"],"r":{"y":"2020-01-02","deep":[{"n":"1.5","l":[1,2]},{"l":[]},{"n":"-2","l":[3]}]},"t":"01:02:03","big":"-1.5"}`, `{"z":2}`, `{"z":3,"r":{"deep":[]},"tags":["c"]}`)
		x.done("nested", loading("nested", ndjson, "gs://b-1/nested"))
		want := x.rows("nested")
		for _, c := range []struct{ format, compression, more string }{
			{"NEWLINE_DELIMITED_JSON", "NONE", `"ignoreUnknownValues":false`},
			{"AVRO", "NONE", `"useAvroLogicalTypes":true`}, {"AVRO", "SNAPPY", `"useAvroLogicalTypes":true`}, {"AVRO", "DEFLATE", `"useAvroLogicalTypes":true`},
			{"PARQUET", "ZSTD", `"parquetOptions":{"enableListInference":true}`}, {"PARQUET", "NONE", `"parquetOptions":{"enableListInference":true}`},
		} {
			id := c.format + c.compression
			x.done("out"+id, extracting("nested", "gs://b-1/"+id, `"destinationFormat":"`+c.format+`"`, `"compression":"`+c.compression+`"`, `"useAvroLogicalTypes":true`))
			x.done("copy"+id, copying("back"+id, []string{"nested"}))
			x.done("in"+id, loading("back"+id, c.format, "gs://b-1/"+id, c.more, `"writeDisposition":"WRITE_TRUNCATE_DATA"`))
			if got := x.rows("back" + id); got != want {
				t.Errorf("%s %s: back are\n%s, want\n%s", c.format, c.compression, got, want)
			}
		}
		x.fails("nestedcsv", extracting("nested", "gs://b-1/n.csv"), "Operation cannot be performed on a nested schema. Field: tags")
	})
	x.fails("bucket", extracting("flat", "gs://b-2/x"), "notFound: Not found: URI gs://b-2/x")
	x.fails("none", extracting("none", "gs://b-1/x"), "notFound: Not found: Table p:d.none")
	x.insert("zip", extracting("flat", "gs://b-1/x", `"compression":"SNAPPY"`)).refused(400, "invalid", "Invalid value for compression: SNAPPY cannot be used with CSV")
	x.insert("model", extracting("flat", "gs://b-1/x", `"sourceModel":{"modelId":"m"}`)).refused(501, "notImplemented", "local BigQuery does not implement job.configuration.extract.sourceModel")

	t.Run("the official client", func(t *testing.T) {
		to := bigquery.NewGCSReference("gs://b-1/official.csv")
		job, err := x.official().Dataset("d").Table("flat").ExtractorTo(to).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		status, err := job.Wait(t.Context())
		if err != nil || status.Err() != nil {
			t.Fatal(err, status.Err())
		}
		if !strings.HasPrefix(x.object("official.csv"), "n,s,at") {
			t.Errorf("the object holds %q", x.object("official.csv"))
		}
	})
}
