//go:build cgo

package duckdb_test

import (
	"testing"

	bqstorage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestQueriesOfStreams asks what queries see of rows that are not flushed or committed yet. That a query is asked twice also
// shows that a flush and a commit change what its cached result came from.
func TestQueriesOfStreams(t *testing.T) {
	s := start(t)
	s.mustDefine("CREATE SCHEMA d", "CREATE TABLE d.t (id INT64)")
	c, err := bqstorage.NewBigQueryWriteClient(t.Context(), s.GRPCClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const table = "projects/p/datasets/d/tables/t"
	// written makes a stream and appends rows with ids from first on.
	written := func(kind storagepb.WriteStream_Type, first, count uint64) string {
		t.Helper()
		made, err := c.CreateWriteStream(t.Context(), &storagepb.CreateWriteStreamRequest{Parent: table, WriteStream: &storagepb.WriteStream{Type: kind}})
		if err != nil {
			t.Fatal(err)
		}
		call, err := c.AppendRows(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows := &storagepb.ProtoRows{}
		for id := first; id < first+count; id++ {
			rows.SerializedRows = append(rows.SerializedRows, protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), id))
		}
		err = call.Send(&storagepb.AppendRowsRequest{WriteStream: made.GetName(), Rows: &storagepb.AppendRowsRequest_ProtoRows{ProtoRows: &storagepb.AppendRowsRequest_ProtoData{
			WriterSchema: &storagepb.ProtoSchema{ProtoDescriptor: &descriptorpb.DescriptorProto{Name: new("Row"), Field: []*descriptorpb.FieldDescriptorProto{{
				Name: new("id"), Number: new(int32(1)), Type: descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			}}}},
			Rows: rows,
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := call.Recv(); err != nil || answer.GetError() != nil {
			t.Fatal(answer, err)
		}
		if err := call.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := call.Recv(); err == nil {
			t.Error("the call goes on")
		}
		return made.GetName()
	}
	const ids = "SELECT id FROM d.t ORDER BY id"
	t.Run("LBQ-31 LBQ-32 a query sees what is flushed", func(t *testing.T) {
		name := written(storagepb.WriteStream_BUFFERED, 0, 5)
		s.wantQuery(ids, "")
		if _, err := c.FlushRows(t.Context(), &storagepb.FlushRowsRequest{WriteStream: name, Offset: wrapperspb.Int64(2)}); err != nil {
			t.Fatal(err)
		}
		s.wantQuery(ids, "0\n1\n2")
	})
	t.Run("LBQ-43 a query sees what is committed", func(t *testing.T) {
		name := written(storagepb.WriteStream_PENDING, 10, 2)
		s.wantQuery(ids, "0\n1\n2")
		if _, err := c.FinalizeWriteStream(t.Context(), &storagepb.FinalizeWriteStreamRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
		s.wantQuery(ids, "0\n1\n2")
		done, err := c.BatchCommitWriteStreams(t.Context(), &storagepb.BatchCommitWriteStreamsRequest{Parent: table, WriteStreams: []string{name}})
		if err != nil || done.GetCommitTime() == nil {
			t.Fatal(done, err)
		}
		s.wantQuery(ids, "0\n1\n2\n10\n11")
	})
}
