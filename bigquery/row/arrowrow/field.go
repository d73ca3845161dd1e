package arrowrow

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// AppendField appends the text of a row's value at a dotted path of names, which match exactly: what records are routed by.
// Texts, whole numbers and booleans have such a text. Errors are *row.Error values: R-REQUIRED where the path leads nowhere
// or to null, R-TYPE where the value has no such text.
func AppendField(buf []byte, rec Row, path string) ([]byte, error) {
	if rec.Batch == nil || uint(rec.Index) >= uint(rec.Batch.rows) {
		return buf, errNoRow
	}
	fields, arrays, i := rec.Batch.Schema().Fields(), rec.Batch.columns, rec.Index
	rest := path
	for {
		name, more, deeper := strings.Cut(rest, ".")
		at := -1
		for k := range fields {
			if fields[k].Name == name {
				at = k
				break
			}
		}
		if at < 0 || arrays[at].null(i) {
			return buf, fault(row.KindRequired, path, "there is no value, and the record is routed by it")
		}
		t, _ := storage(&fields[at])
		v := &arrays[at]
		if !deeper {
			return appendScalar(buf, t, v, i, path)
		}
		s, ok := t.(*arrow.StructType)
		if !ok {
			return buf, fault(row.KindType, path, "the path leads through a value that is no struct")
		}
		fields, arrays, i, rest = s.Fields(), v.children, v.offset+i, more
	}
}

func appendScalar(buf []byte, t arrow.DataType, v *vector, i int, path string) ([]byte, error) {
	if d, ok := t.(*arrow.DictionaryType); ok {
		n, _ := v.integer(v.index, i) // checked by NewBatch
		if t, v, i = d.ValueType, v.dict, int(n); v.null(i) {
			return buf, fault(row.KindRequired, path, "there is no value, and the record is routed by it")
		}
	}
	l := loads[t.ID()]
	switch {
	case t.ID() == arrow.BOOL:
		return strconv.AppendBool(buf, v.data[(v.offset+i)>>3]>>((v.offset+i)&7)&1 == 1), nil
	case text(t):
		return append(buf, v.text(&value{load: l}, i)...), nil
	case arrow.IsInteger(t.ID()):
		n, err := v.integer(l, i)
		if err != nil {
			return buf, row.At(err, path, -1)
		}
		return strconv.AppendInt(buf, n, 10), nil
	}
	return buf, fault(row.KindType, path, "records are routed by texts, whole numbers and booleans, not by "+t.String())
}
