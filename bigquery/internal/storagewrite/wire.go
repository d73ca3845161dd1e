package storagewrite

import (
	"errors"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Sizes that requests keep to.
const (
	// MaxRowBytes is the largest row that is sent. It leaves about 560 kB of a request for framing and schema.
	MaxRowBytes = 9 << 20
	// maxRequestBytes is the largest request that is sent, encoded. The quota pages say 10 MB, the comments of
	// AppendRowsRequest "less than 20 MB"; a request over the limit is refused for good, so the smaller one counts.
	maxRequestBytes = 10_000_000
)

// Field numbers of storage.proto and protobuf.proto.
const (
	fieldWriteStream  protowire.Number = 1 // AppendRowsRequest.write_stream
	fieldOffset       protowire.Number = 2 // AppendRowsRequest.offset
	fieldProtoRows    protowire.Number = 4 // AppendRowsRequest.proto_rows
	fieldArrowRows    protowire.Number = 5 // AppendRowsRequest.arrow_rows
	fieldTraceID      protowire.Number = 6 // AppendRowsRequest.trace_id
	fieldWriterSchema protowire.Number = 1 // ProtoData.writer_schema
	fieldRows         protowire.Number = 2 // ProtoData.rows
	fieldDescriptor   protowire.Number = 1 // ProtoSchema.proto_descriptor
	fieldValue        protowire.Number = 1 // google.protobuf.Int64Value.value
)

// rowTag begins every row of ProtoRows.serialized_rows: field 1, length-delimited.
const rowTag = 1<<3 | byte(protowire.BytesType)

// Arrow rows lie in a request as one row of ProtoRows would: ArrowData, ArrowSchema and ArrowRecordBatch have the numbers of ProtoData,
// ProtoSchema and ProtoRows (storage.proto, arrow.proto). Only the field of the request is another.

// Rows are encoded straight into the request they travel in: tag, length, row, tag, length, row. The length is known
// only when the row is, so beginRow leaves room for a guess and endRow moves the row by a few bytes when the guess was
// wrong, which it is only where lengths cross a power of 128.

// beginRow appends the frame of a row whose length will take guess bytes, 1 to 5.
func beginRow(buf []byte, guess int) []byte {
	switch guess { // two that the compiler does without a copy
	case 1:
		return append(buf, rowTag, 0)
	case 2:
		return append(buf, rowTag, 0, 0)
	}
	buf = append(buf, rowTag)
	return append(buf, "\x00\x00\x00\x00\x00"[:guess]...)
}

// errNotAppended says that a serializer returned another slice than a longer one of what it was given.
var errNotAppended = errors.New("serializer did not append to the slice it was given")

// openRow returns the row that was appended to the frame begun at start.
func openRow(buf []byte, start, guess int) ([]byte, error) {
	body := start + 1 + guess
	if len(buf) < body || buf[start] != rowTag {
		return nil, errNotAppended
	}
	return buf[body:], nil
}

// endRow fills the frame begun at start, whose row reaches to the end of buf, and returns the bytes its length takes.
func endRow(buf []byte, start, guess int) ([]byte, int) {
	body := start + 1 + guess
	n := len(buf) - body
	size := protowire.SizeVarint(uint64(n))
	if size > guess {
		buf = append(buf, "\x00\x00\x00\x00\x00"[:size-guess]...)
	}
	if size != guess {
		copy(buf[start+1+size:], buf[body:body+n])
		buf = buf[:start+1+size+n]
	}
	protowire.AppendVarint(buf[:start+1], uint64(n))
	return buf, size
}

// frameBytes is how much a row of n bytes adds to a request besides itself.
func frameBytes(n int) int { return 1 + protowire.SizeVarint(uint64(n)) }

var errFraming = errors.New("rows are not framed as ProtoRows")

// nextRow cuts the first row off framed rows.
func nextRow(framed []byte) (row, rest []byte, err error) {
	if len(framed) == 0 || framed[0] != rowTag {
		return nil, nil, errFraming
	}
	n, size := protowire.ConsumeVarint(framed[1:])
	if size < 0 || n > math.MaxInt32 || int(n) > len(framed)-1-size {
		return nil, nil, errFraming
	}
	end := 1 + size + int(n)
	return framed[1+size : end : end], framed[end:], nil
}

// header is everything of an AppendRowsRequest that comes before its rows.
type header struct {
	stream  string
	offset  int64   // noOffset leaves it out
	schema  *schema // nil leaves it out
	arrow   bool    // the rows are a batch of Arrow
	traceID string  // "" leaves it out
}

const noOffset = -1

// append encodes h so that rows framed by beginRow and endRow, rowBytes long in all, complete the request.
func (h header) append(b []byte, rowBytes int) []byte {
	b = protowire.AppendTag(b, fieldWriteStream, protowire.BytesType)
	b = protowire.AppendString(b, h.stream)
	if h.offset != noOffset {
		b = protowire.AppendTag(b, fieldOffset, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(1+protowire.SizeVarint(uint64(h.offset))))
		b = protowire.AppendTag(b, fieldValue, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(h.offset))
	}
	if h.traceID != "" {
		b = protowire.AppendTag(b, fieldTraceID, protowire.BytesType)
		b = protowire.AppendString(b, h.traceID)
	}
	data := 1 + protowire.SizeBytes(rowBytes)
	if h.schema != nil {
		data += 1 + protowire.SizeBytes(len(h.schema.encoded))
	}
	rows := fieldProtoRows
	if h.arrow {
		rows = fieldArrowRows
	}
	b = protowire.AppendTag(b, rows, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(data))
	if h.schema != nil {
		b = protowire.AppendTag(b, fieldWriterSchema, protowire.BytesType)
		b = protowire.AppendBytes(b, h.schema.encoded)
	}
	b = protowire.AppendTag(b, fieldRows, protowire.BytesType)
	return protowire.AppendVarint(b, uint64(rowBytes))
}

// maxBytes is the most that append can add for any rows.
func (h header) maxBytes() int {
	// 5 lengths of at most 5 bytes, 7 tags of one byte, an offset of at most 10 bytes: 42, rounded up.
	n := 64 + len(h.stream) + len(h.traceID)
	if h.schema != nil {
		n += len(h.schema.encoded)
	}
	return n
}
