package storageread

import (
	"fmt"
	"sync"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// codec decodes responses of ReadRows without copying their rows, which are nearly all of them: they stay where the response was put
// together. That memory is used again when who got the rows gives it back. On the wire it is protobuf.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("read: cannot send a %T", v)
	}
	b, err := proto.Marshal(m)
	return mem.BufferSlice{mem.SliceBuffer(b)}, err
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	resp, ok := v.(*storagepb.ReadRowsResponse)
	if !ok {
		return fmt.Errorf("read: cannot receive a %T", v)
	}
	buf := takeBuffer(data.Len())
	data.CopyTo(buf)
	return decodeResponse(buf, resp)
}

// Numbers of fields (storage.proto, ReadRowsResponse; avro.proto, AvroRows; arrow.proto, ArrowRecordBatch).
const (
	avroRowsField   = 3
	arrowBatchField = 4
	serializedField = 1
)

// decodeResponse decodes everything but the rows as usual, and has the rows share data.
func decodeResponse(data []byte, resp *storagepb.ReadRowsResponse) error {
	var rest, rows []byte
	var field protowire.Number // the one that holds the rows
	for left := data; len(left) > 0; {
		number, kind, tag := protowire.ConsumeTag(left)
		if tag < 0 {
			return protowire.ParseError(tag)
		}
		size := protowire.ConsumeFieldValue(number, kind, left[tag:])
		if size < 0 {
			return protowire.ParseError(size)
		}
		whole := left[:tag+size]
		left = left[tag+size:]
		if kind != protowire.BytesType || number != avroRowsField && number != arrowBatchField {
			rest = append(rest, whole...)
			continue
		}
		message, _ := protowire.ConsumeBytes(whole[tag:])
		if field != number { // of the two, the last counts; one that comes again adds to the one before
			field, rows = number, nil
		}
		var err error
		if rows, err = serialized(message, rows); err != nil {
			return err
		}
	}
	if err := proto.Unmarshal(rest, resp); err != nil {
		return err
	}
	switch field {
	case avroRowsField:
		resp.Rows = &storagepb.ReadRowsResponse_AvroRows{AvroRows: &storagepb.AvroRows{SerializedBinaryRows: rows}}
	case arrowBatchField:
		resp.Rows = &storagepb.ReadRowsResponse_ArrowRecordBatch{ArrowRecordBatch: &storagepb.ArrowRecordBatch{SerializedRecordBatch: rows}}
	}
	return nil
}

// serialized is the field that AvroRows and ArrowRecordBatch have alike, rows when it is not there. The other, a count of rows, is
// one of the response too.
func serialized(message, rows []byte) ([]byte, error) {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return nil, protowire.ParseError(tag)
		}
		size := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		if number == serializedField && kind == protowire.BytesType {
			rows, _ = protowire.ConsumeBytes(message[tag:])
		}
		message = message[tag+size:]
	}
	return rows, nil
}

// spare are buffers that nobody uses, as *[]byte.
var spare sync.Pool

// takeBuffer is a buffer of that length, with anything in it.
func takeBuffer(n int) []byte {
	if b, ok := spare.Get().(*[]byte); ok && cap(*b) >= n && cap(*b) <= 4*max(n, 1<<20) {
		return (*b)[:n]
	}
	return make([]byte, n, n+n/16+4096) // what comes back begins behind the header of a message, each time
}

// giveBuffer takes back a buffer, or a part of it.
func giveBuffer(b []byte) {
	if b = b[:0]; cap(b) > 0 {
		spare.Put(&b)
	}
}
