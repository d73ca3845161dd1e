package sqlrow

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// printed is a type whose values are written as JSON.
type printed struct {
	kind    Kind
	scale   int // of Decimal
	decimal row.Decimal
	names   []string  // of Row: each as JSON, with a colon behind it
	members []printed // of Row, of Array and Map the one of elements and values
	path    []string  // of Row: the names as they are
}

// printer plans the JSON of a type. The error is a *row.Error that names the part that JSON has no form for.
func printer(t *Type, path string) (*printed, error) {
	p := &printed{kind: t.Kind, scale: t.Scale}
	switch t.Kind {
	case Row:
		return p, p.structure(t, path)
	case Array:
		return p, p.member(t.Elem, path)
	case Map:
		if !t.Key.Kind.text() {
			return nil, fault(row.KindColType, path, fmt.Sprintf("a MAP with keys of %v in JSON: expected keys that are text", t.Key))
		}
		return p, p.member(t.Elem, path)
	case Decimal:
		p.decimal = row.DecimalOf(&table.Field{Type: table.BigNumeric, Precision: int64(t.Precision), Scale: int64(t.Scale)})
	case Boolean, TinyInt, SmallInt, Int, BigInt, Float, Double, Char, Varchar, Binary, Varbinary, Date:
	case Time, Timestamp, TimestampLTZ:
		if t.Precision < 0 || t.Precision > 6 {
			return nil, fault(row.KindColType, path, t.String()+" in JSON: expected a precision of at most 6")
		}
	default:
		return nil, fault(row.KindColType, path, t.String()+" has no form in JSON: expected another type, or a cast to STRING")
	}
	return p, nil
}

func (p *printed) structure(t *Type, path string) error {
	if len(t.Fields) == 0 {
		return fault(row.KindEmpty, path, "a ROW without members")
	}
	for i := range t.Fields {
		f := &t.Fields[i]
		name, err := jsontext.AppendQuote(nil, f.Name)
		if err != nil {
			return fault(row.KindName, path, "the name of a member is not valid UTF-8")
		}
		p.names, p.path = append(p.names, string(name)+":"), append(p.path, f.Name)
		if err := p.member(&f.Type, table.Join(path, f.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (p *printed) member(t *Type, path string) error {
	m, err := printer(t, path)
	if err == nil {
		p.members = append(p.members, *m)
	}
	return err
}

// append writes a value.
func (p *printed) append(buf []byte, v *row.Value) ([]byte, *row.Error) {
	if v.Null {
		return append(buf, "null"...), nil
	}
	switch p.kind {
	case Boolean:
		return strconv.AppendBool(buf, v.Int != 0), nil
	case TinyInt, SmallInt, Int, BigInt:
		return strconv.AppendInt(buf, v.Int, 10), nil
	case Float, Double:
		return p.float(buf, math.Float64frombits(uint64(v.Int)))
	case Decimal:
		return p.number(buf, v)
	case Char, Varchar:
		return quoted(buf, v.Bytes)
	case Binary, Varbinary:
		buf = base64.StdEncoding.AppendEncode(append(buf, '"'), v.Bytes)
		return append(buf, '"'), nil
	case Row:
		return p.object(buf, v.List)
	case Array:
		return p.array(buf, v.List)
	case Map:
		return p.entries(buf, v.List)
	}
	return p.time(buf, v.Int)
}

func quoted(buf, text []byte) ([]byte, *row.Error) {
	out, err := jsontext.AppendQuote(buf, text)
	if err != nil {
		return buf, fault(row.KindText, "", "the text is not valid UTF-8")
	}
	return out, nil
}

// float writes a number as encoding/json does: the fewest digits that give it back, with an exponent where it is very small
// or large.
func (p *printed) float(buf []byte, v float64) ([]byte, *row.Error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return buf, fault(row.KindPrint, "", "NaN and the infinities have no form in JSON")
	}
	bits := 64
	if p.kind == Float {
		bits = 32
	}
	if size := math.Abs(v); size == 0 || size >= 1e-6 && size < 1e21 {
		return strconv.AppendFloat(buf, v, 'f', -1, bits), nil
	}
	start := len(buf)
	buf = strconv.AppendFloat(buf, v, 'e', -1, bits)
	if n := len(buf); bytes.HasSuffix(buf[start:n-1], []byte("e-0")) {
		buf = append(buf[:n-2], buf[n-1])
	}
	return buf, nil
}

// number writes a decimal with all digits of its scale.
func (p *printed) number(buf []byte, v *row.Value) ([]byte, *row.Error) {
	n, err := row.ScaledFromBigEndian(v.Bytes)
	if err == nil {
		n, err = p.decimal.Rescale(n, int(v.Int))
	}
	if err != nil {
		return buf, row.At(err, "", -1)
	}
	start := len(buf)
	buf = n.AppendText(buf, p.decimal.Scale())
	if p.scale == 0 {
		return buf, nil
	}
	point := bytes.IndexByte(buf[start:], '.')
	if point < 0 {
		point = len(buf) - start
		buf = append(buf, '.')
	}
	for len(buf)-start-point-1 < p.scale {
		buf = append(buf, '0')
	}
	return buf, nil
}

func (p *printed) time(buf []byte, v int64) ([]byte, *row.Error) {
	check, write := row.CheckDays, row.AppendDate
	switch p.kind {
	case Time:
		check, write = row.CheckTime, row.AppendTime
	case Timestamp:
		check, write = row.CheckDateTime, row.AppendDateTime
	case TimestampLTZ:
		check, write = row.CheckMicros, row.AppendTimestamp
	}
	if err := check(v); err != nil {
		return buf, row.At(err, "", -1)
	}
	return append(write(append(buf, '"'), v), '"'), nil
}

func (p *printed) object(buf []byte, members []row.Value) (_ []byte, err *row.Error) {
	if len(members) != len(p.members) {
		return buf, fault(row.KindType, "", fmt.Sprintf("%d members, expected %d", len(members), len(p.members)))
	}
	buf = append(buf, '{')
	for i := range p.members {
		if i > 0 {
			buf = append(buf, ',')
		}
		if buf, err = p.members[i].append(append(buf, p.names[i]...), &members[i]); err != nil {
			return buf, err.Within(p.path[i])
		}
	}
	return append(buf, '}'), nil
}

func (p *printed) array(buf []byte, elements []row.Value) (_ []byte, err *row.Error) {
	buf = append(buf, '[')
	for i := range elements {
		if i > 0 {
			buf = append(buf, ',')
		}
		if buf, err = p.members[0].append(buf, &elements[i]); err != nil {
			return buf, err.Element(i)
		}
	}
	return append(buf, ']'), nil
}

func (p *printed) entries(buf []byte, entries []row.Value) (_ []byte, err *row.Error) {
	buf = append(buf, '{')
	for i := range entries {
		pair := entries[i].List
		switch {
		case entries[i].Null || len(pair) != 2:
			return buf, fault(row.KindType, "", "expected entries of a key and a value")
		case pair[0].Null:
			return buf, fault(row.KindNullKey, "key", "NULL as a key")
		case i > 0:
			buf = append(buf, ',')
		}
		if buf, err = quoted(buf, pair[0].Bytes); err != nil {
			return buf, err.Within("key")
		}
		if buf, err = p.members[0].append(append(buf, ':'), &pair[1]); err != nil {
			return buf, err.Within("value")
		}
	}
	return append(buf, '}'), nil
}
