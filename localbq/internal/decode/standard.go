package decode

import (
	"crypto/rand"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/localbq/internal/literal"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// standard is a column's default value as the table defines it.
type standard struct {
	now   time.Time
	list  *list // of a REPEATED column
	null  vector
	exprs []literal.Expr // one value, or the elements of an array
	puts  []put          // by expression; nil for NULL
}

// CheckDefaults refuses a definition with a default that the local BigQuery cannot evaluate or that its column refuses.
func CheckDefaults(d *schema.Definition) error {
	if d.Schema == nil {
		return nil
	}
	for _, f := range d.Schema.Fields {
		if f.Default == "" {
			continue
		}
		s, err := compileDefault(f, newVector(f))
		if err != nil {
			return err
		}
		s.evaluate(time.Unix(0, 0))
		if err := s.append(); err != nil {
			return refusal.New(refusal.Invalid, "Invalid default value expression for column %s: %v", f.Name, err)
		}
	}
	return nil
}

// compileDefault parses a column's default and sees that its type fits the column.
func compileDefault(f *schema.Field, v vector) (*standard, error) {
	expr, err := literal.Parse(f.Default)
	if err != nil {
		return nil, &refusal.Error{Reason: refusal.NotImplemented, Message: err.Error()}
	}
	isNull := expr.Kind == literal.Null
	switch {
	case isNull && f.Mode == schema.Required:
		return nil, misfit(f)
	case f.Type == schema.Struct && !isNull:
		return nil, refusal.New(refusal.NotImplemented, "local BigQuery does not implement default values of STRUCT columns: column %s", f.Name)
	case !isNull && (expr.Kind == literal.Array) != (f.Mode == schema.Repeated):
		return nil, misfit(f)
	}
	s := &standard{exprs: []literal.Expr{expr}, null: v}
	if s.list, _ = v.(*list); s.list != nil {
		v, s.exprs = s.list.element, expr.Elements
	}
	for _, e := range s.exprs {
		p, err := standardPut(e, f, v)
		if err != nil {
			return nil, err
		}
		s.puts = append(s.puts, p)
	}
	return s, nil
}

func misfit(f *schema.Field) error {
	return refusal.New(refusal.Invalid, "Invalid default value expression for column %s: cannot coerce expression %s to type %s", f.Name, f.Default, f.Type)
}

// standardPut feeds a literal as a field of a fitting kind would be.
func standardPut(e literal.Expr, f *schema.Field, v vector) (put, error) {
	if e.Kind == literal.Null {
		if f.Mode == schema.Repeated { // an array has no NULL elements
			return nil, misfit(f)
		}
		return nil, nil
	}
	kind := protoreflect.StringKind
	switch e.Kind {
	case literal.Bool:
		kind = protoreflect.BoolKind
	case literal.Int64:
		kind = protoreflect.Int64Kind
	case literal.Float64:
		kind = protoreflect.DoubleKind
	case literal.Bytes:
		kind = protoreflect.BytesKind
	}
	p := scalar(&protoField{kind: kind}, f, f.Name, v)
	if p == nil {
		return nil, misfit(f)
	}
	return p, nil
}

// append adds the default to the column, without closing the list of a REPEATED one.
func (s *standard) append() error {
	for i, e := range s.exprs {
		if s.puts[i] == nil {
			s.null.null()
			continue
		}
		if err := s.puts[i](s.raw(e)); err != nil {
			return err
		}
		if s.list != nil {
			s.list.open++
		}
	}
	return nil
}

// evaluate fixes the time that the functions of time take.
func (s *standard) evaluate(now time.Time) { s.now = now.UTC() }

// raw is a literal as a field of its kind would carry it.
func (s *standard) raw(e literal.Expr) raw {
	const day, clock = "2006-01-02", "15:04:05.000000"
	switch e.Kind {
	case literal.Bool:
		return raw{bits: protowire.EncodeBool(e.Bool)}
	case literal.Int64:
		return raw{bits: uint64(e.Int64)}
	case literal.Float64:
		return raw{bits: math.Float64bits(e.Float64)}
	case literal.CurrentTimestamp:
		return raw{data: []byte(s.now.Format(day + " " + clock))}
	case literal.CurrentDateTime:
		return raw{data: []byte(s.now.Format(day + " " + clock))}
	case literal.CurrentDate:
		return raw{data: []byte(s.now.Format(day))}
	case literal.CurrentTime:
		return raw{data: []byte(s.now.Format(clock))}
	case literal.UUID:
		return raw{data: []byte(uuid())}
	}
	return raw{data: []byte(e.Text)}
}

func uuid() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
