package localbq_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	bqapi "google.golang.org/api/bigquery/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/internal/hostile"
)

// What a request that claims much and holds little may cost, client and server together: a small fraction of what it claims.
const modest = 64 << 20

const gibibyte = 1 << 30

// deep is how deep hostile input nests.
const deep = 10_000

// sized is a length-delimited field whose length says size, followed by content.
func sized(number protowire.Number, size uint64, content string) []byte {
	b := protowire.AppendTag(nil, number, protowire.BytesType)
	return append(protowire.AppendVarint(b, size), content...)
}

// raw is a request of rows as they are.
func raw(stream string, r *rowType, rows ...[]byte) *storagepb.AppendRowsRequest {
	return &storagepb.AppendRowsRequest{WriteStream: stream, Rows: &storagepb.AppendRowsRequest_ProtoRows{ProtoRows: &storagepb.AppendRowsRequest_ProtoData{
		WriterSchema: &storagepb.ProtoSchema{ProtoDescriptor: r.proto}, Rows: &storagepb.ProtoRows{SerializedRows: rows},
	}}}
}

// refusedRow sends rows of which the one of that index is bad: nothing is written.
func (c *call) refusedRow(q *storagepb.AppendRowsRequest, index int64, message string) {
	c.t.Helper()
	r := c.ask(q)
	e := r.GetRowErrors()
	if codes.Code(r.GetError().GetCode()) != codes.InvalidArgument || len(e) != 1 || e[0].Index != index || !strings.Contains(e[0].Message, message) {
		c.t.Errorf("got %v %v, want row error %d %q", r.GetError(), e, index, message)
	}
}

const notProto = "The row could not be parsed: the bytes are not a valid protocol buffer message."

