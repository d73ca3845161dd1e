package copyrow

import (
	"math"
	"strconv"

	"github.com/millrace-dev/millrace/bigquery/row"
)

func (p *record) append(buf []byte, values []row.Value) ([]byte, *row.Error) {
	if len(values) != len(p.columns) {
		return buf, fault(row.KindDecode, "", "a row of "+strconv.Itoa(len(values))+" values for "+strconv.Itoa(len(p.columns))+" columns")
	}
	for i := range p.columns {
		c := &p.columns[i]
		if c.skip {
			continue
		}
		var e *row.Error
		if buf, e = c.append(buf, &values[i]); e != nil {
			return buf, e.Within(c.name)
		}
	}
	return buf, nil
}

func (c *column) append(buf []byte, v *row.Value) ([]byte, *row.Error) {
	if c.repeated {
		return c.appendList(buf, v.List)
	}
	if v.Null {
		if c.required {
			return buf, fault(row.KindRequired, "", "NULL, and the column that is written is REQUIRED")
		}
		return buf, nil
	}
	return c.value.append(append(buf, c.tag...), v)
}

func (c *column) appendList(buf []byte, list []row.Value) (_ []byte, e *row.Error) {
	if len(list) == 0 {
		return buf, nil
	}
	start := 0
	if c.packed {
		buf, start = row.BeginLength(append(buf, c.tag...))
	}
	for i := range list {
		if !c.packed {
			buf = append(buf, c.tag...)
		}
		if buf, e = c.value.append(buf, &list[i]); e != nil {
			return buf, e.Element(i)
		}
	}
	if c.packed {
		buf = row.EndLength(buf, start)
	}
	return buf, nil
}

// append appends one value, without its tag.
func (t *value) append(buf []byte, v *row.Value) ([]byte, *row.Error) {
	switch t.op {
	case opInt:
		return row.AppendInt(buf, v.Int), nil
	case opBytes:
		return row.AppendText(buf, v.Bytes), nil
	case opFloat:
		return row.AppendFloat(buf, math.Float64frombits(uint64(v.Int))), nil
	case opBool:
		return row.AppendBool(buf, v.Int != 0), nil
	case opTime:
		return row.AppendInt(buf, row.PackTime(v.Int)), nil
	case opDateTime:
		return row.AppendInt(buf, row.PackDateTime(v.Int)), nil
	case opDecimal:
		return t.appendDecimal(buf, v)
	case opInterval:
		return appendInterval(buf, v)
	}
	buf, start := row.BeginLength(buf)
	buf, e := t.members.append(buf, v.List)
	if e != nil {
		return buf, e
	}
	return row.EndLength(buf, start), nil
}

func (t *value) appendDecimal(buf []byte, v *row.Value) ([]byte, *row.Error) {
	s, err := row.ScaledFromBigEndian(v.Bytes)
	if err == nil {
		s, err = t.decimal.Rescale(s, int(v.Int))
	}
	if err != nil {
		return buf, row.At(err, "", -1)
	}
	return row.AppendScaled(buf, s), nil
}

func appendInterval(buf []byte, v *row.Value) ([]byte, *row.Error) {
	if len(v.List) != 3 {
		return buf, fault(row.KindDecode, "", "an INTERVAL of "+strconv.Itoa(len(v.List))+" parts")
	}
	buf, start := row.BeginLength(buf)
	buf = row.AppendInterval(buf, v.List[0].Int, v.List[1].Int, v.List[2].Int)
	return row.EndLength(buf, start), nil
}
