package writeapi

import (
	"bytes"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/localbq/internal/decode"
	"github.com/millrace-dev/millrace/localbq/internal/hostile"
)

// sample is a request with every field set.
func sample() *storagepb.AppendRowsRequest {
	return &storagepb.AppendRowsRequest{
		WriteStream: "projects/p/datasets/d/tables/t/streams/_default", Offset: wrapperspb.Int64(5), TraceId: "trace",
		Rows: &storagepb.AppendRowsRequest_ProtoRows{ProtoRows: &storagepb.AppendRowsRequest_ProtoData{
			WriterSchema: &storagepb.ProtoSchema{ProtoDescriptor: &descriptorpb.DescriptorProto{Name: new("Row")}},
			Rows:         &storagepb.ProtoRows{SerializedRows: [][]byte{[]byte("one"), {}, []byte("three")}},
		}},
		MissingValueInterpretations: map[string]storagepb.AppendRowsRequest_MissingValueInterpretation{
			"a": storagepb.AppendRowsRequest_DEFAULT_VALUE, "b": storagepb.AppendRowsRequest_NULL_VALUE,
		},
		DefaultMissingValueInterpretation: storagepb.AppendRowsRequest_DEFAULT_VALUE,
	}
}

// sameAs compares a request read in place with what the library made of the same bytes.
func sameAs(t *testing.T, r *request, want *storagepb.AppendRowsRequest) {
	t.Helper()
	rows := want.GetProtoRows().GetRows().GetSerializedRows()
	if r.stream != want.GetWriteStream() || r.traceID != want.GetTraceId() || r.missing != want.GetDefaultMissingValueInterpretation() ||
		len(r.rows) != len(rows) || len(r.columns) != len(want.GetMissingValueInterpretations()) {
		t.Fatalf("got %+v, want %v", r, want)
	}
	for i := range rows {
		if !bytes.Equal(r.rows[i], rows[i]) {
			t.Fatalf("row %d: %q, want %q", i, r.rows[i], rows[i])
		}
	}
	for column, policy := range want.GetMissingValueInterpretations() {
		if got, ok := r.columns[column]; !ok || (got == decode.MissingDefault) != (policy == storagepb.AppendRowsRequest_DEFAULT_VALUE) {
			t.Fatalf("column %q: %v, want %v", column, got, policy)
		}
	}
	if (r.offset != nil) != (want.GetOffset() != nil) || r.offset != nil && *r.offset != want.GetOffset().GetValue() {
		t.Fatalf("offset %v, want %v", r.offset, want.GetOffset())
	}
	if r.schemaSent != (want.GetProtoRows().GetWriterSchema() != nil) {
		t.Fatalf("writer schema sent: %v, want %v", r.schemaSent, want.GetProtoRows().GetWriterSchema())
	}
	d := &descriptorpb.DescriptorProto{}
	if err := proto.Unmarshal(r.descriptor, d); err != nil || r.schemaSent && !proto.Equal(d, nonNil(want)) {
		t.Fatalf("descriptor %v, %v, want %v", d, err, want.GetProtoRows().GetWriterSchema())
	}
}

func sameArrow(t *testing.T, r *request, want *storagepb.AppendRowsRequest) {
	t.Helper()
	rows := want.GetArrowRows()
	//lint:ignore SA1019 it is read, and must be read rightly
	if count := rows.GetRows().GetRowCount(); r.batchRows != count || !bytes.Equal(r.batch, rows.GetRows().GetSerializedRecordBatch()) {
		t.Fatalf("batch % x of %d rows, want %v", r.batch, r.batchRows, rows.GetRows())
	}
	if r.schemaSent != (rows.GetWriterSchema() != nil) || !bytes.Equal(r.descriptor, rows.GetWriterSchema().GetSerializedSchema()) {
		t.Fatalf("schema % x, want %v", r.descriptor, rows.GetWriterSchema())
	}
}

func nonNil(q *storagepb.AppendRowsRequest) *descriptorpb.DescriptorProto {
	if d := q.GetProtoRows().GetWriterSchema().GetProtoDescriptor(); d != nil {
		return d
	}
	return &descriptorpb.DescriptorProto{}
}

func TestRequest(t *testing.T) {
	want := sample()
	b, err := proto.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]mem.BufferSlice{
		"in one buffer": {mem.SliceBuffer(b)}, "in pieces": {mem.SliceBuffer(b[:7]), mem.SliceBuffer(b[7:40]), mem.SliceBuffer(b[40:])},
	} {
		t.Run(name, func(t *testing.T) {
			r := &request{}
			if err := Codec().Unmarshal(data, r); err != nil {
				t.Fatal(err)
			}
			if !r.proto || r.arrow || r.size != int64(len(b)) {
				t.Errorf("got %+v", r)
			}
			sameAs(t, r, want)
			r.free()
		})
	}
	t.Run("other messages go to the ordinary codec", func(t *testing.T) {
		got := &storagepb.AppendRowsRequest{}
		if err := Codec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, got); err != nil || !proto.Equal(got, want) {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("a request cut off is refused", func(t *testing.T) {
		r := &request{}
		if err := r.parse(b[:len(b)-1]); err == nil {
			t.Error("accepted")
		}
	})
}

// A descriptor in a hundred thousand parts costs no more than its bytes do.
func TestDescriptorInParts(t *testing.T) {
	part := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte("ab"))
	data := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), bytes.Repeat(part, 100_000))
	in := protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), data)
	kept := bytes.Clone(in)
	var r request
	hostile.Proportional(t, len(in), 64, 1<<20, func() {
		if err := r.parse(in); err != nil {
			t.Fatal(err)
		}
	})
	if want := strings.Repeat("ab", 100_000); string(r.descriptor) != want || !bytes.Equal(in, kept) {
		t.Errorf("%d bytes of descriptor, the request changed: %v", len(r.descriptor), !bytes.Equal(in, kept))
	}
}

// FuzzRequest compares with the library on any bytes of proto rows that it takes.
func FuzzRequest(f *testing.F) {
	b, err := proto.Marshal(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), []byte("\x0a\x01x"))))
	arrow := sample()
	arrow.Rows = &storagepb.AppendRowsRequest_ArrowRows{ArrowRows: &storagepb.AppendRowsRequest_ArrowData{
		WriterSchema: &storagepb.ArrowSchema{SerializedSchema: []byte("schema")},
		//lint:ignore SA1019 old writers send row_count
		Rows: &storagepb.ArrowRecordBatch{SerializedRecordBatch: []byte("batch"), RowCount: 3},
	}}
	if b, err = proto.Marshal(arrow); err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &request{}
		var err error
		hostile.Proportional(t, len(b), 64, 1<<16, func() { err = r.parse(b) })
		want := &storagepb.AppendRowsRequest{}
		if proto.Unmarshal(b, want) != nil || len(want.ProtoReflect().GetUnknown()) > 0 {
			return // the library also checks what lies deeper, and UTF-8
		}
		if err != nil {
			t.Fatalf("% x: refused, the library says %v", b, want)
		}
		if r.arrow && r.proto {
			return // refused before it matters
		}
		if r.arrow {
			sameArrow(t, r, want)
			return
		}
		sameAs(t, r, want)
	})
}