func TestHostileRows(t *testing.T) {
	bq := start(t, localbq.Config{})
	c := writeClient(t, bq)
	row := describe(t, "id int64", "s string")
	table := func(t *testing.T, name string) string {
		t.Helper()
		makeTable(t, bq, name, column("id", "INTEGER"), column("s", "STRING"))
		return stream(name)
	}

	t.Run("a 1 GiB length prefix in a row", func(t *testing.T) {
		s := table(t, "d.prefix")
		hostile.Allocates(t, modest, func() {
			open := connect(t, c)
			good := row.rows(t, `id: 1 s: "x"`)[0]
			open.refusedRow(raw(s, row, good, sized(2, gibibyte, "x"), good), 1, notProto)
			open.refusedRow(raw(s, row, sized(77, gibibyte, "")), 0, notProto) // a field that nobody knows
			open.append(raw(s, row, good))
		})
		wantContents(t, bq, "d.prefix", `{"id":1,"s":"x"}`)
	})
	t.Run("a 1 GiB length prefix in a request", func(t *testing.T) {
		hostile.Allocates(t, modest, func() {
			for name, message := range map[string][]byte{"proto_rows": sized(4, gibibyte, "x"), "writer_schema": sized(4, 6, string(sized(1, gibibyte, ""))), "trace_id": sized(6, gibibyte, "x")} {
				if code, text := frame(t, bq, uint32(len(message)), message); code != codes.Internal || !strings.Contains(text, "not a valid protocol buffer message") {
					t.Errorf("%s: %s %q, want Internal", name, code, text)
				}
			}
		})
	})
	t.Run("a 1 GiB length prefix of a gRPC message", func(t *testing.T) {
		hostile.Allocates(t, modest, func() {
			if code, text := frame(t, bq, gibibyte, []byte("x")); code != codes.ResourceExhausted || !strings.Contains(text, "larger than max") {
				t.Errorf("%s %q, want ResourceExhausted", code, text)
			}
		})
	})
	t.Run("a 1 GiB length prefix in Arrow rows", func(t *testing.T) {
		s := table(t, "d.arrow")
		for name, options := range map[string][]ipc.Option{"plain": nil, "lz4": {ipc.WithLZ4()}, "zstd": {ipc.WithZstd()}} {
			people := arrowOf(optional("id", arrow.PrimitiveTypes.Int64), optional("s", arrow.BinaryTypes.String))
			people.options = options
			q := people.first(t, s, `{"id": 1, "s": "`+strings.Repeat("x", 1000)+`"}`)
			whole := q.GetArrowRows().GetRows().GetSerializedRecordBatch()
			refused := 0
			hostile.Allocates(t, modest, func() {
				for at := 0; at+8 <= len(whole); at += 4 { // each length there is, among others
					hurt := bytes.Clone(whole)
					binary.LittleEndian.PutUint64(hurt[at:], gibibyte)
					q.GetArrowRows().GetRows().SerializedRecordBatch = hurt
					if r := connect(t, c).ask(q); r.GetError() != nil {
						refused++
						wantCode(t, r, codes.InvalidArgument)
					}
				}
			})
			if refused < 10 {
				t.Errorf("%s: %d of %d were refused", name, refused, len(whole)/4)
			}
		}
	})
	t.Run("Arrow rows that unpack to 1 GiB", func(t *testing.T) {
		s := table(t, "d.bomb")
		text := strings.Repeat("x", 251<<20)
		for name, option := range map[string]ipc.Option{"lz4": ipc.WithLZ4(), "zstd": ipc.WithZstd()} {
			people := arrowOf(optional("id", arrow.PrimitiveTypes.Int64), optional("s", arrow.BinaryTypes.String))
			people.options = []ipc.Option{option}
			b := array.NewRecordBuilder(memory.DefaultAllocator, people.schema)
			b.Field(0).(*array.Int64Builder).Append(1)
			b.Field(1).(*array.StringBuilder).Append(text)
			q := people.toStream(t, s, people.request(t, b.NewRecordBatch()))
			hostile.Allocates(t, 4*modest, func() {
				connect(t, c).refused(q, codes.InvalidArgument, "the buffers take more than 251658240 bytes uncompressed")
			})
			if size := proto.Size(q); size > 2<<20 {
				t.Errorf("%s: the request has %d bytes, want few", name, size)
			}
		}
	})
	t.Run("rows of nothing in a table of many columns", func(t *testing.T) {
		var columns []*bqapi.TableFieldSchema
		for i := range 1000 {
			columns = append(columns, column(fmt.Sprintf("c%d", i), "INTEGER"))
		}
		makeTable(t, bq, "d.wide", columns...)
		wide := describe(t, "c0 int64")
		q := raw(stream("d.wide"), wide, make([][]byte, 1<<20)...)
		batch := arrowOf(optional("c0", arrow.PrimitiveTypes.Int64)).first(t, stream("d.wide"), strings.Repeat("{},", 1<<18)+"{}")
		hostile.Allocates(t, 4*modest, func() {
			connect(t, c).refused(q, codes.InvalidArgument, "AppendRows request too large: 1048576 rows of 1000 columns")
			connect(t, c).refused(batch, codes.InvalidArgument, "AppendRows request too large: 262145 rows of 1000 columns")
		})
		q.GetProtoRows().GetRows().SerializedRows = make([][]byte, 100)
		connect(t, c).append(q)
	})
	t.Run("10,000 nested messages in a row", func(t *testing.T) {
		s := table(t, "d.nested")
		nested := func(number protowire.Number) []byte {
			var b []byte
			for range deep {
				b = append(sized(number, uint64(len(b)), ""), b...)
			}
			return b
		}
		groups := func(n int) []byte {
			return append(bytes.Repeat(protowire.AppendTag(nil, 9, protowire.StartGroupType), n), bytes.Repeat(protowire.AppendTag(nil, 9, protowire.EndGroupType), n)...)
		}
		unknown, member := nested(9), nested(1)
		hostile.Allocates(t, modest, func() {
			open := connect(t, c)
			open.append(raw(s, row, unknown, groups(deep)))            // fields that nobody knows are passed over
			open.refusedRow(raw(s, row, groups(10*deep)), 0, notProto) // a group has to be walked for that
			open.append(raw(s, row, row.rows(t, `id: 1`)...))
		})
		node := &descriptorpb.DescriptorProto{Name: new("Row"), Field: []*descriptorpb.FieldDescriptorProto{{
			Name: new("r"), Number: new(int32(1)), Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), TypeName: new(".Row.R"),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}}, NestedType: []*descriptorpb.DescriptorProto{{Name: new("R"), Field: []*descriptorpb.FieldDescriptorProto{{
			Name: new("n"), Number: new(int32(1)), Type: descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}}}}}
		record := column("r", "RECORD")
		record.Fields = append(record.Fields, column("n", "INTEGER"))
		makeTable(t, bq, "d.record", record)
		hostile.Allocates(t, modest, func() {
			// The member is a number, and these bytes are no number: unknown to the member, and passed over.
			connect(t, c).append(raw(stream("d.record"), &rowType{proto: node}, member))
		})
	})
	t.Run("a cyclic descriptor", func(t *testing.T) {
		field := func(name, typ string, number int32) *descriptorpb.FieldDescriptorProto {
			return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), TypeName: &typ, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
		}
		r := column("r", "RECORD")
		r.Fields = append(r.Fields, column("r", "RECORD"))
		r.Fields[0].Fields = append(r.Fields[0].Fields, column("r", "RECORD"))
		r.Fields[0].Fields[0].Fields = append(r.Fields[0].Fields[0].Fields, column("n", "INTEGER"))
		makeTable(t, bq, "d.cyclic", r)
		makeTable(t, bq, "d.flat", column("r", "INTEGER"))
		itself := &descriptorpb.DescriptorProto{Name: new("Row"), Field: []*descriptorpb.FieldDescriptorProto{field("r", ".Row", 1)}}
		others := &descriptorpb.DescriptorProto{Name: new("Row"), Field: []*descriptorpb.FieldDescriptorProto{field("r", ".Row.A", 1)}, NestedType: []*descriptorpb.DescriptorProto{
			{Name: new("A"), Field: []*descriptorpb.FieldDescriptorProto{field("r", ".Row.B", 1)}}, {Name: new("B"), Field: []*descriptorpb.FieldDescriptorProto{field("r", ".Row.A", 1)}},
		}}
		hostile.Allocates(t, modest, func() {
			for _, d := range []*descriptorpb.DescriptorProto{itself, others} {
				connect(t, c).refused(raw(stream("d.cyclic"), &rowType{proto: d}, nil), codes.InvalidArgument, " contains itself.")
				connect(t, c).refused(raw(stream("d.flat"), &rowType{proto: d}, nil), codes.InvalidArgument, "The proto field mismatched with BigQuery field at flat.r")
			}
		})
	})
	t.Run("10,000 nested messages in a descriptor", func(t *testing.T) {
		s := table(t, "d.declared")
		d := &descriptorpb.DescriptorProto{Name: new("R")}
		for range deep/4 - 1 { // what the protobuf library of the client itself still sends
			d = &descriptorpb.DescriptorProto{Name: new("R"), NestedType: []*descriptorpb.DescriptorProto{d}}
		}
		hostile.Allocates(t, 4*modest, func() {
			connect(t, c).refused(raw(s, &rowType{proto: d}, nil), codes.InvalidArgument, "messages are declared more than 64 deep")
		})
		// Bytes of a descriptor that nests deeper than the library reads.
		var b []byte
		for range deep + 1 {
			b = append(sized(3, uint64(len(b)), ""), b...)
		}
		m := protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), b)))
		m = append(protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), s), m...)
		hostile.Allocates(t, 4*modest, func() {
			if code, text := frame(t, bq, uint32(len(m)), m); code != codes.InvalidArgument {
				t.Errorf("%s %q, want InvalidArgument", code, text)
			}
		})
	})
	t.Run("10,000 nested messages in a JSON value", func(t *testing.T) {
		makeTable(t, bq, "d.json", column("s", "JSON"))
		json := describe(t, "s string")
		hostile.Allocates(t, modest, func() {
			open := connect(t, c)
			for _, text := range []string{strings.Repeat("[", deep) + strings.Repeat("]", deep), strings.Repeat(`{"a":`, deep) + "1" + strings.Repeat("}", deep)} {
				open.refusedRow(raw(stream("d.json"), json, protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), text)), 0, "500")
			}
		})
	})
	t.Run("10,000 nested messages in a geography", func(t *testing.T) {
		makeTable(t, bq, "d.geography", column("s", "GEOGRAPHY"))
		text := describe(t, "s string")
		hostile.Allocates(t, modest, func() {
			open := connect(t, c)
			for _, s := range []string{
				strings.Repeat("GEOMETRYCOLLECTION(", deep) + "POINT(1 1)" + strings.Repeat(")", deep),
				strings.Repeat(`{"type":"GeometryCollection","geometries":[`, deep) + strings.Repeat("]}", deep),
			} {
				open.refusedRow(raw(stream("d.geography"), text, protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), s)), 0, "")
			}
		})
	})
}

