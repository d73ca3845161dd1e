package storageread

import (
	"bytes"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/protobuf/proto"
)

// FuzzResponses holds the decoding of responses to that of the protobuf library.
func FuzzResponses(f *testing.F) {
	for _, r := range []*storagepb.ReadRowsResponse{
		{},
		{RowCount: 3, Rows: &storagepb.ReadRowsResponse_AvroRows{AvroRows: &storagepb.AvroRows{SerializedBinaryRows: []byte("rows")}}},
		{RowCount: 2, UncompressedByteSize: new(int64(7)), Stats: &storagepb.StreamStats{Progress: &storagepb.StreamStats_Progress{AtResponseEnd: 0.5}},
			Rows: &storagepb.ReadRowsResponse_ArrowRecordBatch{ArrowRecordBatch: &storagepb.ArrowRecordBatch{SerializedRecordBatch: []byte("batch")}}},
	} {
		b, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(append(b, b...))
		f.Add(b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want, got storagepb.ReadRowsResponse
		wrong, err := proto.Unmarshal(data, &want), decodeResponse(bytes.Clone(data), &got)
		if wrong != nil {
			return // counts of rows within rows are not looked at
		}
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		if want.RowCount != got.RowCount || want.GetUncompressedByteSize() != got.GetUncompressedByteSize() || !proto.Equal(want.GetStats(), got.GetStats()) ||
			!bytes.Equal(want.GetAvroRows().GetSerializedBinaryRows(), got.GetAvroRows().GetSerializedBinaryRows()) ||
			!bytes.Equal(want.GetArrowRecordBatch().GetSerializedRecordBatch(), got.GetArrowRecordBatch().GetSerializedRecordBatch()) {
			t.Errorf("want %v, got %v", &want, &got)
		}
	})
}

func TestBuffersComeBack(t *testing.T) {
	b := takeBuffer(1 << 20)
	Block{Data: b[50 : 1<<20]}.Free()
	if c := takeBuffer(1 << 20); len(c) != 1<<20 {
		t.Errorf("%d bytes", len(c))
	}
	Block{}.Free()
}
