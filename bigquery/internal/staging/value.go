package staging

import (
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

var (
	errText   = &row.ValueError{Kind: row.KindText, Msg: "expected UTF-8"}
	errLength = &row.ValueError{Kind: row.KindRange, Msg: "expected fewer characters or bytes: the column has a maximum length"}
)

// Integer is the value of a column whose values are varints, as files have it: 0 or 1, the number, days, microseconds of
// the day, and microseconds since 1970.
func (c *Column) Integer(raw uint64) (int64, error) {
	v := int64(raw)
	switch c.Kind {
	case Bool:
		if v != 0 {
			v = 1
		}
	case Date:
		return v, row.CheckDays(v)
	case Time:
		return wrongRange(row.UnpackTime(v))
	case DateTime:
		return wrongRange(row.UnpackDateTime(v))
	case Timestamp:
		return v, row.CheckMicros(v)
	}
	return v, nil
}

var errPacked = &row.ValueError{Kind: row.KindRange, Msg: "expected packed civil time: a field is out of range or a bit above them is set"}

func wrongRange(v int64, err error) (int64, error) {
	if err != nil {
		return 0, errPacked
	}
	return v, nil
}

// Content checks the value of a Text or Bytes column.
func (c *Column) Content(b []byte) error {
	if c.Kind == Text && !utf8.Valid(b) {
		return errText
	}
	if limit := c.Field.MaxLength; limit > 0 && int64(len(b)) > limit && (c.Kind == Bytes || int64(utf8.RuneCount(b)) > limit) {
		return errLength
	}
	return nil
}

// Literal is the value of a DateTimeText column: microseconds since 1970. Digits below the microsecond are cut off.
func (c *Column) Literal(b []byte) (int64, error) { return row.CutDateTime(b) }

// AppendDecimal appends the value of a Decimal or DecimalText column: an integer at the column's scale, the fewest bytes of
// two's complement, most significant first.
func (c *Column) AppendDecimal(buf, b []byte) ([]byte, error) {
	if c.plainDecimal(b) {
		return appendReversed(buf, b), nil
	}
	v, err := c.decimal(b)
	if err != nil {
		return buf, err
	}
	return v.AppendBigEndian(buf), nil
}

// decimal is the value of a Decimal or DecimalText column as an integer at the column's scale.
func (c *Column) decimal(b []byte) (v row.Scaled, err error) {
	if c.Kind == DecimalText {
		v, err = row.ParseDecimal(c.Decimal, b)
	} else if v, err = row.ScaledFromWire(b); err != nil {
		err = &row.ValueError{Kind: row.KindRange, Msg: "expected a decimal number of at most 32 bytes"}
	}
	if err != nil {
		return v, err
	}
	return c.Decimal.Fit(v)
}

// plainDecimal says whether the bytes need only be turned around: the column has no parameters, the number is too short to
// be out of range, and no byte of it is superfluous. 15 bytes hold less than 10^36.
func (c *Column) plainDecimal(b []byte) bool {
	n := len(b)
	if c.Kind != Decimal || c.Field.Precision > 0 || n == 0 || n > 15 && (c.Field.Type == table.Numeric || n > 32) {
		return false
	}
	return n == 1 || !(b[n-1] == 0 && b[n-2] < 0x80 || b[n-1] == 0xff && b[n-2] >= 0x80)
}

func appendReversed(buf, b []byte) []byte {
	for i := len(b) - 1; i >= 0; i-- {
		buf = append(buf, b[i])
	}
	return buf
}
