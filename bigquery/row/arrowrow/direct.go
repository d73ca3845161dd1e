package arrowrow

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// ErrConvert is found in errors that say why a table, or a batch, cannot go without conversion. Rows of it can.
var ErrConvert = errors.New("Arrow batches have to be converted to rows")

// Direct sends batches to a table as they are: as arrow_rows of AppendRowsRequest, instead of one row message after
// another. It may be used from many goroutines.
type Direct struct {
	plan   *plan
	schema []byte
	wants  []want
}

// want is what a column's arrays must hold so that they can go as they are.
type want struct {
	at       int
	path     string
	list     bool
	text     bool
	required bool
	members  []want
}

// NewDirect says whether batches of an Arrow schema can go to a table as they are. They can when every column has the type
// that BigQuery documents for it ("Supported Apache Arrow data types"), and the table a column for each. The error names
// every column that has not, and ErrConvert is found in it; it is another one where a Serializer would not take the schema
// either.
func NewDirect(a *arrow.Schema, t *table.Schema) (*Direct, error) {
	p, err := compile(a, t, false)
	if err != nil {
		return nil, err
	}
	var c directCompiler
	fields, wants := c.fields(a.Fields(), t.Fields, p.columns, "")
	if err := errors.Join(c.faults...); err != nil {
		return nil, err
	}
	schema, err := serialize(ipc.GetSchemaPayload(arrow.NewSchema(fields, nil), memory.DefaultAllocator), nil)
	if err != nil {
		return nil, err
	}
	return &Direct{plan: p, schema: schema, wants: wants}, nil
}

type directCompiler struct{ faults []error }

func (c *directCompiler) fault(path, format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf("%w: column %s: %s", ErrConvert, path, fmt.Sprintf(format, args...)))
}

// fields are the fields of the schema that is sent: without metadata and extension types, and with the one zone that the
// service takes, which changes no value.
func (c *directCompiler) fields(from []arrow.Field, targets []table.Field, columns []column, parent string) ([]arrow.Field, []want) {
	out := make([]arrow.Field, len(from))
	var wants []want
	for i := range columns {
		col, target := &columns[i], &targets[i]
		if col.at < 0 {
			continue
		}
		path := table.Join(parent, target.Name)
		f := &from[col.at]
		w := want{at: col.at, path: path, required: col.required, list: col.list != listNone}
		t, _ := storage(f)
		if w.list {
			l, ok := t.(*arrow.ListType)
			if !ok {
				c.fault(path, "the service takes list, not %s", t)
				continue
			}
			elem := l.ElemField()
			inner, _ := storage(&elem)
			sent := c.field(&w, inner, target, col, path)
			t = arrow.ListOfField(arrow.Field{Name: elem.Name, Type: sent, Nullable: elem.Nullable})
		} else {
			t = c.field(&w, t, target, col, path)
		}
		out[col.at] = arrow.Field{Name: f.Name, Type: t, Nullable: f.Nullable}
		wants = append(wants, w)
	}
	return out, wants
}

// field is the type that is sent for values of a type.
func (c *directCompiler) field(w *want, t arrow.DataType, target *table.Field, col *column, path string) arrow.DataType {
	if s, ok := t.(*arrow.StructType); ok {
		fields, members := c.fields(s.Fields(), row.Members(target), col.members, path)
		if len(c.faults) > 0 {
			return t
		}
		w.members = members
		return arrow.StructOf(fields...)
	}
	w.text = t.ID() == arrow.STRING
	if !direct(t, target) {
		c.fault(path, "the service does not take %s for %v", t, target.Type)
	}
	if ts, ok := t.(*arrow.TimestampType); ok && ts.TimeZone != "" {
		return &arrow.TimestampType{Unit: ts.Unit, TimeZone: "UTC"}
	}
	return t
}

// direct says whether the service takes a type for a column of single values.
func direct(t arrow.DataType, target *table.Field) bool {
	switch target.Type {
	case table.Int64:
		switch t.ID() {
		case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32:
			return true
		}
		return false
	case table.Float64:
		return t.ID() == arrow.FLOAT32 || t.ID() == arrow.FLOAT64
	case table.Bool:
		return t.ID() == arrow.BOOL
	case table.String, table.JSON, table.Geography:
		return t.ID() == arrow.STRING
	case table.Bytes:
		return t.ID() == arrow.BINARY
	case table.Date:
		return t.ID() == arrow.DATE32
	case table.Time:
		u, ok := t.(*arrow.Time64Type)
		return ok && u.Unit == arrow.Microsecond
	case table.DateTime, table.Timestamp:
		u, ok := t.(*arrow.TimestampType)
		return ok && u.Unit == arrow.Microsecond
	case table.Interval:
		return t.ID() == arrow.INTERVAL_MONTH_DAY_NANO
	case table.Numeric, table.BigNumeric:
		return directDecimal(t, target)
	}
	return false
}

