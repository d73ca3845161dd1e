package arrowrow

import (
	"errors"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// load is how a value lies in an Arrow array.
type load uint8

const (
	loadNone load = iota
	loadInt8
	loadInt16
	loadInt32
	loadInt64
	loadUint8
	loadUint16
	loadUint32
	loadUint64
	loadBool
	loadFloat16
	loadFloat32
	loadFloat64
	loadText
	loadView
	loadFixed
	loadDecimal
	loadMonths
	loadDayTime
	loadMonthDayNano
	loadStruct
)

var loads = map[arrow.Type]load{
	arrow.BOOL: loadBool, arrow.INT8: loadInt8, arrow.INT16: loadInt16, arrow.INT32: loadInt32, arrow.INT64: loadInt64,
	arrow.UINT8: loadUint8, arrow.UINT16: loadUint16, arrow.UINT32: loadUint32, arrow.UINT64: loadUint64,
	arrow.FLOAT16: loadFloat16, arrow.FLOAT32: loadFloat32, arrow.FLOAT64: loadFloat64,
	arrow.STRING: loadText, arrow.LARGE_STRING: loadText, arrow.STRING_VIEW: loadView,
	arrow.BINARY: loadText, arrow.LARGE_BINARY: loadText, arrow.BINARY_VIEW: loadView, arrow.FIXED_SIZE_BINARY: loadFixed,
	arrow.DATE32: loadInt32, arrow.DATE64: loadInt64, arrow.TIME32: loadInt32, arrow.TIME64: loadInt64,
	arrow.TIMESTAMP: loadInt64, arrow.DURATION: loadInt64,
	arrow.DECIMAL32: loadDecimal, arrow.DECIMAL64: loadDecimal, arrow.DECIMAL128: loadDecimal, arrow.DECIMAL256: loadDecimal,
	arrow.INTERVAL_MONTHS: loadMonths, arrow.INTERVAL_DAY_TIME: loadDayTime, arrow.INTERVAL_MONTH_DAY_NANO: loadMonthDayNano,
	arrow.STRUCT: loadStruct,
}

// list is how the elements of a REPEATED column lie in an Arrow array.
type list uint8

const (
	listNone list = iota
	listOffsets
	listFixed
	listViews
)

// value is the plan of one value that is no list.
type value struct {
	typ     table.Type // of the column
	load    load
	width   int   // bytes, loadFixed and loadDecimal
	scale   int   // loadDecimal
	num     int64 // units of the column in one of Arrow's, for times
	den     int64 // and the reverse; one of the two is 1
	dict    bool
	decimal row.Decimal
	members []column
}

// column is the plan of a column, or of a member of a STRUCT.
type column struct {
	value
	name     string
	at       int // where the Arrow column lies among its siblings; -1 when there is none
	tag      string
	list     list
	size     int // of lists of a fixed size
	packed   bool
	required bool
}

// plan is how batches of an Arrow schema become rows of a table.
type plan struct {
	serializer *Serializer
	arrow      *arrow.Schema
	schema     *table.Schema
	descriptor *descriptorpb.DescriptorProto
	columns    []column

	once   sync.Once // for direct
	direct *Direct   // nil when batches cannot go as they are
}

type compiler struct {
	ignoreUnknown bool
	faults        []error
}

func (c *compiler) fault(kind row.Kind, path, format string, args ...any) {
	c.faults = append(c.faults, fault(kind, path, fmt.Sprintf(format, args...)))
}

// compile makes the plan of an Arrow schema for a table.
func compile(s *arrow.Schema, t *table.Schema, ignoreUnknown bool) (*plan, error) {
	d, err := row.Descriptor(t)
	if err != nil {
		return nil, err
	}
	c := compiler{ignoreUnknown: ignoreUnknown}
	columns := c.columns(s.Fields(), t.Fields, "")
	if err := errors.Join(c.faults...); err != nil {
		return nil, err
	}
	return &plan{arrow: s, schema: t, descriptor: d, columns: columns}, nil
}

func (c *compiler) columns(fields []arrow.Field, targets []table.Field, parent string) []column {
	at := c.positions(fields, parent)
	out := make([]column, len(targets))
	for i := range targets {
		target := &targets[i]
		path := table.Join(parent, target.Name)
		key := table.FoldName(target.Name)
		out[i] = column{name: target.Name, at: -1, required: target.Mode == table.Required,
			packed: target.Mode == table.Repeated && row.Packed(target), tag: string(row.Tag(i, target))}
		from, ok := at[key]
		delete(at, key)
		switch {
		case ok:
			out[i].at = from
			c.column(&out[i], &fields[from], target, path)
		case target.Mode == table.Required:
			c.fault(row.KindSchema, path, "the column is REQUIRED, and the Arrow schema has no such field")
		}
	}
	if !c.ignoreUnknown {
		for _, from := range at {
			c.fault(row.KindSchema, table.Join(parent, fields[from].Name), "the table has no such column: leave it out, add it, or ignore unknown fields")
		}
	}
	return out
}

// positions are the places of fields by their names as BigQuery compares them.
func (c *compiler) positions(fields []arrow.Field, parent string) map[string]int {
	at := make(map[string]int, len(fields))
	for i := range fields {
		key := table.FoldName(fields[i].Name)
		if first, twice := at[key]; twice {
			c.fault(row.KindCase, table.Join(parent, fields[i].Name), "is the same name as %q: BigQuery ignores case", fields[first].Name)
			continue
		}
		at[key] = i
	}
	return at
}

func (c *compiler) column(out *column, f *arrow.Field, target *table.Field, path string) {
	t, _ := storage(f)
	elem, repeated := element(t)
	if repeated != (target.Mode == table.Repeated) {
		c.fault(row.KindColType, path, "the Arrow type %s does not fit a %v column", t, target.Mode)
		return
	}
	if !repeated {
		c.value(&out.value, t, target, path)
		return
	}
	out.list = listOffsets
	switch l := t.(type) {
	case *arrow.FixedSizeListType:
		out.list, out.size = listFixed, int(l.Len())
	case *arrow.ListViewType, *arrow.LargeListViewType:
		out.list = listViews
	}
	inner, _ := storage(&elem)
	c.value(&out.value, inner, target, path)
}

// value plans a value of the Arrow type t, which is the storage of an extension type.
func (c *compiler) value(v *value, t arrow.DataType, target *table.Field, path string) {
	v.typ = target.Type
	if d, ok := t.(*arrow.DictionaryType); ok {
		v.dict, t = true, d.ValueType
	}
	v.load, v.num, v.den = loads[t.ID()], 1, 1
	if !v.fits(t, target) {
		c.fault(row.KindColType, path, "the Arrow type %s does not fit a %v column", t, target.Type)
		return
	}
	switch target.Type {
	case table.Struct, table.Range:
		v.members = c.columns(t.(*arrow.StructType).Fields(), row.Members(target), path)
	case table.Numeric, table.BigNumeric:
		v.decimal = row.DecimalOf(target)
	}
}

// fits says whether values of an Arrow type have a form in a column, and notes what that takes.
func (v *value) fits(t arrow.DataType, target *table.Field) bool {
	switch t := t.(type) {
	case arrow.DecimalType:
		v.width, v.scale = t.BitWidth()/8, int(t.GetScale())
		return target.Type == table.Numeric || target.Type == table.BigNumeric
	case *arrow.FixedSizeBinaryType:
		v.width = t.ByteWidth
	case *arrow.Date64Type:
		v.den = 86_400_000
	case *arrow.DurationType:
		v.units(t.Unit)
	case *arrow.Time32Type:
		v.units(t.Unit)
	case *arrow.Time64Type:
		v.units(t.Unit)
	case *arrow.TimestampType:
		v.units(t.Unit)
	}
	natural := scalarType(t)
	switch target.Type {
	case table.Struct, table.Range:
		return v.load == loadStruct
	case table.Float64:
		return natural == table.Float64 || v.load <= loadUint64 && natural == table.Int64 && t.ID() != arrow.DURATION
	case table.Numeric, table.BigNumeric:
		return v.load <= loadUint64 && natural == table.Int64 && t.ID() != arrow.DURATION
	case table.JSON, table.Geography:
		return natural == table.String
	}
	return natural == target.Type
}

// units notes how a unit of time becomes microseconds.
func (v *value) units(u arrow.TimeUnit) {
	switch u {
	case arrow.Second:
		v.num = 1_000_000
	case arrow.Millisecond:
		v.num = 1000
	case arrow.Nanosecond:
		v.den = 1000
	}
}
