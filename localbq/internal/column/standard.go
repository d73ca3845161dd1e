package column

import (
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/literal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// standard is a column's default.
type standard struct {
	column *group // of the one column
	expr   literal.Expr
	now    time.Time
	random bool // every row has another value
	value  any  // converted, where all rows have the same
}

// newStandard compiles a column's default; nil where it has none.
func newStandard(f *schema.Field, now time.Time) (*standard, error) {
	if f.Default == "" {
		return nil, nil
	}
	e, err := literal.Parse(f.Default)
	if err != nil {
		return nil, err
	}
	d := &standard{column: newGroup([]*schema.Field{f}, "", false), expr: e, now: now}
	d.random = e.Kind == literal.UUID || slices.ContainsFunc(e.Elements, func(e literal.Expr) bool { return e.Kind == literal.UUID })
	d.value, err = d.evaluate()
	return d, err
}

func (d *standard) evaluate() (any, error) {
	out, err := d.column.value(0, expression(d.expr, d.now))
	if err != nil {
		return nil, fmt.Errorf("the default of column %s: %w", d.column.paths[0], err)
	}
	return out, nil
}

// next is the value for one row.
func (d *standard) next() (any, error) {
	if d.random {
		return d.evaluate()
	}
	return d.value, nil
}

// expression is what an expression gives.
func expression(e literal.Expr, now time.Time) any {
	micros := now.UTC().UnixMicro()
	switch e.Kind {
	case literal.Bool:
		return e.Bool
	case literal.Int64:
		return e.Int64
	case literal.Float64:
		return e.Float64
	case literal.String, literal.Typed:
		return e.Text
	case literal.Bytes:
		return []byte(e.Text)
	case literal.CurrentTimestamp:
		return Timestamp(micros)
	case literal.CurrentDateTime:
		return DateTime(micros)
	case literal.CurrentDate:
		return Date(micros / dayMicros)
	case literal.CurrentTime:
		return Time(micros % dayMicros)
	case literal.UUID:
		var b [16]byte
		rand.Read(b[:])
		b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
	case literal.Array:
		out := List{}
		for _, element := range e.Elements {
			out = append(out, expression(element, now))
		}
		return out
	}
	return nil
}
