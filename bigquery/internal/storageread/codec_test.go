package storageread

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/mem"
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
		var want storagepb.ReadRowsResponse
		var got response
		wrong, err := proto.Unmarshal(data, &want), codec{}.Unmarshal(buffersOf(bytes.Clone(data), 1+len(data)%5), &got)
		if wrong != nil {
			return // counts of rows within rows are not looked at
		}
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		if want.RowCount != got.RowCount || want.GetUncompressedByteSize() != got.GetUncompressedByteSize() || !proto.Equal(want.GetStats(), got.GetStats()) ||
			!bytes.Equal(append(want.GetAvroRows().GetSerializedBinaryRows(), want.GetArrowRecordBatch().GetSerializedRecordBatch()...), got.rows.Materialize()) {
			t.Errorf("want %v, got %v, %q", &want, got.ReadRowsResponse, got.rows.Materialize())
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

// TestBuffersAreShared: rows keep the buffers that they lie in and no others, until they are freed.
func TestBuffersAreShared(t *testing.T) {
	pool := &countingPool{}
	message, err := proto.Marshal(avroResponse(bytes.Repeat([]byte("row "), 5000), 5000))
	if err != nil {
		t.Fatal(err)
	}
	var data mem.BufferSlice
	for part := range slices.Chunk(append(make([]byte, 4096), message...), 4096) {
		b := bytes.Clone(part)
		data = append(data, mem.NewBuffer(&b, pool))
	}
	data[0].Free() // a header, say
	var got response
	if err := (codec{}).Unmarshal(data[1:], &got); err != nil {
		t.Fatal(err)
	}
	data[1:].Free()
	if pool.back != 1 {
		t.Errorf("%d buffers came back", pool.back)
	}
	if s := string(got.rows.Materialize()); s != strings.Repeat("row ", 5000) {
		t.Errorf("%q", s)
	}
	Block{received: got.rows}.Free()
	if pool.back != len(data) {
		t.Errorf("%d buffers of %d came back", pool.back, len(data))
	}
}

type countingPool struct{ back int }

func (p *countingPool) Get(n int) *[]byte { b := make([]byte, n); return &b }
func (p *countingPool) Put(*[]byte)       { p.back++ }
