//go:build cgo

package duckdb_test

import (
	"testing"

	bqstorage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// writer is an append connection to a default stream, whose rows have the columns of its descriptor, all of them integers.
type writer struct {
	*testing.T
	call    storagepb.BigQueryWrite_AppendRowsClient
	first   *storagepb.AppendRowsRequest
	columns int
}

func (s *service) writer(c *bqstorage.BigQueryWriteClient, table string, columns ...string) *writer {
	s.Helper()
	call, err := c.AppendRows(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = call.CloseSend() })
	d := &descriptorpb.DescriptorProto{Name: new("Row")}
	for i, name := range columns {
		d.Field = append(d.Field, &descriptorpb.FieldDescriptorProto{
			Name: new(name), Number: new(int32(i + 1)), Type: descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		})
	}
	first := &storagepb.AppendRowsRequest{WriteStream: "projects/p/datasets/d/tables/" + table + "/streams/_default"}
	first.Rows = &storagepb.AppendRowsRequest_ProtoRows{ProtoRows: &storagepb.AppendRowsRequest_ProtoData{WriterSchema: &storagepb.ProtoSchema{ProtoDescriptor: d}}}
	return &writer{s.T, call, first, len(columns)}
}

// append sends a row with value v in all columns.
func (w *writer) append(v int64) *storagepb.AppendRowsResponse {
	w.Helper()
	var row []byte
	for i := range w.columns {
		row = protowire.AppendVarint(protowire.AppendTag(row, protowire.Number(i+1), protowire.VarintType), uint64(v))
	}
	q := proto.CloneOf(w.first)
	q.GetProtoRows().Rows = &storagepb.ProtoRows{SerializedRows: [][]byte{row}}
	if err := w.call.Send(q); err != nil {
		w.Fatal(err)
	}
	r, err := w.call.Recv()
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// TestOpenConnectionsAfterDDL: a column that DDL drops or renames is an extra field to whoever writes it, and nothing to others.
// Every open connection is told of the schema once, with whatever it is answered next.
func TestOpenConnectionsAfterDDL(t *testing.T) {
	for _, c := range []struct{ name, sql, columns, rows string }{
		{"DROP COLUMN", "ALTER TABLE d.t DROP COLUMN b", "a", `[("1"),("1"),("2"),("4")]`},
		{"RENAME COLUMN", "ALTER TABLE d.t RENAME COLUMN b TO c", "a c", `[("1"),("1"),("2"),("4")]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t)
			s.must("CREATE SCHEMA d", "CREATE TABLE d.t (a INT64, b INT64)")
			client, err := bqstorage.NewBigQueryWriteClient(t.Context(), s.GRPCClientOptions()...)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			narrow, wide := s.writer(client, "t", "a"), s.writer(client, "t", "a", "b")
			for _, w := range []*writer{narrow, wide} {
				if r := w.append(1); r.GetError() != nil || r.GetUpdatedSchema() != nil {
					t.Fatalf("before: %v", r)
				}
			}
			s.must(c.sql)
			names := func(r *storagepb.AppendRowsResponse) (out string) {
				for i, f := range r.GetUpdatedSchema().GetFields() {
					if i > 0 {
						out += " "
					}
					out += f.GetName()
				}
				return out
			}
			if r := narrow.append(2); r.GetError() != nil || names(r) != c.columns {
				t.Errorf("without the column: %v", r)
			}
			if r := wide.append(3); codes.Code(r.GetError().GetCode()) != codes.InvalidArgument || names(r) != c.columns {
				t.Errorf("with the column: %v", r)
			}
			if r := narrow.append(4); r.GetError() != nil || r.GetUpdatedSchema() != nil {
				t.Errorf("told twice: %v", r)
			}
			if got := s.rowsOf("SELECT a FROM d.t ORDER BY a"); got != c.rows {
				t.Errorf("rows %s, want %s", got, c.rows)
			}
		})
	}
}
