package localbq_test

import (
	"bytes"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	bqapi "google.golang.org/api/bigquery/v2"
	"google.golang.org/grpc/codes"

	"github.com/millrace-dev/millrace/localbq"
)

// arrowType is a writer's Arrow schema, and writes rows of it. It works as rowType does.
type arrowType struct {
	schema  *arrow.Schema
	options []ipc.Option
}

func arrowOf(fields ...arrow.Field) *arrowType {
	return &arrowType{schema: arrow.NewSchema(fields, nil)}
}

func optional(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

func bare(t testing.TB, p ipc.Payload, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	var out bytes.Buffer
	if _, err := p.WritePayload(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (a *arrowType) first(t testing.TB, stream, rows string) *storagepb.AppendRowsRequest {
	t.Helper()
	return a.toStream(t, stream, a.next(t, rows))
}

// toStream is the first request of a connection.
func (a *arrowType) toStream(t testing.TB, stream string, q *storagepb.AppendRowsRequest) *storagepb.AppendRowsRequest {
	t.Helper()
	q.WriteStream = stream
	q.GetArrowRows().WriterSchema = &storagepb.ArrowSchema{
		SerializedSchema: bare(t, ipc.GetSchemaPayload(a.schema, memory.DefaultAllocator), nil),
	}
	return q
}

func (a *arrowType) next(t testing.TB, rows string) *storagepb.AppendRowsRequest {
	t.Helper()
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, a.schema, strings.NewReader("["+rows+"]"))
	if err != nil {
		t.Fatal(err)
	}
	return a.request(t, b)
}

func (a *arrowType) request(t testing.TB, b arrow.RecordBatch) *storagepb.AppendRowsRequest {
	t.Helper()
	p, err := ipc.GetRecordBatchPayload(b, a.options...)
	return &storagepb.AppendRowsRequest{Rows: &storagepb.AppendRowsRequest_ArrowRows{ArrowRows: &storagepb.AppendRowsRequest_ArrowData{
		Rows: &storagepb.ArrowRecordBatch{SerializedRecordBatch: bare(t, p, err)},
	}}}
}

func TestArrowRows(t *testing.T) {
	bq := start(t, localbq.Config{})
	c := writeClient(t, bq)
	people := arrowOf(optional("ID", arrow.PrimitiveTypes.Int64), optional("s", arrow.BinaryTypes.String))
	table := func(t *testing.T, name string) string {
		t.Helper()
		makeTable(t, bq, name, column("id", "INTEGER"), &bqapi.TableFieldSchema{Name: "s", Type: "STRING", MaxLength: 3},
			&bqapi.TableFieldSchema{Name: "d", Type: "INTEGER", DefaultValueExpression: "7"})
		return stream(name)
	}

	t.Run("LBQ-65 rows arrive, plain and compressed", func(t *testing.T) {
		s := table(t, "d.rows")
		call := connect(t, c)
		if answer := call.append(people.first(t, s, `{"ID": 1, "s": "a"}, {"ID": 2, "s": null}`)); answer.GetAppendResult().GetOffset() != nil {
			t.Errorf("LBQ-19: answer %v", answer)
		}
		call.append(people.next(t, `{"ID": 3, "s": "c"}`))
		for _, option := range []ipc.Option{ipc.WithLZ4(), ipc.WithZstd()} {
			packed := &arrowType{people.schema, []ipc.Option{option}}
			call.append(packed.next(t, `{"ID": 4, "s": "d"}`))
		}
		wantContents(t, bq, "d.rows", `{"d":7,"id":1,"s":"a"}`, `{"d":7,"id":2,"s":null}`, `{"d":7,"id":3,"s":"c"}`, `{"d":7,"id":4,"s":"d"}`, `{"d":7,"id":4,"s":"d"}`)
	})
	t.Run("LBQ-52 LBQ-54 bad rows", func(t *testing.T) {
		s := table(t, "d.bad")
		call := connect(t, c)
		answer := call.ask(people.first(t, s, `{"ID": 1, "s": "a"}, {"ID": 2, "s": "long"}`))
		if e := answer.GetRowErrors(); len(e) != 1 || e[0].GetIndex() != 1 || e[0].GetCode() != storagepb.RowError_FIELDS_ERROR {
			t.Errorf("row errors %v", e)
		}
		call.append(people.next(t, `{"ID": 1, "s": "a"}`))
		wantContents(t, bq, "d.bad", `{"d":7,"id":1,"s":"a"}`)
	})
	t.Run("LBQ-55 extra field", func(t *testing.T) {
		s := table(t, "d.extra")
		more := arrowOf(optional("id", arrow.PrimitiveTypes.Int64), optional("more", arrow.PrimitiveTypes.Int64))
		call := connect(t, c)
		st := call.refused(more.first(t, s, `{"id": 1, "more": 2}`), codes.InvalidArgument,
			"Input schema has more fields than BigQuery schema, extra fields: 'more' Entity: "+s)
		if code := storageCode(t, st); code != storagepb.StorageError_SCHEMA_MISMATCH_EXTRA_FIELDS {
			t.Errorf("StorageError %v", code)
		}
		call.append(people.first(t, "", `{"ID": 1, "s": null}`)) // LBQ-14: a new schema takes effect at once
	})
	t.Run("LBQ-71 missing values", func(t *testing.T) {
		s := table(t, "d.missing")
		all := arrowOf(optional("id", arrow.PrimitiveTypes.Int64), optional("d", arrow.PrimitiveTypes.Int64))
		call := connect(t, c)
		q := all.first(t, s, `{"id": 1, "d": null}`)
		q.DefaultMissingValueInterpretation = storagepb.AppendRowsRequest_DEFAULT_VALUE
		call.append(q)
		q = all.next(t, `{"id": 2, "d": null}`)
		q.MissingValueInterpretations = map[string]storagepb.AppendRowsRequest_MissingValueInterpretation{"D": storagepb.AppendRowsRequest_NULL_VALUE}
		call.append(q)
		wantContents(t, bq, "d.missing", `{"d":7,"id":1,"s":null}`, `{"d":null,"id":2,"s":null}`)
	})
	t.Run("formats are not mixed on a connection", func(t *testing.T) {
		s := table(t, "d.mixed")
		rows := describe(t, "id int64")
		call := connect(t, c)
		call.append(people.first(t, s, `{"ID": 1, "s": null}`))
		call.ends(rows.first(t, s, "id: 2"), codes.InvalidArgument, "must not mix proto_rows and arrow_rows")
		call = connect(t, c)
		call.append(rows.first(t, s, "id: 3"))
		call.ends(people.first(t, s, `{"ID": 4, "s": null}`), codes.InvalidArgument, "must not mix proto_rows and arrow_rows")
	})
	t.Run("hostile messages", func(t *testing.T) {
		s := table(t, "d.hostile")
		call := connect(t, c)
		good := people.first(t, s, `{"ID": 1, "s": "a"}`)
		batch, schema := good.GetArrowRows().GetRows().GetSerializedRecordBatch(), good.GetArrowRows().GetWriterSchema().GetSerializedSchema()
		good.GetArrowRows().WriterSchema.SerializedSchema = schema[:len(schema)-8]
		call.refused(good, codes.InvalidArgument, "Invalid Arrow schema: ")
		good.GetArrowRows().WriterSchema.SerializedSchema = schema
		for what, b := range map[string][]byte{
			"Invalid Arrow record batch: ": batch[:len(batch)-1], "carries no rows": nil, "of kind schema": schema,
		} {
			good.GetArrowRows().Rows.SerializedRecordBatch = b
			call.refused(good, codes.InvalidArgument, what)
		}
		good.GetArrowRows().Rows.SerializedRecordBatch = batch
		//lint:ignore SA1019 old writers send it
		good.GetArrowRows().Rows.RowCount = 2
		call.refused(good, codes.InvalidArgument, "The row_count of arrow_rows is 2, and the record batch has 1 rows.")
		//lint:ignore SA1019 the same
		good.GetArrowRows().Rows.RowCount = 1
		call.append(good)
		call.refused(people.next(t, ""), codes.InvalidArgument, "carries no rows") // LBQ-66
		wantContents(t, bq, "d.hostile", `{"d":7,"id":1,"s":"a"}`)
	})
	t.Run("LBQ-8 without a writer schema", func(t *testing.T) {
		s := table(t, "d.schemaless")
		q := people.next(t, `{"ID": 1, "s": "a"}`)
		q.WriteStream = s
		connect(t, c).ends(q, codes.InvalidArgument, "must carry a writer schema")
	})
}
