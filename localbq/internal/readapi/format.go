package readapi

import (
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"

	"github.com/millrace-dev/millrace/localbq/internal/avro"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// format is how a session's rows travel.
type format interface {
	// describe sets the session's schema.
	describe(*storagepb.ReadSession)
	// first sets the schema of a stream's first response.
	first(*storagepb.ReadRowsResponse)
	// block fills a response with rows from the cursor on, which it moves: at least one, at most the limits'.
	block(*storagepb.ReadRowsResponse, *cursor, Limits) error
}

// newFormat reads the format and the options of a request.
func newFormat(asked *storagepb.ReadSession, columns *schema.Schema) (format, error) {
	o := asked.GetReadOptions()
	compress, err := responseCodec(o)
	if err != nil {
		return nil, err
	}
	switch asked.GetDataFormat() {
	case storagepb.DataFormat_AVRO:
		return newAvro(o, columns, compress)
	case storagepb.DataFormat_ARROW:
		return newArrow(o, columns, compress)
	}
	return nil, invalid("request failed: data_format %s: expected AVRO or ARROW", asked.GetDataFormat())
}

// responseCodec reports whether the rows of a response are compressed as a whole.
func responseCodec(o *storagepb.ReadSession_TableReadOptions) (bool, error) {
	switch c := o.GetResponseCompressionCodec(); c {
	case storagepb.ReadSession_TableReadOptions_RESPONSE_COMPRESSION_CODEC_UNSPECIFIED:
		return false, nil
	case storagepb.ReadSession_TableReadOptions_RESPONSE_COMPRESSION_CODEC_LZ4:
		return true, nil
	default:
		return false, unimplemented("response_compression_codec %s", c)
	}
}

// avroFormat is rows in Avro.
type avroFormat struct {
	encoder  *avro.Encoder
	compress bool
}

func newAvro(o *storagepb.ReadSession_TableReadOptions, columns *schema.Schema, compress bool) (format, error) {
	if o.GetArrowSerializationOptions() != nil {
		return nil, invalid("request failed: arrow_serialization_options are set for a session in Avro")
	}
	options := o.GetAvroSerializationOptions()
	e, err := avro.New(columns, avro.Options{
		DisplayNames: options.GetEnableDisplayNameAttribute(),
		Picos:        picosOptions[int32(options.GetPicosTimestampPrecision())],
	})
	if err != nil {
		return nil, invalid("request failed: %v", err)
	}
	return &avroFormat{e, compress}, nil
}

// picosOptions are the values that the enums of both formats share.
var picosOptions = map[int32]avro.Picos{
	int32(storagepb.AvroSerializationOptions_TIMESTAMP_PRECISION_NANOS): avro.PicosAsNanos,
	int32(storagepb.AvroSerializationOptions_TIMESTAMP_PRECISION_PICOS): avro.PicosAsText,
}

func (f *avroFormat) describe(s *storagepb.ReadSession) {
	s.Schema = &storagepb.ReadSession_AvroSchema{AvroSchema: &storagepb.AvroSchema{Schema: f.encoder.Schema()}}
}

func (f *avroFormat) first(r *storagepb.ReadRowsResponse) {
	r.Schema = &storagepb.ReadRowsResponse_AvroSchema{AvroSchema: &storagepb.AvroSchema{Schema: f.encoder.Schema()}}
}

func (f *avroFormat) block(r *storagepb.ReadRowsResponse, c *cursor, limits Limits) error {
	var block []byte
	for r.RowCount < limits.BlockRows {
		run, at, ok := c.here()
		if !ok {
			break
		}
		rows := f.encoder.Rows(c.projection.Apply(run.batch))
		full := false
		for ; at < run.rows && !full; at++ {
			before := len(block)
			block = rows.Append(block, run.index(at))
			if r.RowCount > 0 && int64(len(block)) > limits.BlockBytes {
				block, full = block[:before], true
				break
			}
			r.RowCount++
			full = r.RowCount == limits.BlockRows
		}
		c.moveTo(at)
		if full {
			break
		}
	}
	if len(block) > maxResponseBytes {
		return tooLarge(len(block))
	}
	block, r.UncompressedByteSize = squeeze(block, f.compress)
	r.Rows = &storagepb.ReadRowsResponse_AvroRows{AvroRows: &storagepb.AvroRows{SerializedBinaryRows: block}}
	return nil
}
