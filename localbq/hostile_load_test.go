package localbq_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/internal/hostile"
)

// zeros is as many of them.
func zeros(n int64) io.Reader { return io.LimitReader(zero{}, n) }

type zero struct{}

func (zero) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// pack reads everything through a writer that packs.
func pack[W io.WriteCloser](t testing.TB, in io.Reader, packer func(io.Writer) (W, error)) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := packer(&out)
	if err == nil {
		_, err = io.Copy(w, in)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(t testing.TB, in io.Reader) []byte {
	return pack(t, in, func(w io.Writer) (*gzip.Writer, error) { return gzip.NewWriterLevel(w, gzip.BestSpeed) })
}

// gzipBomb is text, and 320 MiB of zeros: a gzip file may have several members.
func gzipBomb(t testing.TB, text string) []byte {
	return append(gzipped(t, strings.NewReader(text)), bytes.Repeat(gzipped(t, zeros(1<<20)), 320)...)
}

// deflateBomb is so many MiB of zeros: what a flush ends may be repeated.
func deflateBomb(t testing.TB, mebibytes int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err == nil {
		_, err = io.Copy(w, zeros(1<<20))
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Repeat(out.Bytes(), mebibytes), 1, 0, 0, 0xff, 0xff) // a last block, of nothing
}

// loads is load jobs of files that come with the job, by the official client.
type loads struct {
	testing.TB
	client *bigquery.Client
	table  string
}

func newLoads(t testing.TB, bq *localbq.Instance) loads {
	t.Helper()
	c, err := bigquery.NewClient(t.Context(), bq.Project(), bq.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return loads{t, c, "t"}
}

// into is loads into another table.
func (l loads) into(table string) loads {
	l.table = table
	return l
}

// refused loads a file and compares what becomes of the job.
func (l loads) refused(format bigquery.DataFormat, file []byte, message string) {
	l.Helper()
	source := bigquery.NewReaderSource(bytes.NewReader(file))
	source.SourceFormat = format
	if format == bigquery.JSON || format == bigquery.CSV {
		source.Schema = bigquery.Schema{{Name: "s", Type: bigquery.StringFieldType}}
	}
	loader := l.client.Dataset("d").Table(l.table).LoaderFrom(source)
	loader.CreateDisposition = bigquery.CreateIfNeeded
	job, err := loader.Run(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	status, err := job.Wait(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	if err := status.Err(); err == nil || !strings.Contains(err.Error(), message) {
		l.Errorf("got %v, want %q", err, message)
	}
}

// avroFile is a container file of one block by hand.
func avroFile(schema, codec string, count, size int64, block []byte) []byte {
	text := func(s string) []byte { return append(binary.AppendVarint(nil, int64(len(s))), s...) }
	sync := "0123456789abcdef"
	b := append([]byte("Obj\x01"), 4)
	b = append(append(append(append(b, text("avro.schema")...), text(schema)...), text("avro.codec")...), text(codec)...)
	b = append(append(b, 0), sync...)
	b = binary.AppendVarint(binary.AppendVarint(b, count), size)
	return append(append(b, block...), sync...)
}

const oneString = `{"type":"record","name":"r","fields":[{"name":"s","type":"string"}]}`

func TestHostileLoads(t *testing.T) {
	bq := start(t, localbq.Config{})
	l := newLoads(t, bq)
	makeTable(t, bq, "d.t", column("s", "STRING"))

	t.Run("a 1 GiB length prefix in an Avro file", func(t *testing.T) {
		l := l.into("new")
		prefix := string(binary.AppendVarint(nil, gibibyte))
		for name, file := range map[string][]byte{
			"of a value":            avroFile(oneString, "null", 1, int64(len(prefix)+1), []byte(prefix+"x")),
			"of a block":            avroFile(oneString, "null", 1, gibibyte, []byte("x")),
			"of records":            avroFile(oneString, "null", gibibyte, 1, []byte("\x00")),
			"of the schema":         []byte("Obj\x01\x04\x16avro.schema" + prefix + "{}"),
			"of the metadata":       []byte("Obj\x01" + prefix + "\x02x\x02y"),
			"of what is packed":     avroFile(oneString, "snappy", 1, 9, []byte("\x80\x80\x80\x80\x04abcd")),
			"of an array's items":   avroFile(`{"type":"record","name":"r","fields":[{"name":"s","type":{"type":"array","items":"long"}}]}`, "null", 1, int64(len(prefix)+1), []byte(prefix+"x")),
			"of records of nothing": avroFile(`{"type":"record","name":"r","fields":[{"name":"s","type":{"type":"fixed","name":"f","size":0}}]}`, "null", gibibyte, 0, nil),
		} {
			t.Run(name, func(t *testing.T) {
				hostile.Allocates(t, modest, func() { l.refused(bigquery.Avro, file, "The Apache Avro library failed to") })
			})
		}
		items := `{"type":"record","name":"r","fields":[{"name":"s","type":{"type":"array","items":{"type":"record","name":"e","fields":[]}}}]}`
		hostile.Allocates(t, modest, func() {
			l.refused(bigquery.Avro, avroFile(items, "null", 1, int64(len(prefix)+1), []byte(prefix+"\x00")), "Field s is type RECORD but has no schema")
		})
	})
	t.Run("a zip bomb in an Avro block", func(t *testing.T) {
		// 45,899,235 zeros. Streams and frames may follow one another.
		bzip2, err := hex.DecodeString("425a68393141592653590e09e2df015f8e4000c0000008200030804d4642a025a90a80971772453850900e09e2df")
		if err != nil {
			t.Fatal(err)
		}
		snappy := append(binary.AppendUvarint(nil, 255<<20), 0, 0)
		snappy = append(snappy, bytes.Repeat([]byte{0xfe, 1, 0}, (255<<20)/64)...) // copies of 64 bytes, from one byte before
		snappy = binary.BigEndian.AppendUint32(snappy, crc32.ChecksumIEEE(nil))
		for codec, block := range map[string][]byte{
			"deflate": deflateBomb(t, 128),
			"zstandard": bytes.Repeat(pack(t, zeros(1<<20), func(w io.Writer) (*zstd.Encoder, error) {
				return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
			}), 128),
			"snappy": snappy,
			"bzip2":  bytes.Repeat(bzip2, 24),
			"xz":     bytes.Repeat(pack(t, zeros(1<<20), xz.NewWriter), 128),
		} {
			t.Run(codec, func(t *testing.T) {
				if len(block) > 13<<20 {
					t.Fatalf("the block has %d bytes: no bomb", len(block))
				}
				file := avroFile(oneString, codec, 1, int64(len(block)), block)
				// 64 MiB are unpacked, into a buffer that has to grow to hold them; the race detector's pools forget theirs.
				hostile.Allocates(t, 8*modest, func() { l.refused(bigquery.Avro, file, "The Apache Avro library failed to parse the data") })
			})
		}
	})
	t.Run("10,000 nested messages in an Avro schema", func(t *testing.T) {
		for name, schema := range map[string]string{
			"records": strings.Repeat(`{"type":"record","name":"r","fields":[{"name":"f","type":`, deep) + `"long"` + strings.Repeat("}]}", deep),
			"arrays":  `{"type":"record","name":"r","fields":[{"name":"f","type":` + strings.Repeat(`{"type":"array","items":`, deep) + `"long"` + strings.Repeat("}", deep) + "}]}",
			"maps":    `{"type":"record","name":"r","fields":[{"name":"f","type":` + strings.Repeat(`{"type":"map","values":`, deep) + `"long"` + strings.Repeat("}", deep) + "}]}",
			"unions":  `{"type":"record","name":"r","fields":[{"name":"f","type":` + strings.Repeat("[", deep) + `"long"` + strings.Repeat("]", deep) + "}]}",
		} {
			t.Run(name, func(t *testing.T) {
				hostile.Allocates(t, 2*modest, func() {
					l.refused(bigquery.Avro, avroFile(schema, "null", 0, 0, nil), "failed to read the header: ocf: parsing schema: avro: schema JSON nests deeper")
				})
			})
		}
	})
	t.Run("a hundred nested messages in an Avro schema", func(t *testing.T) {
		schema, end := "", `"long"`
		for i := range 100 {
			schema += fmt.Sprintf(`{"type":"record","name":"r%d","fields":[{"name":"f","type":`, i)
			end += "}]}"
		}
		hostile.Allocates(t, 2*modest, func() {
			l.into("deep").refused(bigquery.Avro, avroFile(schema+end, "null", 0, 0, nil), "nested too deeply: at most 15 levels of nesting are allowed")
		})
	})
	t.Run("an Avro schema that is small, and large where its names are followed", func(t *testing.T) {
		inner := `"long"` // each record holds the one before twice
		for i := range 40 {
			name := fmt.Sprintf("r%d", i)
			def := `{"type":"record","name":"` + name + `","fields":[{"name":"a","type":` + inner + `},{"name":"b","type":` + reference(inner, i) + `}]}`
			inner = def
		}
		hostile.Allocates(t, 4*modest, func() {
			l.refused(bigquery.Avro, avroFile(inner, "null", 0, 0, nil), "recursive types are not supported")
		})
	})
	t.Run("an Avro schema that contains itself", func(t *testing.T) {
		schema := `{"type":"record","name":"r","fields":[{"name":"next","type":["null","r"]}]}`
		hostile.Allocates(t, modest, func() {
			l.refused(bigquery.Avro, avroFile(schema, "null", 0, 0, nil), "recursive types are not supported: r")
		})
	})
	t.Run("a 1 GiB length prefix in a Parquet file", func(t *testing.T) {
		footer := binary.LittleEndian.AppendUint32([]byte("PAR1xxxxxxxx"), gibibyte)
		hostile.Allocates(t, modest, func() {
			l.refused(bigquery.Parquet, append(footer, "PAR1"...), "Input file is not in Parquet format")
		})
	})
	t.Run("10,000 nested messages in JSON rows", func(t *testing.T) {
		hostile.Allocates(t, modest, func() {
			l.refused(bigquery.JSON, []byte(`{"s":`+strings.Repeat("[", deep)+strings.Repeat("]", deep)+"}"), "JSON parsing error in row starting at position 0")
			l.refused(bigquery.JSON, []byte(`{"s":`+strings.Repeat(`{"s":`, deep)+"1"+strings.Repeat("}", deep)+"}"), "JSON parsing error in row starting at position 0")
		})
	})
	t.Run("a zip bomb of one row", func(t *testing.T) {
		for format, begin := range map[bigquery.DataFormat]string{bigquery.JSON: `{"s":"`, bigquery.CSV: `"`} {
			file := gzipBomb(t, begin)
			t.Run(string(format), func(t *testing.T) {
				// 100 MiB are read, into a buffer that has to grow to hold them.
				hostile.Allocates(t, 11*modest, func() { l.refused(format, file, "Row size is larger than: 104857600.") })
			})
		}
	})
	if got := contents(t, bq, "d.t"); got != "" {
		t.Errorf("the table holds %s", got)
	}
}

// reference is a type once more, by name where it has one.
func reference(def string, i int) string {
	if i == 0 {
		return def
	}
	return fmt.Sprintf(`"r%d"`, i-1)
}

// TestHostileBodies sends HTTP requests that pack much into little.
func TestHostileBodies(t *testing.T) {
	bq := start(t, localbq.Config{})
	bucket(t, bq)
	makeTable(t, bq, "d.t", column("s", "STRING"))
	rest := "http://" + bq.REST()
	gcs := "http://" + bq.GCS()
	ask := func(t *testing.T, url, contentType, encoding string, body []byte) (int, string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), "POST", url, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", contentType)
		if encoding != "" {
			q.Header.Set("Content-Encoding", encoding)
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(text)
	}
	wants := func(t *testing.T, limit uint64, url, contentType, encoding string, body []byte, message string) {
		t.Helper()
		hostile.Allocates(t, limit, func() {
			if code, text := ask(t, url, contentType, encoding, body); code != 400 || !strings.Contains(text, message) {
				t.Errorf("%s: %d %.300s, want 400 %s", url, code, text, message)
			}
		})
	}
	tables := rest + "/bigquery/v2/projects/" + bq.Project() + "/datasets/d/tables"
	jobs := rest + "/upload/bigquery/v2/projects/" + bq.Project() + "/jobs?uploadType="

	t.Run("gzip bombs", func(t *testing.T) {
		bomb := gzipBomb(t, `{"description":"`)
		wants(t, 2*modest, tables, "application/json", "gzip", bomb, "Request payload size exceeds the limit: 20971520 bytes.")
		wants(t, 2*modest, jobs+"resumable", "application/json", "gzip", bomb, "Request payload size exceeds the limit: 20971520 bytes.")
		wants(t, modest, gcs+"/storage/v1/b?project=p", "application/json", "gzip", bomb, "Metadata part is too large.")
		wants(t, modest, gcs+"/upload/storage/v1/b/lake/o?uploadType=resumable&name=x", "application/json", "gzip", bomb, "Metadata part is too large.")
		object := gzipBomb(t, "--x\r\nContent-Type: application/json\r\n\r\n{\"name\": \"bomb\"}\r\n--x\r\n\r\n")
		wants(t, 13*modest, gcs+"/upload/storage/v1/b/lake/o?uploadType=multipart", "multipart/related; boundary=x", "gzip", object, "unpacks to more than 134217728 bytes")
		part := gzipBomb(t, "--x\r\nContent-Type: application/json\r\n\r\n{\"name\": \"")
		wants(t, modest, gcs+"/upload/storage/v1/b/lake/o?uploadType=multipart", "multipart/related; boundary=x", "gzip", part, "Metadata part is too large.")
	})
	t.Run("a job of 21 MiB that brings a file", func(t *testing.T) {
		body := []byte("--x\r\n\r\n{\"a\": \"" + strings.Repeat("x", 21<<20))
		wants(t, 4*modest, jobs+"multipart", "multipart/related; boundary=x", "", body, "Request payload size exceeds the limit: 20971520 bytes.")
	})
	t.Run("10,000 nested messages", func(t *testing.T) {
		objects := strings.Repeat(`{"a":`, deep+1) + "1" + strings.Repeat("}", deep+1)
		fields := strings.Repeat(`{"name":"a","type":"RECORD","fields":[`, deep/3) + `{"name":"a","type":"INTEGER"}` + strings.Repeat("]}", deep/3)
		for name, c := range map[string]struct{ url, body, message string }{
			"a resource":               {tables, objects, "Invalid JSON payload received."},
			"a schema":                 {tables, `{"tableReference":{"tableId":"u"},"schema":{"fields":[` + fields + `]}}`, "nested too deeply: at most 15 levels of nesting are allowed"},
			"rows of insertAll":        {tables + "/t/insertAll", `{"rows":[{"json":{"s":` + objects + `}}]}`, "Invalid JSON payload received."},
			"a job":                    {rest + "/bigquery/v2/projects/p/jobs", `{"configuration":{"query":` + objects + `}}`, "Invalid JSON payload received."},
			"a job that brings a file": {jobs + "resumable", `{"configuration":{"load":` + objects + `}}`, "Invalid JSON payload received."},
			"a bucket":                 {gcs + "/storage/v1/b?project=p", `{"name":"b-1","labels":` + objects + `}`, "Parse Error"},
		} {
			t.Run(name, func(t *testing.T) { wants(t, modest, c.url, "application/json", "", []byte(c.body), c.message) })
		}
	})
	t.Run("rows of nothing in a table of many columns", func(t *testing.T) {
		var columns []*bqapi.TableFieldSchema
		for i := range 5000 {
			columns = append(columns, column(fmt.Sprintf("c%d", i), "INTEGER"))
		}
		makeTable(t, bq, "d.wide", columns...)
		body := `{"rows":[` + strings.Repeat(`{"json":{}},`, 49_999) + `{"json":{}}]}`
		wants(t, 4*modest, tables+"/wide/insertAll", "application/json", "", []byte(body), "Too many values in the request: 50000 rows of 5000 columns")
	})
	t.Run("a part of an upload that says it is 1 GiB", func(t *testing.T) {
		session := begin(t, bq, "much")
		hostile.Allocates(t, modest, func() {
			session.wants("bytes 0-1073741823/1073741824", "x", 400, "")
			session.wants("bytes */*", "", 308, "")
		})
	})
}
