package staging

import (
	"strconv"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// AvroSchema is the schema of a plan's datums, as JSON. The root record is called Row. The record of a STRUCT is called
// like its column, in a namespace made of the columns around it, so that columns of one name in two places are two types.
// A NULLABLE column is a union with null first, whose default is null.
func AvroSchema(p *Plan) string { return string(appendRecord(nil, "Row", "", p.Root)) }

func appendRecord(buf []byte, name, namespace string, m *Message) []byte {
	buf = append(buf, `{"type":"record","name":"`+name+`"`...)
	inner := name
	if namespace != "" {
		buf = append(buf, `,"namespace":"`+namespace+`"`...)
		inner = namespace + "." + name
	}
	buf = append(buf, `,"fields":[`...)
	for i := range m.Columns {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendField(buf, inner, &m.Columns[i])
	}
	return append(buf, `]}`...)
}

// appendField writes a field. Names are identifiers, so nothing in them needs to be escaped.
func appendField(buf []byte, namespace string, c *Column) []byte {
	buf = append(buf, `{"name":"`+c.Field.Name+`","type":`...)
	switch c.Field.Mode {
	case table.Repeated:
		buf = append(buf, `{"type":"array","items":`...)
		buf = append(appendType(buf, namespace, c), '}')
	case table.Required:
		buf = appendType(buf, namespace, c)
	default:
		buf = append(buf, `["null",`...)
		buf = append(appendType(buf, namespace, c), `],"default":null`...)
	}
	return append(buf, '}')
}

var avroTypes = map[table.Type]string{
	table.Bool:      `"boolean"`,
	table.Int64:     `"long"`,
	table.Float64:   `"double"`,
	table.String:    `"string"`,
	table.JSON:      `"string"`,
	table.Geography: `"string"`,
	table.Bytes:     `"bytes"`,
	table.Date:      `{"type":"int","logicalType":"date"}`,
	table.Time:      `{"type":"long","logicalType":"time-micros"}`,
	table.DateTime:  `{"type":"long","logicalType":"local-timestamp-micros"}`,
	table.Timestamp: `{"type":"long","logicalType":"timestamp-micros"}`,
}

func appendType(buf []byte, namespace string, c *Column) []byte {
	switch c.Field.Type {
	case table.Struct:
		return appendRecord(buf, c.Field.Name, namespace, c.Message)
	case table.Numeric, table.BigNumeric:
		d := row.DecimalOf(c.Field)
		buf = append(buf, `{"type":"bytes","logicalType":"decimal","precision":`...)
		buf = append(strconv.AppendInt(buf, int64(d.Precision()), 10), `,"scale":`...)
		return append(strconv.AppendInt(buf, int64(d.FractionDigits()), 10), '}')
	}
	return append(buf, avroTypes[c.Field.Type]...)
}
