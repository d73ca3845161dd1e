package arrowrow

import (
	"errors"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/internal/mark"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Options says how Arrow columns become a table's. The zero value is the default.
type Options struct {
	// Schema is the table's. nil derives it from the Arrow schema.
	Schema *table.Schema
	// JSON and Geography are dotted paths of text columns that become JSON and GEOGRAPHY in a derived schema. A list's
	// elements have the list's own path, a map's "path.key" and "path.value".
	JSON, Geography []string
	// DeriveRequired makes columns REQUIRED in a derived schema that the Arrow schema says are never null.
	DeriveRequired bool
	// IgnoreUnknownFields drops Arrow columns that Schema lacks. By default they are an error.
	IgnoreUnknownFields bool
}

// SchemaOf derives a table's schema from an Arrow schema, as New does. The error holds every fault as *row.Error of the C
// kinds, with the path of the column.
func SchemaOf(s *arrow.Schema, o Options) (*table.Schema, error) {
	d := deriver{paths: mark.NewPaths(o.JSON, o.Geography), required: o.DeriveRequired}
	out := &table.Schema{Fields: d.fields(s.Fields(), "")}
	if err := errors.Join(append(d.faults, d.paths.Unmatched()...)...); err != nil {
		return nil, err
	}
	return out, row.CheckSchema(out)
}

type deriver struct {
	paths    *mark.Paths
	required bool
	faults   []error
}

func fault(kind row.Kind, path, msg string) error {
	return &row.Error{Kind: kind, Path: path, Offset: -1, Msg: msg}
}

func (d *deriver) fault(kind row.Kind, path, msg string) {
	d.faults = append(d.faults, fault(kind, path, msg))
}

func (d *deriver) fields(fields []arrow.Field, parent string) []table.Field {
	out := make([]table.Field, len(fields))
	for i := range fields {
		f := &fields[i]
		out[i] = d.field(f, table.Join(parent, f.Name))
		out[i].Name = f.Name
		if out[i].Mode != table.Repeated && d.required && !f.Nullable {
			out[i].Mode = table.Required
		}
	}
	return out
}

func (d *deriver) field(f *arrow.Field, path string) table.Field {
	t, extension := storage(f)
	t = values(t)
	m, err := d.paths.Of(path, marked(extension))
	if err != nil {
		d.faults = append(d.faults, err)
		return table.Field{Type: table.String}
	}
	if elem, ok := element(t); ok {
		inner, own := storage(&elem)
		if _, nested := element(values(inner)); nested {
			d.fault(row.KindArray, path, "a list of lists has no column: BigQuery has no arrays of arrays")
			return table.Field{Type: table.String, Mode: table.Repeated}
		}
		if own == "" && extension != "" {
			// A session of the Storage Read API says at the list what its elements are.
			elem.Metadata = arrow.NewMetadata([]string{extensionName}, []string{extension})
		}
		out := d.field(&elem, path)
		out.Mode = table.Repeated
		return out
	}
	if m != mark.None {
		if !text(t) {
			d.fault(row.KindMark, path, "marked as "+m.String()+" and is "+t.String()+": expected text")
		}
		return table.Field{Type: m.Type()}
	}
	if extension == "google:sqlType:range" {
		if end := rangeOf(t); end != 0 {
			return table.Field{Type: table.Range, Range: end}
		}
	}
	if s, ok := t.(*arrow.StructType); ok {
		return table.Field{Type: table.Struct, Fields: d.fields(s.Fields(), path)}
	}
	if n, ok := t.(arrow.DecimalType); ok {
		return d.decimal(n, path)
	}
	typ := scalarType(t)
	if typ == 0 {
		d.fault(row.KindColType, path, "the Arrow type "+t.String()+" has no column")
		typ = table.String
	}
	return table.Field{Type: typ}
}

// extensionName is the key of a field's metadata that names its extension type (Arrow columnar format, "Extension Types").
const extensionName = "ARROW:extension:name"

// storage is the type that a column's values lie in memory as, and the name of its extension type, "" for none.
func storage(f *arrow.Field) (t arrow.DataType, extension string) {
	if e, ok := f.Type.(arrow.ExtensionType); ok {
		return e.StorageType(), e.ExtensionName()
	}
	name, _ := f.Metadata.GetValue(extensionName)
	return f.Type, name
}

// values is the type of a dictionary's values.
func values(t arrow.DataType) arrow.DataType {
	if d, ok := t.(*arrow.DictionaryType); ok {
		return d.ValueType
	}
	return t
}

func marked(extension string) mark.Mark {
	switch extension {
	case "arrow.json", "google:sqlType:json":
		return mark.JSON
	case "geoarrow.wkt", "google:sqlType:geography":
		return mark.Geography
	}
	return mark.None
}

// element is the element of a list, which a map is too.
func element(t arrow.DataType) (arrow.Field, bool) {
	switch l := t.(type) {
	case *arrow.ListType:
		return l.ElemField(), true
	case *arrow.LargeListType:
		return l.ElemField(), true
	case *arrow.FixedSizeListType:
		return l.ElemField(), true
	case *arrow.ListViewType:
		return l.ElemField(), true
	case *arrow.LargeListViewType:
		return l.ElemField(), true
	case *arrow.MapType:
		// Whatever the members are called, they are key and value to us.
		key, value := l.KeyField(), l.ItemField()
		key.Name, value.Name = "key", "value"
		return arrow.Field{Name: "entries", Type: arrow.StructOf(key, value)}, true
	}
	return arrow.Field{}, false
}

func text(t arrow.DataType) bool { return scalarType(t) == table.String }

// rangeOf is the element type of a struct of start and end, 0 when it is none.
func rangeOf(t arrow.DataType) table.Type {
	s, ok := t.(*arrow.StructType)
	if !ok || s.NumFields() != 2 || !strings.EqualFold(s.Field(0).Name, "start") || !strings.EqualFold(s.Field(1).Name, "end") {
		return 0
	}
	start, end := scalarType(s.Field(0).Type), scalarType(s.Field(1).Type)
	if start != end || start != table.Date && start != table.DateTime && start != table.Timestamp {
		return 0
	}
	return start
}

// scalarType is the column type that a type of single values becomes by itself; 0 for none.
func scalarType(t arrow.DataType) table.Type {
	switch t.ID() {
	case arrow.BOOL:
		return table.Bool
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64, arrow.DURATION:
		return table.Int64
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		return table.Float64
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return table.String
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY:
		return table.Bytes
	case arrow.DATE32, arrow.DATE64:
		return table.Date
	case arrow.TIME32, arrow.TIME64:
		return table.Time
	case arrow.TIMESTAMP:
		if t.(*arrow.TimestampType).TimeZone == "" {
			return table.DateTime
		}
		return table.Timestamp
	case arrow.INTERVAL_MONTHS, arrow.INTERVAL_DAY_TIME, arrow.INTERVAL_MONTH_DAY_NANO:
		return table.Interval
	}
	return 0
}

// decimal is the narrowest column that keeps every value of a decimal type, and BIGNUMERIC for those of 256 bits.
func (d *deriver) decimal(t arrow.DecimalType, path string) table.Field {
	precision, scale := int64(t.GetPrecision()), int64(t.GetScale())
	if scale < 0 {
		precision, scale = precision-scale, 0
	}
	for _, typ := range []table.Type{table.Numeric, table.BigNumeric} {
		if typ == table.Numeric && t.BitWidth() > 128 {
			continue // 256 bits are how the Storage Read API sends a BIGNUMERIC, whatever its parameters
		}
		integer, fraction := typ.DecimalDigits()
		if scale > fraction || precision-scale > integer {
			continue
		}
		if precision == integer+fraction {
			return table.Field{Type: typ} // the type's own
		}
		return table.Field{Type: typ, Precision: max(precision, scale, 1), Scale: scale}
	}
	d.fault(row.KindDecimal, path, "the Arrow type "+t.String()+" has more digits than BIGNUMERIC keeps, 38 before the point and 38 behind it")
	return table.Field{Type: table.BigNumeric}
}
