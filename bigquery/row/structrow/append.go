package structrow

import (
	"encoding/json"
	"math/big"
	"time"
	"unicode/utf8"
	"unsafe"

	"cloud.google.com/go/civil"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/internal/gotime"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// This file reads Go values by offset. Every pointer here is derived from one of the record, by an offset or a length that
// reflect told when the plan was made, and none of them outlives the call.

var (
	errNil      = &row.ValueError{Kind: row.KindRequired, Msg: "nil, expected a value: the column is REQUIRED"}
	errNilElem  = &row.ValueError{Kind: row.KindNullElem, Msg: "nil within a slice: a REPEATED column holds no NULL"}
	errUnsigned = &row.ValueError{Kind: row.KindRange, Msg: "expected a number up to 9223372036854775807"}
	errUTF8     = &row.ValueError{Kind: row.KindText, Msg: "the text is not valid UTF-8"}
	errJSON     = &row.ValueError{Kind: row.KindJSON, Msg: "expected JSON text"}
)

var numeric = row.DecimalOf(&table.Field{Type: table.Numeric})

// append appends the columns of the struct at base.
func (p *structPlan) append(buf []byte, base unsafe.Pointer) ([]byte, *row.Error) {
	for i := range p.columns {
		c := &p.columns[i]
		at := base
		if len(c.hops) > 0 {
			if at = follow(at, c.hops); at == nil {
				continue
			}
		}
		var e *row.Error
		if buf, e = c.append(buf, unsafe.Add(at, c.offset)); e != nil {
			return buf, e.Within(c.field.Name)
		}
	}
	return buf, nil
}

// follow follows embedded pointers; nil where one is.
func follow(at unsafe.Pointer, hops []hop) unsafe.Pointer {
	for _, h := range hops {
		if at = *(*unsafe.Pointer)(unsafe.Add(at, h.offset)); at == nil {
			return nil
		}
	}
	return at
}

// append appends the column whose Go value is at p.
func (c *column) append(buf []byte, p unsafe.Pointer) ([]byte, *row.Error) {
	v := &c.value
	switch v.op {
	case opSlice:
		s := *(*[]struct{})(p) // every slice has this header
		return c.appendList(buf, unsafe.Pointer(unsafe.SliceData(s)), len(s))
	case opArray:
		return c.appendList(buf, p, v.length)
	case opPointer:
		if p = *(*unsafe.Pointer)(p); p == nil {
			return c.null(buf)
		}
		v = v.elem
	case opNull:
		if !*(*bool)(unsafe.Add(p, v.valid)) {
			return c.null(buf)
		}
		v = v.elem
	case opBytes, opRawJSON:
		if *(*[]byte)(p) == nil && !c.required {
			return buf, nil
		}
	case opRat:
		if *(**big.Rat)(p) == nil {
			return c.null(buf)
		}
	}
	return v.append(append(buf, c.tag...), p)
}

func (c *column) null(buf []byte) ([]byte, *row.Error) {
	if c.required {
		return buf, row.At(errNil, "", -1)
	}
	return buf, nil
}

func (c *column) appendList(buf []byte, p unsafe.Pointer, n int) ([]byte, *row.Error) {
	if n == 0 {
		return buf, nil
	}
	start := 0
	if c.packed {
		buf, start = row.BeginLength(append(buf, c.tag...))
	}
	for i := range n {
		at := unsafe.Add(p, uintptr(i)*c.size)
		v := c.elem
		if v.op == opPointer {
			at, v = *(*unsafe.Pointer)(at), v.elem
		}
		if at == nil || v.op == opRat && *(**big.Rat)(at) == nil {
			return buf, row.At(errNilElem, "", -1).Element(i)
		}
		if !c.packed {
			buf = append(buf, c.tag...)
		}
		var e *row.Error
		if buf, e = v.append(buf, at); e != nil {
			return buf, e.Element(i)
		}
	}
	if c.packed {
		buf = row.EndLength(buf, start)
	}
	return buf, nil
}

// append appends one value, without its tag.
func (v *value) append(buf []byte, p unsafe.Pointer) ([]byte, *row.Error) {
	switch v.op {
	case opBool:
		return row.AppendBool(buf, *(*bool)(p)), nil
	case opInt64:
		return row.AppendInt(buf, *(*int64)(p)), nil
	case opString:
		s := *(*string)(p)
		if !utf8.ValidString(s) {
			return buf, row.At(errUTF8, "", -1)
		}
		return row.AppendText(buf, s), nil
	case opFloat64:
		return row.AppendFloat(buf, *(*float64)(p)), nil
	case opFloat32:
		return row.AppendFloat(buf, float64(*(*float32)(p))), nil
	case opStruct:
		buf, start := row.BeginLength(buf)
		buf, e := v.members.append(buf, p)
		if e != nil {
			return buf, e
		}
		return row.EndLength(buf, start), nil
	case opBytes:
		return row.AppendText(buf, *(*[]byte)(p)), nil
	case opRawJSON:
		text := *(*json.RawMessage)(p)
		if !json.Valid(text) || !utf8.Valid(text) {
			return buf, row.At(errJSON, "", -1)
		}
		return row.AppendText(buf, text), nil
	case opInt8, opInt16, opInt32, opUint8, opUint16, opUint32:
		return row.AppendInt(buf, v.smallInt(p)), nil
	case opUint64:
		if *(*int64)(p) < 0 {
			return buf, row.At(errUnsigned, "", -1)
		}
		return row.AppendInt(buf, *(*int64)(p)), nil
	}
	return v.appendTime(buf, p)
}

func (v *value) smallInt(p unsafe.Pointer) int64 {
	switch v.op {
	case opInt8:
		return int64(*(*int8)(p))
	case opInt16:
		return int64(*(*int16)(p))
	case opInt32:
		return int64(*(*int32)(p))
	case opUint8:
		return int64(*(*uint8)(p))
	case opUint16:
		return int64(*(*uint16)(p))
	}
	return int64(*(*uint32)(p))
}

func (v *value) appendTime(buf []byte, p unsafe.Pointer) ([]byte, *row.Error) {
	var n int64
	var err error
	switch v.op {
	case opTime:
		n, err = gotime.Instant(*(*time.Time)(p))
	case opCivilDate:
		n, err = gotime.Days(*(*civil.Date)(p))
	case opCivilTime:
		n, err = gotime.Clock(*(*civil.Time)(p))
		n = row.PackTime(n)
	case opCivilDateTime:
		if n, err = gotime.DateTime(*(*civil.DateTime)(p)); err == nil {
			n = row.PackDateTime(n)
		}
	default:
		var s row.Scaled
		if s, err = numeric.FromRat(*(**big.Rat)(p)); err == nil {
			return row.AppendScaled(buf, s), nil
		}
	}
	if err != nil {
		return buf, row.At(err, "", -1)
	}
	return row.AppendInt(buf, n), nil
}
