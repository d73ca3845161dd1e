package export

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/text"
)

// appendText writes one value that is not NULL as CSV has it, before quoting.
func appendText(dst []byte, f *schema.Field, a arrow.Array, i int) []byte {
	if v, ok := a.(*array.String); ok {
		if f.Picos() {
			return append(append(dst, strings.TrimSuffix(strings.Replace(v.Value(i), "T", " ", 1), "Z")...), " UTC"...)
		}
		return append(dst, v.Value(i)...)
	}
	return text.AppendCell(dst, f, a, i, func(dst []byte, micros int64) []byte {
		return append(text.AppendDateTime(dst, micros, ' '), " UTC"...)
	})
}

// csv writes rows of CSV.
type csv struct{ delimiter byte }

func newCSV(o Options) csv {
	switch o.Delimiter {
	case "":
		return csv{','}
	case `\t`, "tab":
		return csv{'\t'}
	}
	return csv{o.Delimiter[0]}
}

func (c csv) header(dst []byte, s *schema.Schema) []byte {
	for i, f := range s.Fields {
		if i > 0 {
			dst = append(dst, c.delimiter)
		}
		dst = c.quoted(dst, []byte(f.Name))
	}
	return append(dst, '\n')
}

// row writes a row; NULL is nothing, an empty text is quoted.
func (c csv) row(dst []byte, s *schema.Schema, b arrow.RecordBatch, i int) []byte {
	var cell []byte
	for k, f := range s.Fields {
		if k > 0 {
			dst = append(dst, c.delimiter)
		}
		a := b.Column(k)
		if a.IsNull(i) {
			continue
		}
		cell = appendText(cell[:0], f, a, i)
		dst = c.quoted(dst, cell)
	}
	return append(dst, '\n')
}

func (c csv) quoted(dst, cell []byte) []byte {
	if len(cell) > 0 && bytes.IndexByte(cell, c.delimiter) < 0 && !bytes.ContainsAny(cell, "\"\r\n") {
		return append(dst, cell...)
	}
	dst = append(dst, '"')
	for _, b := range cell {
		if b == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, b)
	}
	return append(dst, '"')
}

// appendObject writes a row or a STRUCT as a JSON object. Members that are NULL are left out; an INT64 is a string, so that no
// reader rounds it (BigQuery documentation, "Export table data to Cloud Storage", "Export format").
func appendObject(dst []byte, fields []*schema.Field, columns []arrow.Array, i int) []byte {
	dst = append(dst, '{')
	first := true
	for k, f := range fields {
		a := columns[k]
		if a.IsNull(i) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(quote(dst, f.Name), ':')
		if list, ok := a.(*array.List); ok {
			dst = appendArray(dst, f, list, i)
		} else {
			dst = appendJSON(dst, f, a, i)
		}
	}
	return append(dst, '}')
}

func quote(dst []byte, s string) []byte {
	out, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		panic(fmt.Sprintf("export: %v", err)) // the store holds valid UTF-8 only
	}
	return out
}

func appendArray(dst []byte, f *schema.Field, list *array.List, i int) []byte {
	dst = append(dst, '[')
	from, to := list.ValueOffsets(i)
	for k := from; k < to; k++ {
		if k > from {
			dst = append(dst, ',')
		}
		dst = appendJSON(dst, f, list.ListValues(), int(k))
	}
	return append(dst, ']')
}

func appendJSON(dst []byte, f *schema.Field, a arrow.Array, i int) []byte {
	switch v := a.(type) {
	case *array.Struct:
		if f.Type == schema.Struct {
			members := make([]arrow.Array, v.NumField())
			for k := range members {
				members[k] = v.Field(k)
			}
			return appendObject(dst, f.Fields, members, i)
		}
	case *array.Boolean:
		return strconv.AppendBool(dst, v.Value(i))
	case *array.Float64:
		if n := v.Value(i); !math.IsNaN(n) && !math.IsInf(n, 0) {
			return text.AppendFloat(dst, n)
		}
	case *array.String:
		if f.Type == schema.JSON {
			return append(dst, v.Value(i)...)
		}
	}
	return quote(dst, string(appendText(nil, f, a, i)))
}
