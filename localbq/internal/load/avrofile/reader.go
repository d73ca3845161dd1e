package avrofile

import (
	"fmt"
	"io"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/millrace-dev/millrace/localbq/internal/column"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Options are those of a load job.
type Options struct {
	Logical bool // useAvroLogicalTypes
	// Decimals are the types that a decimal may become; none is NUMERIC, then BIGNUMERIC.
	Decimals []schema.Type
}

// Reader reads records. It is for one goroutine.
type Reader struct {
	in   *ocf.Reader
	root *node
}

// maxBlockBytes is the largest block (BigQuery documentation, "Quotas and limits", "Load jobs": Avro file blocks).
const maxBlockBytes = 16 << 20

// Open reads a file's header.
func Open(in io.Reader, o Options) (*Reader, error) {
	r := &Reader{}
	var err error
	r.in, err = ocf.NewReader(in,
		ocf.WithMaxBlockBytes(maxBlockBytes), ocf.WithCodec(bzip2Codec), ocf.WithCodec(xzCodec), ocf.WithDecodeOpts(avro.TaggedUnions()),
		ocf.WithReaderSchemaFunc(func(found *ocf.Reader) (*avro.Schema, error) {
			written := found.Schema().Root()
			if r.root, err = compile(written.ExpandReferences(), o, "", nil); err != nil {
				return nil, err
			}
			if r.root.kind != "record" {
				return nil, fmt.Errorf("the schema of the file is %s, expected a record", written.Type)
			}
			return plain(written).Schema()
		}))
	if err != nil {
		return nil, fmt.Errorf("The Apache Avro library failed to read the header: %w", err)
	}
	return r, nil
}

// Close ends the reading.
func (r *Reader) Close() error { return r.in.Close() }

// Schema is the columns that the file asks for.
func (r *Reader) Schema() *schema.Schema { return &schema.Schema{Fields: r.root.fields()} }

// Check refuses columns that the file's fields cannot feed.
func (r *Reader) Check(s *schema.Schema) error { return r.root.checkMembers(s.Fields, "") }

// Next is the next record; io.EOF at the end.
func (r *Reader) Next() (record column.Record, bad, err error) {
	var v any
	if err := r.in.Decode(&v); err != nil {
		if err != io.EOF {
			err = fmt.Errorf("The Apache Avro library failed to parse the data: %w", err)
		}
		return nil, nil, err
	}
	out, err := r.root.value(v)
	if err != nil {
		return nil, err, nil
	}
	return out.(column.Record), nil, nil
}

// Position says where the record is that Next returned last.
func (r *Reader) Position() string { return "" }

// plain takes the logical types away, in place: values are then those of the types beneath.
func plain(n *avro.SchemaNode) *avro.SchemaNode {
	n.LogicalType, n.Precision, n.Scale = "", 0, 0
	for i := range n.Fields {
		plain(&n.Fields[i].Type)
	}
	for i := range n.Branches {
		plain(&n.Branches[i])
	}
	if n.Items != nil {
		plain(n.Items)
	}
	if n.Values != nil {
		plain(n.Values)
	}
	return n
}
