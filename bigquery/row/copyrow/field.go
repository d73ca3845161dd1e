package copyrow

import (
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// AppendField appends the text of a row's value at a dotted path of column names, without regard to case: what rows are routed by.
// Texts, whole numbers, booleans and dates have such a text. Errors are *row.Error values: R-REQUIRED where the path leads nowhere
// or to NULL, R-TYPE where the value has no such text.
func AppendField(buf []byte, r *row.Row, path string) ([]byte, error) {
	fields, values, rest := r.Schema.Fields, r.Values, path
	for {
		name, more, deeper := strings.Cut(rest, ".")
		i := find(fields, name)
		if i < 0 || values[i].Null {
			return buf, fault(row.KindRequired, path, "there is no value, and the row is routed by it")
		}
		f := &fields[i]
		if !deeper {
			return appendScalar(buf, f, &values[i], path)
		}
		if f.Type != table.Struct || f.Mode == table.Repeated {
			return buf, fault(row.KindType, path, "the path leads through a value that is no STRUCT")
		}
		fields, values, rest = f.Fields, values[i].List, more
	}
}

func appendScalar(buf []byte, f *table.Field, v *row.Value, path string) ([]byte, error) {
	if f.Mode != table.Repeated {
		switch f.Type {
		case table.String:
			return append(buf, v.Bytes...), nil
		case table.Int64:
			return strconv.AppendInt(buf, v.Int, 10), nil
		case table.Bool:
			return strconv.AppendBool(buf, v.Int != 0), nil
		case table.Date:
			return row.AppendDate(buf, v.Int), nil
		}
	}
	return buf, fault(row.KindType, path, "rows are routed by texts, whole numbers, booleans and dates, not by "+f.TypeText())
}
