package localbq_test

import (
	"context"
	"strings"
	"testing"

	storage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/apache/arrow-go/v18/arrow/array"
	"go.uber.org/goleak"
	bqapi "google.golang.org/api/bigquery/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/localbq"
)

func TestMain(m *testing.M) {
	if serveAsChild() {
		return
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"), // the official clients' metrics
		// The official client cancels abandoned calls this way, 20 s after it has opened others.
		goleak.IgnoreAnyFunction("cloud.google.com/go/bigquery/storage/managedwriter.(*connection).getStream.func1"),
	)
}

// start starts an instance with datasets made on the way, and closes it behind the test.
func start(t testing.TB, c localbq.Config) *localbq.Instance {
	t.Helper()
	c.AutoCreateDataset = true
	bq, err := localbq.Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bq.Close(); err != nil {
			t.Error(err)
		}
	})
	return bq
}

// column is a column of a table: a name, a type, and a mode where it is not NULLABLE.
func column(name, typ string, mode ...string) *bqapi.TableFieldSchema {
	return &bqapi.TableFieldSchema{Name: name, Type: typ, Mode: strings.Join(mode, "")}
}

func makeTable(t testing.TB, bq *localbq.Instance, table string, columns ...*bqapi.TableFieldSchema) {
	t.Helper()
	if err := bq.CreateTable(table, &bqapi.TableSchema{Fields: columns}); err != nil {
		t.Fatal(err)
	}
}

// stream is the name of a table's default stream.
func stream(table string) string { return path(table) + "/streams/_default" }

func path(table string) string {
	dataset, id, _ := strings.Cut(table, ".")
	return "projects/" + localbq.DefaultProject + "/datasets/" + dataset + "/tables/" + id
}

// rowType is a writer's descriptor, and writes rows of it.
type rowType struct {
	proto   *descriptorpb.DescriptorProto
	message protoreflect.MessageDescriptor
}

// describe makes a rowType of fields such as "id int64", "tags repeated string".
func describe(t testing.TB, fields ...string) *rowType {
	t.Helper()
	d := &descriptorpb.DescriptorProto{Name: new("Row")}
	for i, f := range fields {
		words := strings.Fields(f)
		kind, ok := descriptorpb.FieldDescriptorProto_Type_value["TYPE_"+strings.ToUpper(words[len(words)-1])]
		if !ok {
			t.Fatalf("field %q: no such kind", f)
		}
		label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		if len(words) == 3 {
			label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		}
		d.Field = append(d.Field, &descriptorpb.FieldDescriptorProto{
			Name: &words[0], Number: new(int32(i + 1)), Type: new(descriptorpb.FieldDescriptorProto_Type(kind)), Label: &label,
		})
	}
	return &rowType{d, official(t, d)}
}

