package storagewrite

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// schema is the descriptor of a batch's rows as a ProtoSchema message, or an ArrowSchema message. It never changes.
type schema struct {
	fingerprint uint64
	encoded     []byte
	foreign     bool // came with an encoded batch, and may be another than the serializer's
	arrow       bool
}

// readSchema reads the fingerprint first: a change in between then costs a refresh too many instead of one missed.
func readSchema(s row.Schemas, dst table.Destination) (*schema, error) {
	fingerprint := s.Fingerprint(dst)
	d, err := s.Descriptor(dst)
	if err != nil {
		return nil, fmt.Errorf("row descriptor of %s: %w", dst, err)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("row descriptor of %s: %w", dst, err)
	}
	return &schema{fingerprint: fingerprint, encoded: encodeSchema(data)}, nil
}

func encodeSchema(descriptor []byte) []byte {
	b := protowire.AppendTag(nil, fieldDescriptor, protowire.BytesType)
	return protowire.AppendBytes(b, descriptor)
}

// decodeSchema undoes encodeSchema.
func decodeSchema(encoded []byte) ([]byte, error) {
	_, _, n := protowire.ConsumeTag(encoded)
	if n < 0 {
		return nil, protowire.ParseError(n)
	}
	data, size := protowire.ConsumeBytes(encoded[n:])
	return data, protowire.ParseError(min(size, 0))
}

// same reports whether two schemas look the same on the wire.
func (s *schema) same(o *schema) bool {
	return s == o || s != nil && o != nil && s.arrow == o.arrow && bytes.Equal(s.encoded, o.encoded)
}