// directDecimal says whether a decimal type has no digit that the column has not: the service rounds others.
func directDecimal(t arrow.DataType, target *table.Field) bool {
	n, ok := t.(arrow.DecimalType)
	if !ok || target.Type == table.Numeric && n.BitWidth() != 128 || target.Type == table.BigNumeric && n.BitWidth() != 256 {
		return false
	}
	d := row.DecimalOf(target)
	return n.GetScale() >= 0 && int(n.GetScale()) <= d.FractionDigits() && int(n.GetPrecision()-n.GetScale()) <= d.Precision()-d.FractionDigits()
}

// Schema is the serialized_schema of the requests. The caller must not change it.
func (d *Direct) Schema() []byte { return d.schema }

// Check says whether a batch can go as it is. Null lists, nulls within lists, nulls in REQUIRED columns, and text that is not
// UTF-8 have no form in Arrow that the service takes; a Serializer tells which row is at fault, or finds none. ErrConvert is
// found in the error.
func (d *Direct) Check(b *Batch) error {
	if !sameColumns(b.Schema(), d.plan.arrow) {
		return fmt.Errorf("%w: it has another Arrow schema than those before", ErrConvert)
	}
	for i := range d.wants {
		w := &d.wants[i]
		if err := w.check(&b.columns[w.at], nil); err != nil {
			return err
		}
	}
	return nil
}

// check looks at the values whose structs are not null themselves; within is nil where all are.
func (w *want) check(v *vector, within func(i int) bool) error {
	if (w.list || w.required) && v.anyNull(within) {
		return w.fault("has a null")
	}
	if w.list {
		v, within = &v.children[0], nil
		if v.anyNull(nil) {
			return w.fault("has a null within a list")
		}
	}
	if w.text && !v.utf8() {
		return w.fault("has text that is not valid UTF-8")
	}
	for i := range w.members {
		m := &w.members[i]
		if err := m.check(&v.children[m.at], v.live(within)); err != nil {
			return err
		}
	}
	return nil
}

// live says which members of a struct count, by their place in their arrays: those of structs that are not null.
func (v *vector) live(within func(i int) bool) func(i int) bool {
	if v.valid == nil && v.offset == 0 {
		return within
	}
	return func(i int) bool {
		i -= v.offset
		return i >= 0 && !v.null(i) && (within == nil || within(i))
	}
}

func (w *want) fault(msg string) error {
	return fmt.Errorf("%w: column %s %s", ErrConvert, w.path, msg)
}

func (v *vector) anyNull(within func(i int) bool) bool {
	if v.valid == nil {
		return false
	}
	for i := range v.length {
		if v.null(i) && (within == nil || within(i)) {
			return true
		}
	}
	return false
}

// utf8 says whether every text is UTF-8: the texts as one are, and none begins within a character.
func (v *vector) utf8() bool {
	if v.length == 0 {
		return true
	}
	all := v.bytes[v.position(v.offset):v.position(v.offset+v.length)]
	if ascii(all) {
		return true
	}
	if !utf8.Valid(all) {
		return false
	}
	for i := range v.length {
		if at := v.position(v.offset + i); at < len(v.bytes) && at < v.position(v.offset+v.length) && !utf8.RuneStart(v.bytes[at]) {
			return false
		}
	}
	return true
}

func ascii(b []byte) bool {
	for len(b) >= 8 {
		if (uint64(b[0])|uint64(b[1])<<8|uint64(b[2])<<16|uint64(b[3])<<24|uint64(b[4])<<32|uint64(b[5])<<40|uint64(b[6])<<48|uint64(b[7])<<56)&0x8080808080808080 != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// AppendBatch appends the serialized_record_batch of rows from to to of a batch that Check let pass.
func (d *Direct) AppendBatch(buf []byte, b *Batch, from, to int) ([]byte, error) {
	if from < 0 || to < from || to > b.rows {
		return buf, fmt.Errorf("rows %d to %d of an Arrow batch of %d", from, to, b.rows)
	}
	r := b.record
	if from > 0 || to < b.rows {
		r = r.NewSlice(int64(from), int64(to))
		defer r.Release()
	}
	p, err := ipc.GetRecordBatchPayload(r)
	if err != nil {
		return buf, fmt.Errorf("rows of an Arrow batch: %w", err)
	}
	return serialize(p, buf)
}

// serialize appends a message without the frame of a stream, and releases the payload.
func serialize(p ipc.Payload, buf []byte) ([]byte, error) {
	defer p.Release()
	w := bytes.NewBuffer(buf)
	_, err := p.WritePayload(w)
	return w.Bytes(), err
}
