package writeapi

import (
	"errors"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/millrace-dev/millrace/localbq/internal/decode"
)

// request is an AppendRowsRequest read in place: its byte slices belong to buffer, until free.
type request struct {
	buffer mem.Buffer
	size   int64 // serialized, in bytes

	stream     string
	offset     *int64
	descriptor []byte // serialized DescriptorProto or Arrow schema; nil when the request carries no writer schema
	schemaSent bool
	rows       [][]byte // proto rows
	batch      []byte   // Arrow rows: a serialized record batch
	batchRows  int64    // what the request itself says of their number; 0 is nothing
	proto      bool     // it has a proto_rows field
	arrow      bool     // it has an arrow_rows field
	traceID    string
	columns    map[string]decode.Missing
	missing    storagepb.AppendRowsRequest_MissingValueInterpretation
}

// read takes the place of unmarshalling.
func (r *request) read(data mem.BufferSlice) error {
	buffer := data.MaterializeToBuffer(memory)
	*r = request{buffer: buffer, size: int64(buffer.Len()), rows: r.rows[:0]}
	err := r.parse(buffer.ReadOnlyData())
	if err != nil {
		r.free()
	}
	return err
}

// free gives the memory of the bytes, and the request itself, back.
func (r *request) free() {
	r.buffer.Free()
	clear(r.rows)
	*r = request{rows: r.rows[:0]}
	requests.Put(r)
}

var errParse = errors.New("AppendRowsRequest is not a valid protocol buffer message")

// Tags of the fields that are read, wire type included: a field of another wire type is unknown, as it is to the protobuf
// library. The messages are AppendRowsRequest, its ProtoData, ProtoSchema, ProtoRows, Int64Value, and a map's entry.
const (
	firstBytes   = 1<<3 | uint64(protowire.BytesType)
	firstVarint  = 1<<3 | uint64(protowire.VarintType)
	secondBytes  = 2<<3 | uint64(protowire.BytesType)
	secondVarint = 2<<3 | uint64(protowire.VarintType)
	fourthBytes  = 4<<3 | uint64(protowire.BytesType)
	fifthBytes   = 5<<3 | uint64(protowire.BytesType)
	sixthBytes   = 6<<3 | uint64(protowire.BytesType)
	seventhBytes = 7<<3 | uint64(protowire.BytesType)
	eighthVarint = 8<<3 | uint64(protowire.VarintType)
)

// fields walks a message; each gets the tag of a field and its value, as a number or as bytes.
func fields(b []byte, each func(tag, bits uint64, data []byte) error) error {
	for len(b) > 0 {
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errParse
		}
		b = b[n:]
		var bits uint64
		var data []byte
		switch wire {
		case protowire.VarintType:
			bits, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			data, n = protowire.ConsumeBytes(b)
		default: // no field that is read has another type
			n = protowire.ConsumeFieldValue(number, wire, b)
		}
		if n < 0 {
			return errParse
		}
		b = b[n:]
		if err := each(protowire.EncodeTag(number, wire), bits, data); err != nil {
			return err
		}
	}
	return nil
}

func (r *request) parse(b []byte) error {
	return fields(b, func(tag, bits uint64, data []byte) error {
		switch tag {
		case firstBytes:
			r.stream = string(data)
		case secondBytes:
			return r.parseOffset(data)
		case fourthBytes:
			r.proto = true
			return r.parseProtoData(data)
		case fifthBytes:
			r.arrow = true
			return r.parseArrowData(data)
		case sixthBytes:
			r.traceID = string(data)
		case seventhBytes:
			return r.parseMissing(data)
		case eighthVarint:
			r.missing = storagepb.AppendRowsRequest_MissingValueInterpretation(bits)
		}
		return nil
	})
}

func (r *request) parseOffset(b []byte) error {
	if r.offset == nil {
		r.offset = new(int64)
	}
	return fields(b, func(tag, bits uint64, _ []byte) error {
		if tag == firstVarint {
			*r.offset = int64(bits)
		}
		return nil
	})
}

func (r *request) parseProtoData(b []byte) error {
	return fields(b, func(tag, _ uint64, data []byte) error {
		switch tag {
		case firstBytes:
			r.schemaSent = true
			return r.parseWriterSchema(data)
		case secondBytes:
			return r.parseRows(data)
		}
		return nil
	})
}

// parseWriterSchema takes the descriptor. Should it come in parts, their bytes one behind the other are the whole.
func (r *request) parseWriterSchema(b []byte) error {
	return fields(b, func(tag, _ uint64, data []byte) error {
		switch {
		case tag != firstBytes:
		case r.descriptor == nil:
			r.descriptor = data[:len(data):len(data)] // part of the request: what is appended goes elsewhere
		default:
			r.descriptor = append(r.descriptor, data...)
		}
		return nil
	})
}

// parseArrowData takes the schema and the batch, the last of each.
func (r *request) parseArrowData(b []byte) error {
	return fields(b, func(tag, _ uint64, data []byte) error {
		switch tag {
		case firstBytes:
			r.schemaSent = true
			return fields(data, func(tag, _ uint64, data []byte) error {
				if tag == firstBytes {
					r.descriptor = data
				}
				return nil
			})
		case secondBytes:
			return r.parseBatch(data)
		}
		return nil
	})
}

func (r *request) parseBatch(b []byte) error {
	return fields(b, func(tag, bits uint64, data []byte) error {
		switch tag {
		case firstBytes:
			r.batch = data
		case secondVarint:
			r.batchRows = int64(bits)
		}
		return nil
	})
}

// parseRows is the hot loop: ProtoRows has one repeated field, of one-byte tag.
func (r *request) parseRows(b []byte) error {
	for len(b) > 0 && b[0] == byte(firstBytes) {
		row, n := protowire.ConsumeBytes(b[1:])
		if n < 0 {
			return errParse
		}
		r.rows = append(r.rows, row)
		b = b[1+n:]
	}
	return fields(b, func(tag, _ uint64, data []byte) error {
		if tag == firstBytes {
			r.rows = append(r.rows, data)
		}
		return nil
	})
}

// parseMissing reads one entry of the map from column to interpretation.
func (r *request) parseMissing(b []byte) error {
	var column string
	var policy storagepb.AppendRowsRequest_MissingValueInterpretation
	err := fields(b, func(tag, bits uint64, data []byte) error {
		switch tag {
		case firstBytes:
			column = string(data)
		case secondVarint:
			policy = storagepb.AppendRowsRequest_MissingValueInterpretation(bits)
		}
		return nil
	})
	if r.columns == nil {
		r.columns = map[string]decode.Missing{}
	}
	r.columns[column] = interpretation(policy)
	return err
}

// interpretation turns the wire's enum into the plan's; unspecified is NULL (storage.proto, MissingValueInterpretation).
func interpretation(m storagepb.AppendRowsRequest_MissingValueInterpretation) decode.Missing {
	if m == storagepb.AppendRowsRequest_DEFAULT_VALUE {
		return decode.MissingDefault
	}
	return decode.MissingNull
}
