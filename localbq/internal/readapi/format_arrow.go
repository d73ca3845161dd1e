package readapi

import (
	"bytes"
	"fmt"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// arrowFormat is rows in Arrow: the schema as one IPC message, every block as one record batch message.
type arrowFormat struct {
	fields   []*schema.Field
	target   *arrow.Schema
	message  []byte // the schema
	picos    arrow.DataType
	options  []ipc.Option
	compress bool
	asStored bool // the store's layout is the session's
}

func newArrow(o *storagepb.ReadSession_TableReadOptions, columns *schema.Schema, compress bool) (format, error) {
	if o.GetAvroSerializationOptions() != nil {
		return nil, invalid("request failed: avro_serialization_options are set for a session in Arrow")
	}
	options := o.GetArrowSerializationOptions()
	f := &arrowFormat{fields: columns.Fields, compress: compress, picos: picosType(options)}
	switch options.GetBufferCompression() {
	case storagepb.ArrowSerializationOptions_LZ4_FRAME:
		f.options = append(f.options, ipc.WithLZ4())
	case storagepb.ArrowSerializationOptions_ZSTD:
		f.options = append(f.options, ipc.WithZstd())
	}
	if f.options != nil && compress {
		return nil, invalid("request failed: arrow_serialization_options.buffer_compression and response_compression_codec exclude each other")
	}
	f.target = f.sessionSchema(columns)
	f.asStored = f.target.Equal(columns.Arrow())
	var err error
	f.message, err = message(ipc.GetSchemaPayload(f.target, memory.DefaultAllocator))
	return f, err
}

// message is an IPC message by itself: no header of a stream before it, no end marker behind it.
func message(p ipc.Payload) ([]byte, error) {
	defer p.Release()
	var out bytes.Buffer
	if _, err := p.WritePayload(&out); err != nil {
		return nil, fmt.Errorf("writing an Arrow message: %w", err)
	}
	return out.Bytes(), nil
}

func picosType(o *storagepb.ArrowSerializationOptions) arrow.DataType {
	switch o.GetPicosTimestampPrecision() {
	case storagepb.ArrowSerializationOptions_TIMESTAMP_PRECISION_NANOS:
		return arrow.FixedWidthTypes.Timestamp_ns
	case storagepb.ArrowSerializationOptions_TIMESTAMP_PRECISION_PICOS:
		return arrow.BinaryTypes.String
	}
	return arrow.FixedWidthTypes.Timestamp_us
}

func (f *arrowFormat) describe(s *storagepb.ReadSession) {
	s.Schema = &storagepb.ReadSession_ArrowSchema{ArrowSchema: &storagepb.ArrowSchema{SerializedSchema: f.message}}
}

func (f *arrowFormat) first(r *storagepb.ReadRowsResponse) {
	r.Schema = &storagepb.ReadRowsResponse_ArrowSchema{ArrowSchema: &storagepb.ArrowSchema{SerializedSchema: f.message}}
}

// block sends rows of one run, about as many as the limits allow by the size of an average row.
func (f *arrowFormat) block(r *storagepb.ReadRowsResponse, c *cursor, limits Limits) error {
	run, at, ok := c.here()
	if !ok {
		return nil
	}
	rows := min(run.rows-at, limits.BlockRows, max(1, limits.BlockBytes/f.rowBytes(c.projection.Apply(run.batch))))
	for {
		block, err := f.serialize(c.projection.Apply(run.take(at, at+rows)))
		if err != nil {
			return err
		}
		if len(block) > maxResponseBytes && rows > 1 {
			rows = max(1, rows/8)
			continue
		}
		if len(block) > maxResponseBytes {
			return tooLarge(len(block))
		}
		c.moveTo(at + rows)
		r.RowCount = rows
		block, r.UncompressedByteSize = squeeze(block, f.compress)
		r.Rows = &storagepb.ReadRowsResponse_ArrowRecordBatch{ArrowRecordBatch: &storagepb.ArrowRecordBatch{
			//lint:ignore SA1019 the service fills the old field too, and older clients read it
			SerializedRecordBatch: block, RowCount: rows,
		}}
		return nil
	}
}

func (f *arrowFormat) serialize(b arrow.RecordBatch) ([]byte, error) {
	b, err := f.convert(b)
	if err != nil {
		return nil, err
	}
	p, err := ipc.GetRecordBatchPayload(b, f.options...)
	if err != nil {
		return nil, fmt.Errorf("serializing an Arrow batch: %w", err)
	}
	return message(p)
}

// rowBytes is the size of an average row of a batch.
func (f *arrowFormat) rowBytes(b arrow.RecordBatch) int64 {
	total := int64(0)
	for i, column := range f.fields {
		total += store.LogicalBytes(column, b.Column(i))
	}
	return max(1, total/max(1, b.NumRows()))
}

// take is the rows from..to of the run as one batch.
func (r run) take(from, to int64) arrow.RecordBatch {
	if r.picked == nil {
		return r.batch.NewSlice(from, to)
	}
	// Rows that follow each other are copied at once.
	picked := r.picked[from:to]
	var spans []arrow.RecordBatch
	for start := 0; start < len(picked); {
		end := start + 1
		for end < len(picked) && picked[end] == picked[end-1]+1 {
			end++
		}
		spans = append(spans, r.batch.NewSlice(int64(picked[start]), int64(picked[end-1])+1))
		start = end
	}
	if len(spans) == 1 {
		return spans[0]
	}
	return store.Concatenate(spans)
}
