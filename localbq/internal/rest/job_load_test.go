package rest

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery"
	"github.com/google/go-cmp/cmp"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
	"google.golang.org/api/googleapi"
)

const ndjson = "NEWLINE_DELIMITED_JSON"

// avroFile is a container file of records.
func avroFile(t *testing.T, schema string, records ...map[string]any) []byte {
	t.Helper()
	s, err := avro.Parse(schema)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, s, ocf.WithCodec(ocf.SnappyCodec()))
	for _, r := range records {
		if err == nil {
			err = w.Encode(r)
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func avroRecord(fields string) string {
	return `{"type":"record","name":"row","fields":[` + fields + `]}`
}

func TestLoadJSON(t *testing.T) {
	x := setupTransfers(t)
	x.puts("a/1.json", `{"id":1,"name":"one","tags":["x","y"],"deep":{"n":1.5}}`, ``, `{"id":"2","tags":[]}`)
	x.puts("a/2.json", `{"ID":3,"name":null}`)
	x.table("t", "id:INTEGER:REQUIRED", "name:STRING", "tags:STRING:REPEATED")
	job := x.done("j1", loading("t", ndjson, "gs://b-1/a/*.json", `"ignoreUnknownValues":true`))
	x.wantRows("t", `{"id":1,"name":"one","tags":["x","y"]}`, `{"id":2,"name":null,"tags":[]}`, `{"id":3,"name":null,"tags":[]}`)
	load := job["statistics"].(map[string]any)["load"].(map[string]any)
	if load["outputRows"] != "3" || load["inputFiles"] != "2" || load["badRecords"] != "0" {
		t.Errorf("statistics are %v", load)
	}
	if reads := x.read("p:US.j1"); len(reads) != 2 || reads[0].Generation == 0 {
		t.Errorf("the job says it read %v", reads)
	}
	x.fails("j2", loading("t", ndjson, "gs://b-1/a/*.json"), "No such field: deep.")
	x.fails("j3", loading("t", ndjson, "gs://b-1/none"), "notFound: Not found: URI gs://b-1/none")
	x.fails("j4", loading("t", ndjson, "gs://b-2/none*"), "notFound: Not found: URI gs://b-2/none*")

	t.Run("bad records", func(t *testing.T) {
		x.puts("bad", `{"id":4}`, `{"id":"x"}`, `nonsense`, `{}`, `{"id":5}`)
		x.fails("bad2", loading("t", ndjson, "gs://b-1/bad", `"maxBadRecords":2`), "max bad: 2")
		job := x.done("bad3", loading("t", ndjson, "gs://b-1/bad", `"maxBadRecords":3`))
		if got := job["statistics"].(map[string]any)["load"].(map[string]any)["badRecords"]; got != "3" {
			t.Errorf("badRecords is %v, want 3", got)
		}
		if got := job["status"].(map[string]any)["errors"].([]any); len(got) != 3 {
			t.Errorf("errors are %v, want three", got)
		}
		if !strings.HasSuffix(x.rows("t"), `{"id":4,"name":null,"tags":[]}`+"\n"+`{"id":5,"name":null,"tags":[]}`) {
			t.Errorf("the table holds %s", x.rows("t"))
		}
	})
	t.Run("autodetect", func(t *testing.T) {
		x.puts("auto", `{"i":1,"f":1,"s":"x","b":true,"d":"2020-01-02","r":{"n":[1,2]}}`, `{"i":2,"f":1.5}`)
		x.done("auto", loading("auto", ndjson, "gs://b-1/auto", `"autodetect":true`))
		if got, want := x.columns("auto"), "i:INT64:NULLABLE f:FLOAT64:NULLABLE s:STRING:NULLABLE b:BOOL:NULLABLE d:DATE:NULLABLE r:STRUCT:NULLABLE"; got != want {
			t.Errorf("columns are %s, want %s", got, want)
		}
		x.wantRows("auto", `{"b":true,"d":"2020-01-02","f":1,"i":1,"r":{"n":[1,2]},"s":"x"}`, `{"b":null,"d":null,"f":1.5,"i":2,"r":null,"s":null}`)
	})
	t.Run("no schema at all", func(t *testing.T) {
		x.fails("none", loading("none", ndjson, "gs://b-1/auto"), "No schema specified on job or table.")
	})
	t.Run("hostile names", func(t *testing.T) {
		x.puts("h\"`'/../x", `{"id":9}`)
		x.done("hostile", loading("h", ndjson, "gs://b-1/h\"`'/../x", `"schema":`+schemaOf("id:INTEGER")))
		x.wantRows("h", `{"id":9}`)
	})
}

func TestLoadDispositions(t *testing.T) {
	x := setupTransfers(t)
	x.puts("one", `{"a":1}`)
	x.puts("two", `{"a":2,"b":"x"}`)
	x.puts("broken", `{"a":3}`, `{"a":`)
	x.table("t", "a:INTEGER")
	write := func(d string) string { return `"writeDisposition":"` + d + `"` }
	x.done("w1", loading("t", ndjson, "gs://b-1/one", write("WRITE_EMPTY")))
	x.fails("w2", loading("t", ndjson, "gs://b-1/one", write("WRITE_EMPTY")), "duplicate: Already Exists: Table p:d.t")
	x.done("w3", loading("t", ndjson, "gs://b-1/one"))
	x.wantRows("t", `{"a":1}`, `{"a":1}`)
	x.done("w4", loading("t", ndjson, "gs://b-1/one", write("WRITE_TRUNCATE")))
	x.wantRows("t", `{"a":1}`)
	x.fails("w5", loading("never", ndjson, "gs://b-1/one", `"createDisposition":"CREATE_NEVER"`, `"schema":`+schemaOf("a:INTEGER")), "notFound: Not found: Table p:d.never")

	t.Run("LBQ-170 one corrupt file of three: job fails, table unchanged", func(t *testing.T) {
		for _, d := range []string{"WRITE_APPEND", "WRITE_TRUNCATE", "WRITE_TRUNCATE_DATA"} {
			x.fails("c"+d, strings.Replace(loading("t", ndjson, "gs://b-1/one", write(d)), `"gs://b-1/one"`, `"gs://b-1/one","gs://b-1/broken","gs://b-1/one"`, 1), "gs://b-1/broken")
		}
		x.wantRows("t", `{"a":1}`)
	})
	t.Run("truncation replaces the schema, truncation of data does not", func(t *testing.T) {
		x.do("PATCH", "/projects/p/datasets/d/tables/t", `{"description":"kept","labels":{"l":"v"}}`).ok()
		x.done("d1", loading("t", ndjson, "gs://b-1/one", write("WRITE_TRUNCATE_DATA")))
		a := x.do("GET", "/projects/p/datasets/d/tables/t", "").ok()
		if a.body["description"] != "kept" || a.body["labels"] == nil {
			t.Errorf("the table is %v", a.body)
		}
		x.done("d2", loading("t", ndjson, "gs://b-1/two", write("WRITE_TRUNCATE_DATA"), `"schema":`+schemaOf("a:INTEGER", "b:STRING"), `"schemaUpdateOptions":["ALLOW_FIELD_ADDITION"]`))
		x.wantRows("t", `{"a":2,"b":"x"}`)
		x.done("d3", loading("t", ndjson, "gs://b-1/two", write("WRITE_TRUNCATE"), `"schema":`+schemaOf("b:STRING", "a:STRING")))
		x.wantRows("t", `{"a":"2","b":"x"}`)
		x.insert("d4", loading("t", ndjson, "gs://b-1/two", write("WRITE_TRUNCATE"), `"schemaUpdateOptions":["ALLOW_FIELD_ADDITION"]`)).refused(400, "invalid",
			"Schema update options should only be specified with WRITE_APPEND disposition, or with WRITE_TRUNCATE disposition on a table partition.")
	})
}

func TestLoadSchemaRules(t *testing.T) {
	x := setupTransfers(t)
	x.puts("f", `{"a":1,"b":"x"}`)
	x.table("t", "a:INTEGER:REQUIRED", "b:STRING", "span:INTERVAL")
	with := func(more ...string) string {
		return loading("t", ndjson, "gs://b-1/f", append([]string{`"ignoreUnknownValues":true`}, more...)...)
	}
	t.Run("LBQ-165 a new REQUIRED column: 400 at insert, no job", func(t *testing.T) {
		for _, options := range []string{`[]`, `["ALLOW_FIELD_ADDITION"]`} {
			x.insert("required", with(`"schema":`+schemaOf("a:INTEGER:REQUIRED", "c:STRING:REQUIRED"), `"schemaUpdateOptions":`+options)).refused(400, "invalid",
				"Provided Schema does not match Table p:d.t. Cannot add required fields to an existing schema. (field: c)")
		}
		if a := x.do("GET", "/projects/p/jobs/required", ""); a.code != 404 {
			t.Errorf("the job is there: %s", a.raw)
		}
	})
	x.fails("s1", with(`"schema":`+schemaOf("a:INTEGER:REQUIRED", "c:STRING")), "Provided Schema does not match Table p:d.t. Cannot add fields (field: c)")
	x.fails("s2", with(`"schema":`+schemaOf("a:INTEGER")), "Field a has changed mode from REQUIRED to NULLABLE")
	x.fails("s3", with(`"schema":`+schemaOf("a:STRING:REQUIRED")), "Field a has changed type from INTEGER to STRING")
	x.done("s4", with(`"schema":`+schemaOf("a:INTEGER:REQUIRED", "b:STRING:REQUIRED", "span:INTERVAL")))
	if got := x.columns("t"); got != "a:INT64:REQUIRED b:STRING:NULLABLE span:INTERVAL:NULLABLE" {
		t.Errorf("columns are %s", got)
	}
	x.puts("g", `{"c":"y","b":"z"}`)
	x.done("s5", loading("t", ndjson, "gs://b-1/g", `"schema":`+schemaOf("a:INTEGER", "b:STRING", "c:STRING"), `"schemaUpdateOptions":["ALLOW_FIELD_ADDITION","ALLOW_FIELD_RELAXATION"]`))
	x.wantRows("t", `{"a":1,"b":"x","c":null,"span":null}`, `{"a":null,"b":"z","c":"y","span":null}`)
}

func TestLoadAvro(t *testing.T) {
	x := setupTransfers(t)
	t.Run("LBQ-164 extra file field: rows load, field dropped", func(t *testing.T) {
		x.put("extra", avroFile(t, avroRecord(`{"name":"a","type":"long"},{"name":"x","type":["null","string"]}`), map[string]any{"a": int64(1), "x": "dropped"}))
		x.done("extra", loading("extra", "AVRO", "gs://b-1/extra", `"schema":`+schemaOf("a:INTEGER")))
		x.wantRows("extra", `{"a":1}`)
	})
	t.Run("LBQ-166 every type survives", func(t *testing.T) {
		x.put("types", avroFile(t, avroRecord(`
			{"name":"i","type":"int"},{"name":"l","type":["null","long"]},{"name":"f","type":"float"},{"name":"d","type":"double"},
			{"name":"b","type":"boolean"},{"name":"s","type":"string"},{"name":"by","type":"bytes"},
			{"name":"fx","type":{"type":"fixed","name":"two","size":2}},{"name":"e","type":{"type":"enum","name":"en","symbols":["A","B"]}},
			{"name":"date","type":{"type":"int","logicalType":"date"}},{"name":"tm","type":{"type":"long","logicalType":"time-micros"}},
			{"name":"ts","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"tsm","type":{"type":"long","logicalType":"timestamp-millis"}},
			{"name":"dt","type":{"type":"long","logicalType":"local-timestamp-micros"}},
			{"name":"n","type":{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}},
			{"name":"bn","type":{"type":"bytes","logicalType":"decimal","precision":76,"scale":38}},
			{"name":"list","type":{"type":"array","items":"long"}},{"name":"m","type":{"type":"map","values":"long"}},
			{"name":"r","type":["null",{"type":"record","name":"inner","fields":[{"name":"z","type":"string"}]}]},
			{"name":"u","type":["null","long","string"]}`),
			map[string]any{
				"i": 1, "l": int64(2), "f": float32(1.5), "d": 2.5, "b": true, "s": "s", "by": []byte{1}, "fx": []byte{1, 2}, "e": "B",
				"date": 300, "tm": int64(1), "ts": int64(1), "tsm": int64(1), "dt": int64(1), "n": []byte{0x07, 0x5b, 0xcd, 0x15}, "bn": []byte{0xff},
				"list": []any{int64(1), int64(2)}, "m": map[string]any{"k": int64(3)}, "r": map[string]any{"inner": map[string]any{"z": "q"}}, "u": map[string]any{"string": "v"},
			}))
		x.done("types", loading("types", "AVRO", "gs://b-1/types", `"useAvroLogicalTypes":true`))
		want := "i:INT64:REQUIRED l:INT64:NULLABLE f:FLOAT64:REQUIRED d:FLOAT64:REQUIRED b:BOOL:REQUIRED s:STRING:REQUIRED by:BYTES:REQUIRED fx:BYTES:REQUIRED " +
			"e:STRING:REQUIRED date:DATE:REQUIRED tm:TIME:REQUIRED ts:TIMESTAMP:REQUIRED tsm:TIMESTAMP:REQUIRED dt:DATETIME:REQUIRED n:NUMERIC:REQUIRED bn:BIGNUMERIC:REQUIRED " +
			"list:INT64:REPEATED m:STRUCT:REPEATED r:STRUCT:NULLABLE u:STRUCT:NULLABLE"
		if diff := cmp.Diff(strings.Fields(want), strings.Fields(x.columns("types"))); diff != "" {
			t.Error(diff)
		}
		x.wantRows("types", `{"b":true,"bn":"-1e-38","by":"AQ==","d":2.5,"date":"1970-10-28","dt":"1970-01-01T00:00:00.000001","e":"B","f":1.5,"fx":"AQI=",`+
			`"i":1,"l":2,"list":[1,2],"m":[{"key":"k","value":3}],"n":"0.123456789","r":{"z":"q"},"s":"s","tm":"00:00:00.000001","ts":"1970-01-01T00:00:00.000001Z","tsm":"1970-01-01T00:00:00.001Z","u":{"long_value":null,"string_value":"v"}}`)
		x.done("raw", loading("raw", "AVRO", "gs://b-1/types"))
		if got := x.columns("raw"); !strings.Contains(got, "ts:INT64:REQUIRED") || !strings.Contains(got, "n:BYTES:REQUIRED") {
			t.Errorf("without logical types the columns are %s", got)
		}
		x.fails("narrow", loading("narrow", "AVRO", "gs://b-1/types", `"useAvroLogicalTypes":true`, `"decimalTargetTypes":["NUMERIC"]`), "decimal(76, 38) fits none")
		x.done("texts", loading("texts", "AVRO", "gs://b-1/types", `"useAvroLogicalTypes":true`, `"decimalTargetTypes":["NUMERIC","STRING"]`))
		if got := x.columns("texts"); !strings.Contains(got, "bn:STRING:REQUIRED") {
			t.Errorf("with STRING listed the columns are %s", got)
		}
	})
	t.Run("LBQ-167 a string feeds JSON and GEOGRAPHY, not DATETIME", func(t *testing.T) {
		x.put("v", avroFile(t, avroRecord(`{"name":"v","type":"string"}`), map[string]any{"v": "POINT(1 2)"}))
		x.fails("datetime", loading("dt", "AVRO", "gs://b-1/v", `"schema":`+schemaOf("v:DATETIME")), "Field v has incompatible types. Configured schema: datetime; Avro file: string.")
		x.done("geo", loading("geo", "AVRO", "gs://b-1/v", `"schema":`+schemaOf("v:GEOGRAPHY")))
		x.wantRows("geo", `{"v":"POINT(1 2)"}`)
		x.put("j", avroFile(t, avroRecord(`{"name":"v","type":"string"}`), map[string]any{"v": `{"a": [1]}`}))
		x.done("json", loading("json", "AVRO", "gs://b-1/j", `"schema":`+schemaOf("v:JSON")))
		x.wantRows("json", `{"v":"{\"a\":[1]}"}`)
	})
	t.Run("garbage", func(t *testing.T) {
		x.put("garbage", []byte("Obj\x01 and no more"))
		x.fails("garbage", loading("g", "AVRO", "gs://b-1/garbage"), "The Apache Avro library failed")
		x.put("cut", avroFile(t, avroRecord(`{"name":"v","type":"string"}`), map[string]any{"v": "abc"})[:100])
		x.fails("cut", loading("g", "AVRO", "gs://b-1/cut"), "The Apache Avro library failed")
	})
}

func TestLoadCSV(t *testing.T) {
	x := setupTransfers(t)
	x.put("c", []byte("id;name;at\r\n1;\"a;\"\"b\nc\";2020-01-02 03:04:05\r\n2;;\r\n3;\"\";2020-01-02 03:04:05 UTC\r\n"))
	x.done("c", loading("c", "CSV", "gs://b-1/c", `"skipLeadingRows":1`, `"fieldDelimiter":";"`, `"allowQuotedNewlines":true`, `"schema":`+schemaOf("id:INTEGER", "name:STRING", "at:TIMESTAMP")))
	x.wantRows("c", `{"at":"2020-01-02T03:04:05Z","id":1,"name":"a;\"b\nc"}`, `{"at":null,"id":2,"name":null}`, `{"at":"2020-01-02T03:04:05Z","id":3,"name":""}`)
	x.fails("newline", loading("n", "CSV", "gs://b-1/c", `"fieldDelimiter":";"`, `"skipLeadingRows":1`, `"schema":`+schemaOf("id:INTEGER", "name:STRING", "at:TIMESTAMP")), "Missing close quote")

	x.puts("jagged", "1,x", "2", "3,y,z")
	two := `"schema":` + schemaOf("id:INTEGER", "name:STRING")
	x.fails("j1", loading("j", "CSV", "gs://b-1/jagged", two), "Too few values in row")
	x.fails("j2", loading("j", "CSV", "gs://b-1/jagged", two, `"allowJaggedRows":true`), "Too many values in line")
	x.done("j3", loading("j", "CSV", "gs://b-1/jagged", two, `"allowJaggedRows":true`, `"ignoreUnknownValues":true`))
	x.wantRows("j", `{"id":1,"name":"x"}`, `{"id":2,"name":null}`, `{"id":3,"name":"y"}`)

	x.puts("nulls", `NA,NA`, `1,"NA"`, `2,`)
	x.done("nulls", loading("nulls", "CSV", "gs://b-1/nulls", two, `"nullMarker":"NA"`))
	x.wantRows("nulls", `{"id":null,"name":null}`, `{"id":1,"name":"NA"}`, `{"id":2,"name":""}`)

	x.put("controls", []byte("1,\"a\r\nb\x01\"\r\n2,\"\x00\"\n"))
	x.fails("nul", loading("controls", "CSV", "gs://b-1/controls", two, `"allowQuotedNewlines":true`), "Bad character (ASCII 0)")
	x.done("controls", loading("controls", "CSV", "gs://b-1/controls", two, `"allowQuotedNewlines":true`, `"preserveAsciiControlCharacters":true`))
	x.wantRows("controls", `{"id":1,"name":"a\r\nb\u0001"}`, `{"id":2,"name":"\u0000"}`)

	x.puts("auto", "n,day,what", "1,2020-01-02,x", "2,2020-01-03,y")
	x.done("auto", loading("auto", "CSV", "gs://b-1/auto", `"autodetect":true`))
	x.wantRows("auto", `{"day":"2020-01-02","n":1,"what":"x"}`, `{"day":"2020-01-03","n":2,"what":"y"}`)
}

func TestLoadRefusals(t *testing.T) {
	x := setupTransfers(t)
	x.puts("f", `{"a":1}`)
	schema := `"schema":` + schemaOf("a:INTEGER")
	t.Run("LBQ-171 10,001 URIs: 400", func(t *testing.T) {
		uris := make([]string, 10_001)
		for i := range uris {
			uris[i] = "gs://b-1/f"
		}
		config := strings.Replace(loading("t", ndjson, "gs://b-1/f", schema), `["gs://b-1/f"]`, quoted(uris), 1)
		x.insert("many", config).refused(400, "invalid", "Too many sourceUris: 10001, at most 10000 are allowed")
	})
	t.Run("LBQ-168 PARQUET with JSON in its schema: 400", func(t *testing.T) {
		x.insert("pj", loading("t", "PARQUET", "gs://b-1/f", `"schema":`+schemaOf("a:JSON"))).refused(400, "invalid", "Unsupported field type: JSON")
	})
	t.Run("LBQ-153 the same job id twice: 409, one effect", func(t *testing.T) {
		x.done("twice", loading("twice", ndjson, "gs://b-1/f", schema))
		x.insert("twice", loading("twice", ndjson, "gs://b-1/f", schema)).refused(409, "duplicate", "Already Exists: Job p:US.twice")
		x.wantRows("twice", `{"a":1}`)
	})
	t.Run("LBQ-154 a failed job's id: 409 too", func(t *testing.T) {
		x.fails("failed", loading("t", ndjson, "gs://b-1/none", schema), "Not found")
		x.insert("failed", loading("t", ndjson, "gs://b-1/f", schema)).refused(409, "duplicate", "Already Exists: Job p:US.failed")
	})
	t.Run("LBQ-156 a location that disagrees with the dataset: 404", func(t *testing.T) {
		x.do("POST", "/projects/p/jobs", `{"jobReference":{"projectId":"p","jobId":"far","location":"asia-east1"},"configuration":{`+loading("t", ndjson, "gs://b-1/f", schema)+`}}`).
			refused(404, "notFound", "Not found: Dataset p:d")
	})
	t.Run("LBQ-155 a regional job: not found without its location", func(t *testing.T) {
		x.do("POST", "/projects/p/datasets", `{"datasetReference":{"datasetId":"far"},"location":"asia-east1"}`).ok()
		config := strings.Replace(loading("t", ndjson, "gs://b-1/f", schema), `"datasetId":"d"`, `"datasetId":"far"`, 1)
		if a := x.insert("regional", config).ok(); a.body["id"] != "p:asia-east1.regional" {
			t.Errorf("the job is %v", a.body["id"])
		}
		x.do("GET", "/projects/p/jobs/regional", "").refused(404, "notFound", "Not found: Job p:regional")
		x.do("GET", "/projects/p/jobs/regional?location=asia-east1", "").ok()
		x.do("GET", "/projects/p/jobs/regional?location=ASIA-EAST1", "").ok()
	})
	for _, c := range []struct{ config, message string }{
		{loading("t", "ORC", "gs://b-1/f"), "local BigQuery does not implement load jobs of format ORC"},
		{loading("t", ndjson, "gs://b-1/f", `"hivePartitioningOptions":{"mode":"AUTO"}`), "local BigQuery does not implement job.configuration.load.hivePartitioningOptions"},
	} {
		x.insert("refused", c.config).refused(501, "notImplemented", c.message)
	}
	for _, uri := range []string{"s3://b/f", "gs://b-1", "gs://b-1/*/*", "gs://*/f"} {
		if a := x.insert("uri", loading("t", ndjson, uri, schema)); a.code != 400 {
			t.Errorf("%s: got %d %s, want 400", uri, a.code, a.raw)
		}
	}
}

func TestLoadWithTheOfficialClient(t *testing.T) {
	x := setupTransfers(t)
	x.puts("f", `{"a":1}`, `{"a":2}`)
	c := x.official()
	ref := bigquery.NewGCSReference("gs://b-1/f")
	ref.SourceFormat, ref.Schema = bigquery.JSON, bigquery.Schema{{Name: "a", Type: bigquery.IntegerFieldType}}
	loader := c.Dataset("d").Table("t").LoaderFrom(ref)
	loader.JobID = "official"
	t.Run("LBQ-173 the same id sent again: 409, rows once", func(t *testing.T) {
		job, err := loader.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		status, err := job.Wait(t.Context())
		if err != nil || status.Err() != nil {
			t.Fatal(err, status.Err())
		}
		if s := status.Statistics.Details.(*bigquery.LoadStatistics); s.OutputRows != 2 {
			t.Errorf("the job says %d rows, want 2", s.OutputRows)
		}
		_, err = loader.Run(t.Context())
		if e, ok := errors.AsType[*googleapi.Error](err); !ok || e.Code != 409 {
			t.Errorf("the second time: %v, want 409", err)
		}
		x.wantRows("t", `{"a":1}`, `{"a":2}`)
	})
}
