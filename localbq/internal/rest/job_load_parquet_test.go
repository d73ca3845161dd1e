package rest

import (
	"bytes"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

type parquetInner struct {
	Z string `parquet:"z"`
}

type parquetRow struct {
	I    int32          `parquet:"i"`
	L    *int64         `parquet:"l,optional"`
	F    float32        `parquet:"f"`
	B    bool           `parquet:"b"`
	S    string         `parquet:"s"`
	By   []byte         `parquet:"by"`
	Day  int32          `parquet:"day,date"`
	Ts   time.Time      `parquet:"ts,timestamp(microsecond)"`
	N    int64          `parquet:"n,decimal(2:18)"`
	J    []byte         `parquet:"j,json"`
	R    *parquetInner  `parquet:"r,optional"`
	Tags []string       `parquet:"tags,list"`
	Deep []parquetInner `parquet:"deep"`
}

func parquetFile(t *testing.T, codec parquet.WriterOption, rows ...parquetRow) []byte {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[parquetRow](&out, codec)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestLoadParquet(t *testing.T) {
	x := setupTransfers(t)
	at := time.Date(2020, 1, 2, 3, 4, 5, 6000, time.UTC)
	rows := []parquetRow{
		{I: 1, L: new(int64(2)), F: 1.5, B: true, S: "s", By: []byte{1}, Day: 300, Ts: at, N: -125, J: []byte(`{}`), R: &parquetInner{"q"}, Tags: []string{"x", "y"}, Deep: []parquetInner{{"a"}, {"b"}}},
		{I: 2, Ts: at},
	}
	for name, codec := range map[string]parquet.WriterOption{
		"none": parquet.Compression(&parquet.Uncompressed), "snappy": parquet.Compression(&parquet.Snappy), "gzip": parquet.Compression(&parquet.Gzip),
		"zstd": parquet.Compression(&parquet.Zstd), "lz4": parquet.Compression(&parquet.Lz4Raw), "brotli": parquet.Compression(&parquet.Brotli),
	} {
		x.put(name, parquetFile(t, codec, rows...))
		x.done("load"+name, loading(name, "PARQUET", "gs://b-1/"+name, `"parquetOptions":{"enableListInference":true}`))
		if got, want := x.columns(name), "i:INT64:REQUIRED l:INT64:NULLABLE f:FLOAT64:REQUIRED b:BOOL:REQUIRED s:STRING:REQUIRED by:BYTES:REQUIRED day:DATE:REQUIRED "+
			"ts:TIMESTAMP:REQUIRED n:NUMERIC:REQUIRED j:BYTES:REQUIRED r:STRUCT:NULLABLE tags:STRING:REPEATED deep:STRUCT:REPEATED"; got != want {
			t.Errorf("%s: columns are %s, want %s", name, got, want)
		}
		x.wantRows(name,
			`{"b":true,"by":"AQ==","day":"1970-10-28","deep":[{"z":"a"},{"z":"b"}],"f":1.5,"i":1,"j":"e30=","l":2,"n":"-1.25","r":{"z":"q"},"s":"s","tags":["x","y"],"ts":"2020-01-02T03:04:05.000006Z"}`,
			`{"b":false,"by":"","day":"1970-01-01","deep":[],"f":0,"i":2,"j":"","l":null,"n":"0","r":null,"s":"","tags":[],"ts":"2020-01-02T03:04:05.000006Z"}`)
	}
	t.Run("LBQ-169 a list without list inference: empty arrays, the job succeeds", func(t *testing.T) {
		x.done("lists", loading("lists", "PARQUET", "gs://b-1/none", `"schema":`+schemaOf("i:INTEGER", "tags:STRING:REPEATED")))
		x.wantRows("lists", `{"i":1,"tags":[]}`, `{"i":2,"tags":[]}`)
		x.done("three", loading("three", "PARQUET", "gs://b-1/none"))
		a := x.do("GET", "/projects/p/datasets/d/tables/three", "").ok()
		fields := a.body["schema"].(map[string]any)["fields"].([]any)
		if got, want := quoted(fields[11]), `{"fields":[{"fields":[{"mode":"REQUIRED","name":"element","type":"STRING"}],"mode":"REPEATED","name":"list","type":"RECORD"}],"mode":"REQUIRED","name":"tags","type":"RECORD"}`; got != want {
			t.Errorf("without list inference the column is %s, want %s", got, want)
		}
	})
	x.fails("type", loading("type", "PARQUET", "gs://b-1/none", `"schema":`+schemaOf("s:DATETIME")), "Parquet column 's' has type BYTE_ARRAY which does not match the target cpp_type DATETIME.")
	file := parquetFile(t, parquet.Compression(&parquet.Snappy), rows...)
	for i := 0; i < len(file); i += 7 { // damaged anywhere: an error or rows, and no crash
		broken := bytes.Clone(file)
		broken[i] ^= 0xff
		x.put("broken", broken)
		x.run("broken"+quoted(i), loading("broken", "PARQUET", "gs://b-1/broken", `"writeDisposition":"WRITE_TRUNCATE"`))
	}
	x.put("short", file[:len(file)/2])
	x.fails("short", loading("short", "PARQUET", "gs://b-1/short"), "Input file is not in Parquet format")
}
