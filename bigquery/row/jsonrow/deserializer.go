package jsonrow

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// WriteOptions says how rows become JSON. The zero value leaves NULL columns out.
type WriteOptions struct {
	// Nulls writes NULL columns as null.
	Nulls bool
	// OmitEmptyLists leaves out REPEATED columns without elements, which are [] otherwise.
	OmitEmptyLists bool
	// Keys holds the JSON key of every column, nil is the columns' names.
	Keys *Keys
}

// Writer turns rows into JSON. It may be used from many goroutines.
//
// INT64, FLOAT64, NUMERIC and BIGNUMERIC are numbers, in full; NaN and the infinities, which JSON lacks, the strings "NaN",
// "Infinity" and "-Infinity". BYTES are base64; DATE, TIME, DATETIME and TIMESTAMP the strings of RFC 3339, TIMESTAMP in UTC
// with Z; INTERVAL and GEOGRAPHY strings; JSON is its value; RANGE an object of start and end, null where unbounded. A
// Serializer with JSONColumns Values takes all of it back, but for the null of a JSON column, which is NULL to it.
type Writer struct {
	options WriteOptions
	plan    atomic.Pointer[writePlan] // of the schema seen last
}

// NewWriter makes a Writer.
func NewWriter(o WriteOptions) *Writer { return &Writer{options: o} }

// writePlan holds the keys of a schema's columns, quoted and with their colons.
type writePlan struct {
	schema *table.Schema
	root   []writeColumn
}

type writeColumn struct {
	key     string
	field   *table.Field
	members []writeColumn
}

func planWrite(fields []table.Field, keys *Keys) []writeColumn {
	columns := make([]writeColumn, len(fields))
	for i := range fields {
		f := &fields[i]
		name := f.Name
		if keys != nil {
			name = keys.Names[i]
		}
		columns[i] = writeColumn{key: string(append(row.AppendQuoted(nil, name), ':')), field: f}
		if members := row.Members(f); members != nil {
			columns[i].members = planWrite(members, keys.of(i))
		}
	}
	return columns
}

// AppendJSON appends the row as one JSON object without white space, and no newline. Errors are *row.Error values of the
// D kinds that name the column.
func (w *Writer) AppendJSON(buf []byte, r *row.Row) ([]byte, error) {
	p := w.plan.Load()
	if p == nil || p.schema != r.Schema {
		if w.options.Keys != nil {
			if err := keysFit(w.options.Keys, r.Schema); err != nil {
				return buf, err
			}
		}
		p = &writePlan{schema: r.Schema, root: planWrite(r.Schema.Fields, w.options.Keys)}
		w.plan.Store(p)
	}
	buf, err := w.object(buf, p.root, r.Values)
	if err != nil {
		return buf, fromRoot(err)
	}
	return buf, nil
}

// fromRoot takes the dot off a path that within has put together.
func fromRoot(err error) error {
	var e *row.Error
	if errors.As(err, &e) {
		e.Path = strings.TrimPrefix(e.Path, ".")
	}
	return err
}

func keysFit(k *Keys, s *table.Schema) error {
	if faults := checkKeys(nil, k, s.Fields, ""); len(faults) > 0 {
		return faults[0]
	}
	return nil
}

func decodeError(msg string) error {
	return &row.Error{Kind: row.KindDecode, Offset: -1, Msg: msg}
}

// within puts a step before the path of an error: ".name" or "[1]".
func within(err error, step string) error {
	var e *row.Error
	if !errors.As(err, &e) {
		e = row.At(err, "", -1)
		e.Kind = row.KindDecode
	}
	e.Path = step + e.Path
	return e
}

func (w *Writer) object(buf []byte, columns []writeColumn, values []row.Value) (_ []byte, err error) {
	if len(values) != len(columns) {
		return buf, decodeError(strconv.Itoa(len(values)) + " values for " + strconv.Itoa(len(columns)) + " columns")
	}
	buf = append(buf, '{')
	empty := len(buf)
	for i := range columns {
		c, v := &columns[i], &values[i]
		list := c.field.Mode == table.Repeated
		if v.Null && !w.options.Nulls && !list || list && len(v.List) == 0 && w.options.OmitEmptyLists {
			continue
		}
		if len(buf) > empty {
			buf = append(buf, ',')
		}
		buf = append(buf, c.key...)
		if list {
			buf, err = w.list(buf, c, v)
		} else {
			buf, err = w.value(buf, c, v)
		}
		if err != nil {
			return buf, within(err, "."+c.field.Name)
		}
	}
	return append(buf, '}'), nil
}

func (w *Writer) list(buf []byte, c *writeColumn, v *row.Value) (_ []byte, err error) {
	buf = append(buf, '[')
	for i := range v.List {
		if i > 0 {
			buf = append(buf, ',')
		}
		if v.List[i].Null {
			err = decodeError("null within a REPEATED column")
		} else {
			buf, err = w.value(buf, c, &v.List[i])
		}
		if err != nil {
			return buf, within(err, "["+strconv.Itoa(i)+"]")
		}
	}
	return append(buf, ']'), nil
}

func (w *Writer) value(buf []byte, c *writeColumn, v *row.Value) ([]byte, error) {
	if v.Null {
		return append(buf, "null"...), nil
	}
	switch c.field.Type {
	case table.Bool:
		return strconv.AppendBool(buf, v.Int != 0), nil
	case table.Int64:
		return strconv.AppendInt(buf, v.Int, 10), nil
	case table.Float64:
		return appendFloat(buf, math.Float64frombits(uint64(v.Int))), nil
	case table.Numeric, table.BigNumeric:
		return appendDecimal(buf, v)
	case table.Bytes:
		return appendBase64(buf, v.Bytes), nil
	case table.Date, table.Time, table.DateTime, table.Timestamp:
		return appendTime(buf, c.field.Type, v.Int)
	case table.Interval:
		return appendInterval(buf, v)
	case table.JSON:
		return appendJSONColumn(buf, v.Bytes)
	case table.Range:
		return w.rangeObject(buf, c, v)
	case table.Struct:
		return w.object(buf, c.members, v.List)
	}
	return appendText(buf, v.Bytes)
}

// rangeObject writes both ends, whatever the options say about NULL: null is an end that is not bounded.
func (w *Writer) rangeObject(buf []byte, c *writeColumn, v *row.Value) (_ []byte, err error) {
	if len(v.List) != 2 {
		return buf, decodeError("a RANGE of " + strconv.Itoa(len(v.List)) + " ends")
	}
	buf = append(buf, '{')
	for i := range c.members {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(buf, c.members[i].key...)
		if buf, err = w.value(buf, &c.members[i], &v.List[i]); err != nil {
			return buf, within(err, "."+c.members[i].field.Name)
		}
	}
	return append(buf, '}'), nil
}

// Deserializer turns rows read from BigQuery into records that hold one JSON object. It implements row.Deserializer.
type Deserializer[T any] struct {
	writer *Writer
	record func(doc []byte) T
}

var _ row.Deserializer[[]byte] = (*Deserializer[[]byte])(nil)

// NewDeserializer makes a Deserializer. record makes a record of a document, which is its own to keep.
func NewDeserializer[T any](record func(doc []byte) T, o WriteOptions) *Deserializer[T] {
	return &Deserializer[T]{writer: NewWriter(o), record: record}
}

// Deserialize emits one record.
func (d *Deserializer[T]) Deserialize(r *row.Row, emit func(T) error) error {
	doc, err := d.writer.AppendJSON(nil, r)
	if err != nil {
		return err
	}
	return emit(d.record(doc))
}
