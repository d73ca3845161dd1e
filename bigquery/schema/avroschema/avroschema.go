// Package avroschema turns a table's schema into an Avro schema and back, losing nothing.
//
// Values are as file loads take them: DATETIME is a long, local-timestamp-micros, decimals are bytes. What Avro has no type for
// carries BigQuery's own annotation, sqlType. What Avro has no place for at all, such as policy tags, collations and defaults,
// lies in a property of the root record, [table.SchemaKey], which programs that do not know it ignore.
package avroschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/avrorow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Write is the Avro schema of a table's rows. The error joins the columns whose names Avro cannot hold, and the faults of the
// schema, as *row.Error.
func Write(s *table.Schema) (string, error) {
	if err := row.CheckSchema(s); err != nil {
		return "", err
	}
	if faults := names(nil, s.Fields, ""); len(faults) > 0 {
		return "", errors.Join(faults...)
	}
	return string(root(s, true)), nil
}

func names(faults []error, fields []table.Field, parent string) []error {
	for i := range fields {
		f := &fields[i]
		path := table.Join(parent, f.Name)
		if !table.Identifier(f.Name) {
			faults = append(faults, &row.Error{Kind: row.KindName, Path: path, Offset: -1,
				Msg: "Avro names are letters, digits and underscores, and begin with no digit"})
		}
		faults = names(faults, f.Fields, path)
	}
	return faults
}

// Read is the table's schema that an Avro schema was written for. One that Write did not write, or that was changed since, is
// read as package avrorow reads it, BigQuery's annotations included; see there for the errors.
func Read(text string) (*table.Schema, error) {
	var kept struct {
		Schema json.RawMessage `json:"bigquery.schema"`
	}
	if json.Unmarshal([]byte(text), &kept) == nil && kept.Schema != nil {
		if s, err := table.ParseSchemaJSON(kept.Schema); err == nil && same(text, root(s, false)) {
			return s, nil
		}
	}
	return avrorow.Schema(text, avrorow.Options{RecognizeSQLTypes: true})
}

// same says whether text is plain but for the schema that it carries.
func same(text string, plain []byte) bool {
	var a, b map[string]any
	if json.Unmarshal([]byte(text), &a) != nil || json.Unmarshal(plain, &b) != nil {
		return false
	}
	delete(a, table.SchemaKey)
	return reflect.DeepEqual(a, b)
}

// root is the record of rows, with the table's schema or without.
func root(s *table.Schema, whole bool) []byte {
	w := writer{}
	w.add(`{"type":"record","name":"Row","fields":`)
	w.fields(s.Fields, "Row")
	if whole {
		w.add(`,"` + table.SchemaKey + `":`)
		w.buf = append(w.buf, s.CompactJSON()...)
	}
	w.add(`}`)
	return w.buf
}

type writer struct {
	buf    []byte
	ranges [table.Struct + 1]bool // RANGE types that have been defined, by element
	spans  bool                   // INTERVAL has
}

func (w *writer) add(s string) { w.buf = append(w.buf, s...) }

func (w *writer) text(s string) {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings always encode
	}
	w.buf = append(w.buf, b...)
}

func (w *writer) fields(fields []table.Field, namespace string) {
	w.add(`[`)
	for i := range fields {
		if i > 0 {
			w.add(`,`)
		}
		w.field(&fields[i], namespace)
	}
	w.add(`]`)
}

func (w *writer) field(f *table.Field, namespace string) {
	w.add(`{"name":"` + f.Name + `"`)
	if f.Description != "" {
		w.add(`,"doc":`)
		w.text(f.Description)
	}
	w.add(`,"type":`)
	switch f.Mode {
	case table.Repeated:
		w.add(`{"type":"array","items":`)
		w.value(f, namespace)
		w.add(`}`)
	case table.Required:
		w.value(f, namespace)
	default:
		w.add(`["null",`)
		w.value(f, namespace)
		w.add(`],"default":null`)
	}
	w.add(`}`)
}

var scalars = map[table.Type]string{
	table.Bool:      `"boolean"`,
	table.Int64:     `"long"`,
	table.Float64:   `"double"`,
	table.String:    `"string"`,
	table.Bytes:     `"bytes"`,
	table.JSON:      `{"type":"string","sqlType":"JSON"}`,
	table.Geography: `{"type":"string","sqlType":"GEOGRAPHY"}`,
	table.Date:      `{"type":"int","logicalType":"date"}`,
	table.Time:      `{"type":"long","logicalType":"time-micros"}`,
	table.DateTime:  `{"type":"long","logicalType":"local-timestamp-micros"}`,
	table.Timestamp: `{"type":"long","logicalType":"timestamp-micros"}`,
}

func (w *writer) value(f *table.Field, namespace string) {
	switch f.Type {
	case table.Struct:
		w.add(`{"type":"record","name":"` + f.Name + `","namespace":"` + namespace + `","fields":`)
		w.fields(f.Fields, namespace+"."+f.Name)
		w.add(`}`)
	case table.Numeric, table.BigNumeric:
		d := row.DecimalOf(f)
		w.add(`{"type":"bytes","logicalType":"decimal","precision":` + strconv.Itoa(d.Precision()) + `,"scale":` + strconv.Itoa(d.FractionDigits()) + `}`)
	case table.Range:
		w.rangeType(f.Range)
	case table.Interval:
		w.interval()
	default:
		w.add(scalars[f.Type])
	}
}

// rangeType and interval are the records of the Storage Read API, which are defined once and then named (BigQuery documentation,
// "Avro schema details"; the second measured 2026-08).
func (w *writer) rangeType(element table.Type) {
	name := "RANGE_" + element.String()
	if w.ranges[element] {
		w.add(`"google.sqlType.` + name + `"`)
		return
	}
	w.ranges[element] = true
	end := fmt.Sprintf(`"type":["null",%s],"default":null`, scalars[element])
	w.add(`{"type":"record","name":"` + name + `","namespace":"google.sqlType","sqlType":"RANGE","fields":[{"name":"start",` + end + `},{"name":"end",` + end + `}]}`)
}

func (w *writer) interval() {
	if w.spans {
		w.add(`"google.sqlType.INTERVAL"`)
		return
	}
	w.spans = true
	w.add(`{"type":"record","name":"INTERVAL","namespace":"google.sqlType","fields":[{"name":"months","type":"int"},{"name":"days","type":"int"},{"name":"microseconds","type":"long"}]}`)
}
