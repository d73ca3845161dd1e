package sqlrow

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// encoder writes the values of one column, behind its tag. It is made once for each declared column and never changes.
type encoder struct {
	name     string
	kind     Kind // of one value: of an ARRAY its elements
	tag      string
	repeated bool
	packed   bool
	required bool
	print    *printed    // a ROW that becomes JSON
	decimal  row.Decimal // of Decimal
	members  []encoder   // of Row; of Map and Multiset the key and the value
}

func encoders(columns []Column, fields []table.Field) []encoder {
	es := make([]encoder, len(columns))
	for i := range columns {
		es[i] = newEncoder(&columns[i].Type, &fields[i], i)
	}
	return es
}

// newEncoder makes the encoder of column i, a type that Schema has made f of.
func newEncoder(t *Type, f *table.Field, i int) encoder {
	e := encoder{name: f.Name, kind: t.Kind, tag: string(row.Tag(i, f)), required: f.Mode == table.Required}
	switch t.Kind {
	case Array:
		e.repeated, e.packed = true, row.Packed(f)
		t = t.Elem
		e.kind = t.Kind
	case Map:
		e.members = []encoder{newEncoder(t.Key, &f.Fields[0], 0), newEncoder(t.Elem, &f.Fields[1], 1)}
	case Multiset:
		e.members = []encoder{newEncoder(t.Elem, &f.Fields[0], 0), newEncoder(&count, &f.Fields[1], 1)}
	}
	switch {
	case e.kind == Row && f.Type == table.JSON:
		e.print, _ = printer(t, f.Name) // Schema has reported its faults
	case e.kind == Row:
		e.members = encoders(t.Fields, f.Fields)
	case e.kind == Decimal:
		e.decimal = row.DecimalOf(f)
	}
	return e
}

// append appends the column with everything it has.
func (e *encoder) append(buf []byte, v *row.Value) ([]byte, *row.Error) {
	switch {
	case e.repeated:
		return e.list(buf, v.List)
	case e.kind == Map || e.kind == Multiset:
		return e.entries(buf, v.List)
	case v.Null && e.required:
		return buf, fault(row.KindRequired, e.name, "NULL for a REQUIRED column")
	case v.Null:
		return buf, nil
	}
	return e.tagged(buf, v)
}

func (e *encoder) tagged(buf []byte, v *row.Value) ([]byte, *row.Error) {
	buf, err := e.value(append(buf, e.tag...), v)
	if err != nil {
		return buf, err.Within(e.name)
	}
	return buf, nil
}

func (e *encoder) list(buf []byte, elements []row.Value) ([]byte, *row.Error) {
	start := 0
	if e.packed && len(elements) > 0 {
		buf, start = row.BeginLength(append(buf, e.tag...))
	}
	for i := range elements {
		if elements[i].Null {
			return buf, fault(row.KindNullElem, "", "NULL in an ARRAY").Element(i).Within(e.name)
		}
		if !e.packed {
			buf = append(buf, e.tag...)
		}
		var err *row.Error
		if buf, err = e.value(buf, &elements[i]); err != nil {
			return buf, err.Element(i).Within(e.name)
		}
	}
	if start > 0 {
		buf = row.EndLength(buf, start)
	}
	return buf, nil
}

// entries appends an entry of a map, or an element of a multiset with its count, as a row of its own.
func (e *encoder) entries(buf []byte, entries []row.Value) ([]byte, *row.Error) {
	for i := range entries {
		pair := entries[i].List
		if entries[i].Null || len(pair) != 2 {
			return buf, fault(row.KindType, e.name, "expected entries of a key and a value")
		}
		if pair[0].Null {
			return buf, fault(row.KindNullKey, table.Join(e.name, "key"), "NULL as a key")
		}
		var start int
		buf, start = row.BeginLength(append(buf, e.tag...))
		var err *row.Error
		if buf, err = e.all(buf, pair); err != nil {
			return buf, err.Within(e.name)
		}
		buf = row.EndLength(buf, start)
	}
	return buf, nil
}

func (e *encoder) all(buf []byte, values []row.Value) (_ []byte, err *row.Error) {
	if len(values) != len(e.members) {
		return buf, fault(row.KindType, "", fmt.Sprintf("%d members, expected %d", len(values), len(e.members)))
	}
	for i := range e.members {
		if buf, err = e.members[i].append(buf, &values[i]); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// value appends one value that is not NULL, without its tag.
func (e *encoder) value(buf []byte, v *row.Value) ([]byte, *row.Error) {
	switch e.kind {
	case Boolean:
		return row.AppendBool(buf, v.Int != 0), nil
	case TinyInt, SmallInt, Int, BigInt:
		return row.AppendInt(buf, v.Int), nil
	case Float, Double:
		return row.AppendFloat(buf, math.Float64frombits(uint64(v.Int))), nil
	case Char, Varchar:
		if !utf8.Valid(v.Bytes) {
			return buf, fault(row.KindText, "", "the text is not valid UTF-8")
		}
		return row.AppendText(buf, v.Bytes), nil
	case Binary, Varbinary:
		return row.AppendText(buf, v.Bytes), nil
	case Decimal:
		return e.number(buf, v)
	case Row:
		return e.structure(buf, v)
	}
	return e.time(buf, v.Int)
}

func (e *encoder) time(buf []byte, v int64) ([]byte, *row.Error) {
	var err error
	switch e.kind {
	case Date:
		err = row.CheckDays(v)
	case Time:
		if err = row.CheckTime(v); err == nil {
			v = row.PackTime(v)
		}
	case Timestamp:
		if err = row.CheckDateTime(v); err == nil {
			v = row.PackDateTime(v)
		}
	default:
		err = row.CheckMicros(v)
	}
	if err != nil {
		return buf, row.At(err, "", -1)
	}
	return row.AppendInt(buf, v), nil
}

func (e *encoder) number(buf []byte, v *row.Value) ([]byte, *row.Error) {
	n, err := row.ScaledFromBigEndian(v.Bytes)
	if err == nil {
		n, err = e.decimal.Rescale(n, int(v.Int))
	}
	if err != nil {
		return buf, row.At(err, "", -1)
	}
	return row.AppendScaled(buf, n), nil
}

func (e *encoder) structure(buf []byte, v *row.Value) ([]byte, *row.Error) {
	buf, start := row.BeginLength(buf)
	var err *row.Error
	if e.print != nil {
		buf, err = e.print.append(buf, v)
	} else {
		buf, err = e.all(buf, v.List)
	}
	if err != nil {
		return buf, err
	}
	return row.EndLength(buf, start), nil
}
