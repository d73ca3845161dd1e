package storagewrite

import (
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// frame is an AppendRowsRequest that is encoded already: a header made for this request and the rows of a batch.
type frame struct {
	header []byte
	rows   *rowBuffer
}

// codec lets frames through as they are and decodes answers as usual. On the wire it is protobuf.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("append: cannot send a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(f.header), f.rows.shared()}, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	return proto.Unmarshal(buf.ReadOnlyData(), v.(proto.Message))
}