func official(t testing.TB, d *descriptorpb.DescriptorProto) protoreflect.MessageDescriptor {
	t.Helper()
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{Name: new("row.proto"), MessageType: []*descriptorpb.DescriptorProto{d}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().Get(0)
}

// rows encodes rows written as text.
func (r *rowType) rows(t testing.TB, texts ...string) [][]byte {
	t.Helper()
	var out [][]byte
	for _, text := range texts {
		m := dynamicpb.NewMessage(r.message)
		if err := prototext.Unmarshal([]byte(text), m); err != nil {
			t.Fatal(err)
		}
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// first is a request that opens a connection, or a destination on one.
func (r *rowType) first(t testing.TB, stream string, texts ...string) *storagepb.AppendRowsRequest {
	q := r.next(t, texts...)
	q.WriteStream = stream
	q.GetProtoRows().WriterSchema = &storagepb.ProtoSchema{ProtoDescriptor: r.proto}
	return q
}

// next is a request behind the first.
func (r *rowType) next(t testing.TB, texts ...string) *storagepb.AppendRowsRequest {
	return &storagepb.AppendRowsRequest{Rows: &storagepb.AppendRowsRequest_ProtoRows{
		ProtoRows: &storagepb.AppendRowsRequest_ProtoData{Rows: &storagepb.ProtoRows{SerializedRows: r.rows(t, texts...)}},
	}}
}

func at(q *storagepb.AppendRowsRequest, offset int64) *storagepb.AppendRowsRequest {
	q.Offset = wrapperspb.Int64(offset)
	return q
}

// writeClient is the generated client, unmodified.
func writeClient(t testing.TB, bq *localbq.Instance) *storage.BigQueryWriteClient {
	t.Helper()
	c, err := storage.NewBigQueryWriteClient(context.Background(), bq.GRPCClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// call is one AppendRows call.
type call struct {
	t testing.TB
	storagepb.BigQueryWrite_AppendRowsClient
}

// connect opens a call, as a principal if one is given.
func connect(t testing.TB, c *storage.BigQueryWriteClient, principal ...string) *call {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	if len(principal) > 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer local:"+principal[0])
	}
	s, err := c.AppendRows(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &call{t, s}
}

// ask sends a request and returns its answer, and fails the test if the call ends instead.
func (c *call) ask(q *storagepb.AppendRowsRequest) *storagepb.AppendRowsResponse {
	c.t.Helper()
	if err := c.Send(q); err != nil {
		c.t.Fatal(err)
	}
	r, err := c.Recv()
	if err != nil {
		c.t.Fatalf("the call ended: %v", err)
	}
	return r
}

// append is ask of a request that must succeed.
func (c *call) append(q *storagepb.AppendRowsRequest) *storagepb.AppendRowsResponse {
	c.t.Helper()
	r := c.ask(q)
	if r.GetError() != nil || r.GetAppendResult() == nil {
		c.t.Fatalf("refused: %v %v", r.GetError(), r.GetRowErrors())
	}
	return r
}

// refused is ask of a request that must be refused within the call.
func (c *call) refused(q *storagepb.AppendRowsRequest, code codes.Code, message string) *status.Status {
	c.t.Helper()
	s := status.FromProto(c.ask(q).GetError())
	wantStatus(c.t, s, code, message)
	return s
}

// ends is ask of a request that must end the call.
func (c *call) ends(q *storagepb.AppendRowsRequest, code codes.Code, message string) *status.Status {
	c.t.Helper()
	if err := c.Send(q); err != nil {
		c.t.Logf("send: %v", err) // Recv has the status
	}
	r, err := c.Recv()
	if err == nil {
		c.t.Fatalf("answered %v, want the end of the call", r)
	}
	s := status.Convert(err)
	wantStatus(c.t, s, code, message)
	return s
}

// wantStatus compares a status with a code and a part of its message.
func wantStatus(t testing.TB, s *status.Status, code codes.Code, message string) {
	t.Helper()
	if s.Code() != code || !strings.Contains(s.Message(), message) {
		t.Errorf("got %s %q, want %s %q", s.Code(), s.Message(), code, message)
	}
}

// storageCode is the code of the StorageError in a status's details.
func storageCode(t testing.TB, s *status.Status) storagepb.StorageError_StorageErrorCode {
	t.Helper()
	for _, d := range s.Details() {
		if e, ok := d.(*storagepb.StorageError); ok {
			if !strings.HasPrefix(e.GetEntity(), "projects/") || e.GetErrorMessage() != s.Message() {
				t.Errorf("StorageError %v of status %q: the entity is the stream or table, and the message that of the status", e, s.Message())
			}
			return e.GetCode()
		}
	}
	t.Errorf("status %v has no StorageError", s)
	return -1
}

// table is a table's rows as JSON, one object a row.
func contents(t testing.TB, bq *localbq.Instance, table string) string {
	t.Helper()
	batches, err := bq.Batches(table)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, b := range batches {
		if err := array.RecordToJSON(b, &out); err != nil {
			t.Fatal(err)
		}
	}
	return strings.TrimSpace(out.String())
}

func wantContents(t testing.TB, bq *localbq.Instance, table string, rows ...string) {
	t.Helper()
	if got, want := contents(t, bq, table), strings.Join(rows, "\n"); got != want {
		t.Errorf("table %s holds\n%s, want\n%s", table, got, want)
	}
}
