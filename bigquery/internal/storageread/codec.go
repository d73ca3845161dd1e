package storageread

import (
	"fmt"
	"sync"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// response is one of ReadRows. Its rows, which are nearly all of it, stay in the buffers that the transport received them into, for
// who takes them to copy or to pass on, and to free.
type response struct {
	*storagepb.ReadRowsResponse // without rows
	rows                        mem.BufferSlice
	arrow                       bool // they are a batch of Arrow
}

// codec decodes responses of ReadRows without copying their rows. On the wire it is protobuf.
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
	resp, ok := v.(*response)
	if !ok {
		return fmt.Errorf("read: cannot receive a %T", v)
	}
	return resp.decode(data)
}

// Numbers of fields (storage.proto, ReadRowsResponse; avro.proto, AvroRows; arrow.proto, ArrowRecordBatch).
const (
	avroRowsField   = 3
	arrowBatchField = 4
	serializedField = 1
)

// decode decodes everything but the rows as usual, and has the rows share the buffers.
func (r *response) decode(data mem.BufferSlice) error {
	var rest []byte
	var rows scan
	var format protowire.Number // the field that holds the rows
	for left := newScan(data); left.left > 0; {
		f, err := left.field()
		if err != nil {
			return err
		}
		if f.kind != protowire.BytesType || f.number != avroRowsField && f.number != arrowBatchField {
			rest = left.append(rest, f.head+f.size)
			left.skip(f.head + f.size)
			continue
		}
		left.skip(f.head)
		if format != f.number { // of the two, the last counts; one that comes again adds to the one before
			format, rows = f.number, scan{}
		}
		if err := serialized(left.first(f.size), &rows); err != nil {
			return err
		}
		left.skip(f.size)
	}
	r.ReadRowsResponse = &storagepb.ReadRowsResponse{}
	if err := proto.Unmarshal(rest, r.ReadRowsResponse); err != nil {
		return err
	}
	r.rows, r.arrow = rows.share(), format == arrowBatchField
	return nil
}

// serialized finds the field that AvroRows and ArrowRecordBatch have alike, and leaves rows as they are when it is not there. The
// other, a count of rows, is one of the response too.
func serialized(message scan, rows *scan) error {
	for message.left > 0 {
		f, err := message.field()
		if err != nil {
			return err
		}
		message.skip(f.head)
		if f.number == serializedField && f.kind == protowire.BytesType {
			*rows = message.first(f.size)
		}
		message.skip(f.size)
	}
	return nil
}

// whole copies rows into one buffer, and frees them. There may be none.
func whole(rows mem.BufferSlice) []byte {
	if rows.Len() == 0 {
		return nil
	}
	buf := takeBuffer(rows.Len())
	rows.CopyTo(buf)
	rows.Free()
	return buf
}

// spare are buffers that nobody uses, as *[]byte.
var spare sync.Pool

// takeBuffer is a buffer of that length, with anything in it.
func takeBuffer(n int) []byte {
	if b, ok := spare.Get().(*[]byte); ok && cap(*b) >= n && cap(*b) <= 4*max(n, 1<<20) {
		return (*b)[:n]
	}
	return make([]byte, n, n+n/16+4096) // the next block may be somewhat larger
}

// giveBuffer takes back a buffer, or a part of it.
func giveBuffer(b []byte) {
	if b = b[:0]; cap(b) > 0 {
		spare.Put(&b)
	}
}
