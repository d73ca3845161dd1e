package avro

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Picos is how a TIMESTAMP of picoseconds is written.
type Picos uint8

const (
	PicosAsMicros Picos = iota
	PicosAsNanos
	PicosAsText // ISO 8601 with twelve digits
)

// Options are a session's choices.
type Options struct {
	// DisplayNames gives every field its column's name as the property displayName, and those whose name Avro cannot hold a
	// placeholder for a name. Without it such a column is refused (avro.proto,
	// AvroSerializationOptions.enable_display_name_attribute).
	DisplayNames bool
	Picos        Picos
}

// avroName is what the Avro specification allows as a name.
var avroName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// describer writes the Avro schema of columns.
type describer struct {
	options Options
	records int             // structs named so far
	defined map[string]bool // records of google.sqlType that may be named instead of written again
}

// describe is the session's Avro schema as JSON.
func describe(s *schema.Schema, o Options) (string, error) {
	d := &describer{options: o, defined: map[string]bool{}}
	fields, err := d.fields(s.Fields, "")
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(record{Type: "record", Name: "__root__", Fields: fields})
	return string(text), err
}

type record struct {
	Type      string  `json:"type"`
	Name      string  `json:"name"`
	Namespace string  `json:"namespace,omitempty"`
	SQLType   string  `json:"sqlType,omitempty"`
	Fields    []field `json:"fields"`
}

type field struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	Type        any    `json:"type"`
}

type scalar struct {
	Type        string `json:"type"`
	LogicalType string `json:"logicalType,omitempty"`
	Precision   int64  `json:"precision,omitempty"`
	Scale       *int64 `json:"scale,omitempty"`
	SQLType     string `json:"sqlType,omitempty"`
}

type array struct {
	Type  string `json:"type"`
	Items any    `json:"items"`
}

func (d *describer) fields(in []*schema.Field, parent string) ([]field, error) {
	out := make([]field, len(in))
	taken := map[string]bool{}
	for i, f := range in {
		name, err := d.name(f.Name, parent, taken)
		if err != nil {
			return nil, err
		}
		out[i].Name = name
		if d.options.DisplayNames {
			out[i].DisplayName = f.Name
		}
		element, err := d.element(f, parent+f.Name+".")
		switch {
		case err != nil:
			return nil, err
		case f.Mode == schema.Repeated:
			out[i].Type = array{"array", element}
		case f.Mode == schema.Nullable:
			out[i].Type = []any{"null", element}
		default:
			out[i].Type = element
		}
	}
	return out, nil
}

// name is the Avro name of a column.
func (d *describer) name(column, parent string, taken map[string]bool) (string, error) {
	if avroName.MatchString(column) {
		taken[column] = true
		return column, nil
	}
	if !d.options.DisplayNames {
		return "", fmt.Errorf("column %s has a name that Avro cannot hold: set avro_serialization_options.enable_display_name_attribute, "+
			"select other columns, or read Arrow", parent+column)
	}
	base := "_" + strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, column)
	name := base
	for n := 1; taken[name]; n++ {
		name = base + "_" + strconv.Itoa(n)
	}
	taken[name] = true
	return name, nil
}

// element is the type of a value that is there.
func (d *describer) element(f *schema.Field, path string) (any, error) {
	switch f.Type {
	case schema.Struct:
		name := "__s_" + strconv.Itoa(d.records)
		d.records++
		fields, err := d.fields(f.Fields, path)
		return record{Type: "record", Name: name, Fields: fields}, err
	case schema.Range:
		return d.ranges(f), nil
	case schema.Interval:
		return d.once(record{Type: "record", Name: "INTERVAL", Namespace: "google.sqlType", SQLType: "INTERVAL", Fields: []field{
			{Name: "months", Type: "int"}, {Name: "days", Type: "int"}, {Name: "microseconds", Type: "long"},
		}}), nil
	}
	return d.scalar(f), nil
}

// ranges is a record of two ends, null where a range is unbounded.
func (d *describer) ranges(f *schema.Field) any {
	end := []any{"null", d.scalar(&schema.Field{Type: f.RangeElement})}
	return d.once(record{
		Type: "record", Name: "RANGE_" + f.RangeElement.String(), Namespace: "google.sqlType", SQLType: "RANGE",
		Fields: []field{{Name: "start", Type: end}, {Name: "end", Type: end}},
	})
}

// once is a record where it is used first, and its name from then on.
func (d *describer) once(r record) any {
	name := r.Namespace + "." + r.Name
	if d.defined[name] {
		return name
	}
	d.defined[name] = true
	return r
}

func (d *describer) scalar(f *schema.Field) any {
	switch f.Type {
	case schema.Bool:
		return "boolean"
	case schema.Int64:
		return "long"
	case schema.Float64:
		return "double"
	case schema.String:
		return "string"
	case schema.Bytes:
		return "bytes"
	case schema.Numeric, schema.BigNumeric:
		return decimal(f)
	case schema.Date:
		return scalar{Type: "int", LogicalType: "date"}
	case schema.Time:
		return scalar{Type: "long", LogicalType: "time-micros"}
	case schema.DateTime:
		return scalar{Type: "string", LogicalType: "datetime"}
	case schema.Timestamp:
		return d.timestamp(f)
	case schema.Geography, schema.JSON:
		return scalar{Type: "string", SQLType: f.Type.String()}
	}
	panic(fmt.Sprintf("avro: column %s has no type: %v", f.Name, f.Type))
}

// decimal has the column's own digits, or those of the bare type: 38 and 9, 77 and 38.
func decimal(f *schema.Field) any {
	precision, scale := int64(38), int64(9)
	switch {
	case f.Precision > 0:
		precision, scale = f.Precision, f.Scale
	case f.Type == schema.BigNumeric:
		precision, scale = 77, 38
	}
	return scalar{Type: "bytes", LogicalType: "decimal", Precision: precision, Scale: &scale}
}

func (d *describer) timestamp(f *schema.Field) any {
	switch {
	case f.Picos() && d.options.Picos == PicosAsNanos:
		return scalar{Type: "long", LogicalType: "timestamp-nanos"}
	case f.Picos() && d.options.Picos == PicosAsText:
		return scalar{Type: "string", SQLType: "TIMESTAMP"}
	}
	return scalar{Type: "long", LogicalType: "timestamp-micros"}
}
