package copyrow

import (
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// record is how the columns of a row, or the members of a STRUCT, are written.
type record struct {
	columns []column // one for each that is read
}

// column is how one column is written.
type column struct {
	name     string
	skip     bool
	tag      []byte
	required bool
	repeated bool
	packed   bool
	value    value
}

// value is how one value is written, without its tag.
type value struct {
	op      op
	decimal row.Decimal
	members *record
}

type op uint8

const (
	opInt op = iota + 1
	opBool
	opFloat
	opBytes
	opTime
	opDateTime
	opDecimal
	opInterval
	opStruct
)

var ops = map[table.Type]op{
	table.Int64: opInt, table.Date: opInt, table.Timestamp: opInt, table.Bool: opBool, table.Float64: opFloat,
	table.String: opBytes, table.Bytes: opBytes, table.JSON: opBytes, table.Geography: opBytes, table.Time: opTime, table.DateTime: opDateTime,
	table.Numeric: opDecimal, table.BigNumeric: opDecimal, table.Interval: opInterval, table.Struct: opStruct, table.Range: opStruct,
}

// compile plans columns that are read as columns that are written.
func (e *Encoder) compile(read, written []table.Field) (*record, *row.Error) {
	p := &record{columns: make([]column, len(read))}
	met := make([]bool, len(written))
	for i := range read {
		k := find(written, read[i].Name)
		if k < 0 && e.options.IgnoreUnknown {
			p.columns[i].skip = true
			continue
		}
		if k < 0 {
			return nil, fault(row.KindSchema, read[i].Name, "the table that is written has no such column: leave it out of the columns that are read, or ignore unknown fields")
		}
		met[k] = true
		c, fault := e.column(&read[i], &written[k])
		if fault != nil {
			return nil, fault.Within(written[k].Name)
		}
		c.tag = row.Tag(k, &written[k])
		p.columns[i] = c
	}
	for k := range written {
		if !met[k] && written[k].Mode == table.Required {
			return nil, fault(row.KindSchema, written[k].Name, "the column is REQUIRED and is not read")
		}
	}
	return p, nil
}

func find(fields []table.Field, name string) int {
	for i := range fields {
		if strings.EqualFold(fields[i].Name, name) {
			return i
		}
	}
	return -1
}

func fault(k row.Kind, path, msg string) *row.Error {
	return &row.Error{Kind: k, Path: path, Offset: -1, Msg: msg}
}

func (e *Encoder) column(read, written *table.Field) (column, *row.Error) {
	c := column{name: written.Name, required: written.Mode == table.Required, repeated: written.Mode == table.Repeated, packed: row.Packed(written)}
	if (read.Mode == table.Repeated) != c.repeated {
		return c, fault(row.KindSchema, "", "one of the columns that are read and written is REPEATED, the other is not")
	}
	if !compatible(read, written) {
		return c, fault(row.KindSchema, "", fmt.Sprintf("a column of type %s is read, and one of type %s is written", read.TypeText(), written.TypeText()))
	}
	c.value.op = ops[written.Type]
	switch c.value.op {
	case opDecimal:
		c.value.decimal = row.DecimalOf(written)
	case opStruct:
		var fault *row.Error
		c.value.members, fault = e.compile(row.Members(read), row.Members(written))
		return c, fault
	}
	return c, nil
}

// compatible says whether a type's values can be those of another. Within STRUCTs and RANGEs the members decide.
func compatible(read, written *table.Field) bool {
	decimal := func(t table.Type) bool { return t == table.Numeric || t == table.BigNumeric }
	return read.Type == written.Type && read.Range == written.Range || decimal(read.Type) && decimal(written.Type)
}