func wantCode(t testing.TB, r *storagepb.AppendRowsResponse, code codes.Code) {
	t.Helper()
	if got := codes.Code(r.GetError().GetCode()); got != code {
		t.Errorf("got %v, want %s", r.GetError(), code)
	}
}

// frame sends an AppendRows call of one gRPC message as bytes: the length that its prefix says, and what follows. It answers
// the status, or the one in the first response.
func frame(t testing.TB, bq *localbq.Instance, length uint32, message []byte) (codes.Code, string) {
	t.Helper()
	body := append(binary.BigEndian.AppendUint32([]byte{0}, length), message...)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	q, err := http.NewRequestWithContext(context.Background(), "POST", "http://"+bq.GRPC()+"/google.cloud.bigquery.storage.v1.BigQueryWrite/AppendRows", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/grpc")
	q.Header.Set("TE", "trailers")
	r, err := transport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	out, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) > 5 {
		var answer storagepb.AppendRowsResponse
		if err := proto.Unmarshal(out[5:], &answer); err != nil {
			t.Fatal(err)
		}
		return codes.Code(answer.GetError().GetCode()), answer.GetError().GetMessage()
	}
	var code codes.Code
	status, text := r.Trailer.Get("Grpc-Status"), r.Trailer.Get("Grpc-Message")
	if status == "" {
		status, text = r.Header.Get("Grpc-Status"), r.Header.Get("Grpc-Message")
	}
	if _, err := fmt.Sscan(status, (*uint32)(&code)); err != nil {
		t.Fatalf("no status: %v %v", r.Header, r.Trailer)
	}
	return code, text
}
