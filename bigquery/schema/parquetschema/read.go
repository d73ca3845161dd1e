package parquetschema

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Open opens a Parquet file for Read: it takes its footer, and no more. A file that is damaged is an error, whatever the damage.
func Open(r io.ReaderAt, size int64) (f *parquet.File, err error) {
	defer func() {
		if p := recover(); p != nil { // so the library meets some damage
			f, err = nil, fmt.Errorf("no Parquet file, or a damaged one: %v", p)
		}
	}()
	if err := footer(r, size); err != nil {
		return nil, fmt.Errorf("no Parquet file, or a damaged one: %w", err)
	}
	f, err = parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("no Parquet file, or a damaged one: %w", err)
	}
	return f, nil
}

// footer holds the length of the footer, which stands before the marker at the end, to the file. The library takes as much
// memory as it says.
func footer(r io.ReaderAt, size int64) error {
	var end [8]byte
	if size < int64(len(end)) {
		return fmt.Errorf("it has %d bytes", size)
	}
	if _, err := r.ReadAt(end[:], size-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n := int64(binary.LittleEndian.Uint32(end[:])); n > size-int64(len(end)) {
		return fmt.Errorf("its footer is to have %d bytes, and the file has %d", n, size)
	}
	return nil
}

// Read is the table's schema that a file was written for. The schema of a file that carries none, or has other columns than
// the one it carries, is derived from its columns: integers are INT64, text STRING, decimals NUMERIC where that holds them and
// BIGNUMERIC where not, timestamps TIMESTAMP if they are instants and DATETIME if not, lists and repeated columns REPEATED, maps
// REPEATED STRUCTs of key and value, and columns that are neither optional nor repeated REQUIRED. The error joins every column
// that has no form in BigQuery, as *row.Error of the C kinds.
func Read(f *parquet.File) (s *table.Schema, err error) {
	if text, ok := f.Lookup(table.SchemaKey); ok {
		if s, err := table.ParseSchemaJSON([]byte(text)); err == nil && parquet.EqualNodes(f.Schema(), Write(s)) {
			return s, nil
		}
	}
	d := deriver{}
	s = &table.Schema{Fields: d.members(f.Schema(), "", 0)}
	if len(d.faults) > 0 {
		return nil, errors.Join(d.faults...)
	}
	if err := row.CheckSchema(s); err != nil {
		return nil, err
	}
	return s, nil
}

type deriver struct{ faults []error }

func (d *deriver) fault(kind row.Kind, path, format string, args ...any) {
	d.faults = append(d.faults, &row.Error{Kind: kind, Path: path, Offset: -1, Msg: fmt.Sprintf(format, args...)})
}

// members derives the columns of a group that lies below depth others.
func (d *deriver) members(n parquet.Node, path string, depth int) []table.Field {
	if depth > table.MaxDepth {
		d.fault(row.KindDepth, path, "lies below more than %d groups", table.MaxDepth)
		return nil
	}
	var out []table.Field
	for _, f := range n.Fields() {
		out = append(out, d.column(f, table.Join(path, f.Name()), depth))
	}
	return out
}

func (d *deriver) column(f parquet.Field, path string, depth int) table.Field {
	out := table.Field{Name: f.Name()}
	var n parquet.Node = f
	switch element := listed(f); {
	case element != nil:
		out.Mode, n = table.Repeated, element
		if element.Repeated() || listed(element) != nil {
			d.fault(row.KindArray, path, "is a list of lists: wrap the inner one in a group")
			return out
		}
	case f.Repeated():
		out.Mode = table.Repeated
	case f.Required():
		out.Mode = table.Required
	}
	d.value(&out, n, path, depth)
	return out
}

// listed is the element of a group that is a list or a map; nil where it is none. A list's repeated field is the element
// itself where it is no group of one field (parquet-format, LogicalTypes.md, "Lists", backward compatibility).
func listed(n parquet.Node) parquet.Node {
	if n.Leaf() || n.Repeated() || len(n.Fields()) != 1 || !n.Fields()[0].Repeated() {
		return nil
	}
	t := n.Type().LogicalType()
	if t == nil {
		return nil
	}
	inner := n.Fields()[0]
	switch t.Value.(type) {
	case *format.MapType:
		return parquet.Required(inner)
	case *format.ListType:
		if !inner.Leaf() && len(inner.Fields()) == 1 {
			return inner.Fields()[0]
		}
		return parquet.Required(inner)
	}
	return nil
}

func (d *deriver) value(out *table.Field, n parquet.Node, path string, depth int) {
	if !n.Leaf() {
		out.Type, out.Fields = table.Struct, d.members(n, path, depth+1)
		return
	}
	if l := n.Type().LogicalType(); l != nil {
		if dec, ok := l.Value.(*format.DecimalType); ok {
			d.decimal(out, int64(dec.Precision), int64(dec.Scale), path)
			return
		}
		if out.Type = annotated(l.Value); out.Type != 0 {
			return
		}
	}
	switch n.Type().Kind() {
	case parquet.Boolean:
		out.Type = table.Bool
	case parquet.Int32, parquet.Int64:
		out.Type = table.Int64
	case parquet.Int96:
		out.Type = table.Timestamp
	case parquet.Float, parquet.Double:
		out.Type = table.Float64
	default:
		out.Type = table.Bytes
	}
}

// annotated is the type of a logical type; 0 leaves it to the physical one.
func annotated(l format.LogicalTypeValue) table.Type {
	switch l := l.(type) {
	case *format.StringType, *format.EnumType:
		return table.String
	case *format.JsonType:
		return table.JSON
	case *format.DateType:
		return table.Date
	case *format.TimeType:
		return table.Time
	case *format.TimestampType:
		if l.IsAdjustedToUTC {
			return table.Timestamp
		}
		return table.DateTime
	case *format.Float16Type:
		return table.Float64
	}
	return 0
}

func (d *deriver) decimal(out *table.Field, precision, scale int64, path string) {
	for _, t := range []table.Type{table.Numeric, table.BigNumeric} {
		integer, fraction := t.DecimalDigits()
		if scale <= fraction && precision-scale <= integer {
			out.Type, out.Precision, out.Scale = t, precision, scale
			return
		}
	}
	if precision == 77 && scale == 38 {
		out.Type = table.BigNumeric // what we write for all of it
		return
	}
	d.fault(row.KindColType, path, "is a decimal(%d, %d): BIGNUMERIC keeps 38 digits before the point and 38 behind it", precision, scale)
}
