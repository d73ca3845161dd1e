package writeapi

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/localbq/internal/arrowipc"
	"github.com/millrace-dev/millrace/localbq/internal/audit"
	"github.com/millrace-dev/millrace/localbq/internal/decode"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// writerSchema says what the rows of a connection look like: a descriptor, or an Arrow schema.
type writerSchema struct {
	bytes []byte // as it came
	proto *descriptorpb.DescriptorProto
	arrow *arrowipc.Schema
}

func readWriterSchema(r *request) (*writerSchema, error) {
	w := &writerSchema{bytes: bytes.Clone(r.descriptor)}
	if r.arrow {
		var err error
		if w.arrow, err = arrowipc.ParseSchema(w.bytes); err != nil {
			return nil, fmt.Errorf("Invalid Arrow schema: %w.", err)
		}
		return w, nil
	}
	w.proto = &descriptorpb.DescriptorProto{}
	if proto.Unmarshal(w.bytes, w.proto) != nil {
		return nil, errors.New("Invalid proto schema: the descriptor could not be parsed.")
	}
	return w, nil
}

func (w *writerSchema) compile(info *store.Info) (*decode.Plan, error) {
	if w.arrow != nil {
		return decode.CompileArrow(w.arrow, info.Ref.Table, info.Schema)
	}
	return decode.Compile(w.proto, info.Ref.Table, info.Schema)
}

// count is how many rows the request carries; 0 for Arrow rows that are no record batch.
func (r *request) count() int64 {
	if r.arrow {
		n, _ := arrowipc.Rows(r.batch)
		return n
	}
	return int64(len(r.rows))
}

// noRows is why a request has none.
func (c *connection) noRows(r *request) error {
	if r.arrow && len(r.batch) > 0 {
		if _, err := arrowipc.Rows(r.batch); err != nil {
			return invalid(c.stream.full, "Invalid Arrow record batch: %v.", err)
		}
	}
	return invalid(c.stream.full, "The request carries no rows.")
}

// checkValues refuses rows that would take far more memory than they came in.
func (c *connection) checkValues(d *destination, r *request) error {
	if rows, columns := r.count(), d.info.Schema.Width(); rows > schema.MostValues/max(1, columns) {
		return invalid(c.stream.full, "AppendRows request too large: %d rows of %d columns, and the local BigQuery takes %d values at once. "+
			"Send fewer rows in a request.", rows, columns, schema.MostValues)
	}
	return nil
}

// decode checks the rows of a request and leaves them in the plan.
func (c *connection) decode(d *destination, r *request) error {
	if err := c.checkValues(d, r); err != nil {
		return err
	}
	var bad []decode.RowError
	if r.arrow {
		batch, err := arrowipc.Decode(r.batch, d.schema.arrow)
		if err != nil {
			return invalid(c.stream.full, "Invalid Arrow record batch: %v.", err)
		}
		if r.batchRows != 0 && r.batchRows != int64(batch.Rows) {
			return invalid(c.stream.full, "The row_count of arrow_rows is %d, and the record batch has %d rows.", r.batchRows, batch.Rows)
		}
		c.digest(batch.Rows, func(i int, buf []byte) []byte { return batch.AppendRow(buf, i) })
		bad = d.plan.DecodeArrow(batch, c.decoding(r))
	} else {
		c.digest(len(r.rows), func(i int, _ []byte) []byte { return r.rows[i] })
		bad = d.plan.Decode(r.rows, c.decoding(r))
	}
	if len(bad) > 0 {
		d.plan.Reset()
		return c.rowFailure(bad)
	}
	return nil
}

// digest notes what the rows are; content is that of one row, in the memory given if it needs any.
func (c *connection) digest(rows int, content func(i int, buf []byte) []byte) {
	if !c.server.Watch.Audit.Digests() {
		return
	}
	digests := make(audit.Digests, rows)
	var buf []byte
	for i := range digests {
		buf = content(i, buf[:0])
		digests[i] = xxhash.Sum64(buf)
	}
	c.event.Update(func(a *audit.Record) { a.Digests = digests })
}
