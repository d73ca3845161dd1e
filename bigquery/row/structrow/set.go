package structrow

import (
	"math"
	"math/big"
	"reflect"
	"strconv"
	"time"
	"unsafe"

	"cloud.google.com/go/civil"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/row/internal/gotime"
)

func decodeError(kind row.Kind, msg string) *row.Error {
	return &row.Error{Kind: kind, Offset: -1, Msg: msg}
}

// set sets the field at p, planned by v, to a column's value.
func (m *member) set(v *value, p unsafe.Pointer, in *row.Value) *row.Error {
	switch v.op {
	case opSlice:
		return m.setSlice(v, p, in.List)
	case opArray:
		return m.setArray(v, p, in.List)
	case opPointer:
		if in.Null {
			*(*unsafe.Pointer)(p) = nil
			return nil
		}
		at := reflect.New(v.elem.typ).UnsafePointer()
		*(*unsafe.Pointer)(p) = at
		return m.setValue(v.elem, at, in)
	case opNull:
		*(*bool)(unsafe.Add(p, v.valid)) = !in.Null
		if in.Null {
			return nil
		}
		return m.setValue(v.elem, p, in)
	}
	return m.setValue(v, p, in)
}

func (m *member) setSlice(v *value, p unsafe.Pointer, list []row.Value) *row.Error {
	if len(list) == 0 {
		return nil
	}
	s := reflect.MakeSlice(v.typ, len(list), len(list))
	reflect.NewAt(v.typ, p).Elem().Set(s)
	return m.setElements(v, s.UnsafePointer(), list)
}

func (m *member) setArray(v *value, p unsafe.Pointer, list []row.Value) *row.Error {
	if len(list) > v.length {
		return decodeError(row.KindOverflow, strconv.Itoa(len(list))+" elements for an array of "+strconv.Itoa(v.length))
	}
	return m.setElements(v, p, list)
}

func (m *member) setElements(v *value, p unsafe.Pointer, list []row.Value) *row.Error {
	for i := range list {
		if e := m.set(v.elem, unsafe.Add(p, uintptr(i)*v.size), &list[i]); e != nil {
			return e.Element(i)
		}
	}
	return nil
}

// setValue sets a value that is no pointer, slice or array of values.
func (m *member) setValue(v *value, p unsafe.Pointer, in *row.Value) *row.Error {
	if in.Null {
		return m.setNull(v, p)
	}
	switch v.op {
	case opBool:
		*(*bool)(p) = in.Int != 0
	case opInt64:
		*(*int64)(p) = in.Int
	case opInt8, opInt16, opInt32, opUint8, opUint16, opUint32, opUint64:
		return v.setSmallInt(p, in.Int)
	case opFloat64:
		*(*float64)(p) = math.Float64frombits(uint64(in.Int))
	case opFloat32:
		f := math.Float64frombits(uint64(in.Int))
		if narrow := float32(f); math.IsInf(float64(narrow), 0) == math.IsInf(f, 0) {
			*(*float32)(p) = narrow
			return nil
		}
		return decodeError(row.KindOverflow, "the number does not fit a field of type "+v.typ.String())
	case opString:
		*(*string)(p) = string(in.Bytes)
	case opBytes, opRawJSON:
		*(*[]byte)(p) = append([]byte{}, in.Bytes...)
	case opStruct:
		return setMembers(m.members, p, in.List)
	case opRat:
		return setRat((**big.Rat)(p), in)
	default:
		return v.setTime(p, in.Int)
	}
	return nil
}

func (m *member) setNull(v *value, p unsafe.Pointer) *row.Error {
	switch v.op {
	case opBytes, opRawJSON:
		*(*[]byte)(p) = nil
	case opRat:
		*(**big.Rat)(p) = nil
	default:
		return decodeError(row.KindNull, "NULL, and the field has the type "+v.typ.String()+": make it a pointer")
	}
	return nil
}

var intBounds = [...]struct{ low, high int64 }{
	opInt8: {math.MinInt8, math.MaxInt8}, opInt16: {math.MinInt16, math.MaxInt16}, opInt32: {math.MinInt32, math.MaxInt32},
	opUint8: {0, math.MaxUint8}, opUint16: {0, math.MaxUint16}, opUint32: {0, math.MaxUint32}, opUint64: {0, math.MaxInt64},
}

func (v *value) setSmallInt(p unsafe.Pointer, n int64) *row.Error {
	if b := intBounds[v.op]; n < b.low || n > b.high {
		return decodeError(row.KindOverflow, "the number does not fit a field of type "+v.typ.String())
	}
	switch v.op {
	case opInt8:
		*(*int8)(p) = int8(n)
	case opInt16:
		*(*int16)(p) = int16(n)
	case opInt32:
		*(*int32)(p) = int32(n)
	case opUint8:
		*(*uint8)(p) = uint8(n)
	case opUint16:
		*(*uint16)(p) = uint16(n)
	case opUint32:
		*(*uint32)(p) = uint32(n)
	default:
		*(*uint64)(p) = uint64(n)
	}
	return nil
}

func setRat(p **big.Rat, in *row.Value) *row.Error {
	if in.Int < 0 || in.Int > 77 {
		return decodeError(row.KindDecode, "a decimal with the scale "+strconv.FormatInt(in.Int, 10))
	}
	s, err := row.ScaledFromBigEndian(in.Bytes)
	if err != nil {
		return row.At(err, "", -1)
	}
	*p = s.Rat(int(in.Int))
	return nil
}

func (v *value) setTime(p unsafe.Pointer, n int64) *row.Error {
	var err error
	switch v.op {
	case opTime:
		*(*time.Time)(p), err = gotime.InstantOf(n)
	case opCivilDate:
		*(*civil.Date)(p), err = gotime.DateOf(n)
	case opCivilTime:
		*(*civil.Time)(p), err = gotime.ClockOf(n)
	default:
		*(*civil.DateTime)(p), err = gotime.DateTimeOf(n)
	}
	if err != nil {
		e := row.At(err, "", -1)
		e.Kind = row.KindDecode
		return e
	}
	return nil
}
