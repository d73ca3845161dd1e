package decode

import (
	"math/big"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/value"
)

func putInt64(f *protoField, v *fixed[int64]) put {
	read := integer(f.kind)
	if read == nil {
		return nil
	}
	if f.kind == protoreflect.Int64Kind {
		return func(r raw) error { v.append(int64(r.bits)); return nil }
	}
	return func(r raw) error { v.append(read(r.bits)); return nil }
}

func putFloat64(f *protoField, v *fixed[float64]) put {
	if read := floating(f.kind); read != nil {
		return func(r raw) error { v.append(read(r.bits)); return nil }
	}
	if read := integer(f.kind); read != nil && f.enum == nil {
		return func(r raw) error { v.append(float64(read(r.bits))); return nil }
	}
	if unsigned(f.kind) {
		return func(r raw) error { v.append(float64(r.bits)); return nil }
	}
	return nil
}

func putBool(f *protoField, v *bools) put {
	if f.kind != protoreflect.BoolKind && !unsigned(f.kind) && (integer(f.kind) == nil || f.enum != nil) {
		return nil
	}
	return func(r raw) error { v.append(r.bits != 0); return nil }
}

func putString(f *protoField, target *schema.Field, path string, v *text) put {
	store := func(s []byte) error {
		if !utf8.Valid(s) {
			return onField(path, "Field %s: value is not valid UTF-8", path)
		}
		if limit := target.MaxLength; limit > 0 && int64(len(s)) > limit {
			if n := utf8.RuneCount(s); int64(n) > limit {
				return tooLong(target, path, n)
			}
		}
		v.append(s)
		return nil
	}
	switch {
	case isString(f):
		return func(r raw) error { return store(r.data) }
	case f.enum != nil:
		return func(r raw) error { return store([]byte(f.enum[int32(r.bits)])) }
	}
	return nil
}

func tooLong(target *schema.Field, path string, n int) error {
	return onField(path, "Field %s: %s(%d) has maximum length %d but got a value with length %d",
		path, target.Type, target.MaxLength, target.MaxLength, n)
}

func putBytes(f *protoField, target *schema.Field, path string, v *text) put {
	if !isText(f) {
		return nil
	}
	return func(r raw) error {
		if target.MaxLength > 0 && int64(len(r.data)) > target.MaxLength {
			return tooLong(target, path, len(r.data))
		}
		v.append(r.data)
		return nil
	}
}

// putDecimal reads whatever form the kind has and stores the scaled integer.
func putDecimal(f *protoField, target *schema.Field, path string, v vector) put {
	d := &value.Decimal{
		Big: target.Type == schema.BigNumeric, Precision: target.Precision, Scale: target.Scale,
		HalfEven: target.RoundingMode == "ROUND_HALF_EVEN",
	}
	read := decimalReader(f, d)
	if read == nil {
		return nil
	}
	store := func(n *big.Int) { v.(*fixed[decimal128.Num]).append(value.Num128(n)) }
	if d.Big {
		store = func(n *big.Int) { v.(*fixed[decimal256.Num]).append(value.Num256(n)) }
	}
	return func(r raw) error {
		n, err := read(r)
		if err != nil {
			return onField(path, "%v", err)
		}
		store(n)
		return nil
	}
}

func decimalReader(f *protoField, d *value.Decimal) func(raw) (*big.Int, error) {
	switch {
	case f.kind == protoreflect.BytesKind:
		return func(r raw) (*big.Int, error) { return d.Bytes(r.data) }
	case isString(f):
		return func(r raw) (*big.Int, error) { return d.Text(string(r.data)) }
	case f.enum != nil:
		return nil
	}
	if read := floating(f.kind); read != nil {
		return func(r raw) (*big.Int, error) { return d.Float(read(r.bits)) }
	}
	if read := integer(f.kind); read != nil {
		return func(r raw) (*big.Int, error) { return d.Int(big.NewInt(read(r.bits))) }
	}
	if unsigned(f.kind) {
		return func(r raw) (*big.Int, error) { return d.Int(new(big.Int).SetUint64(r.bits)) }
	}
	return nil
}

func putJSON(f *protoField, path string, v *text) put {
	if !isString(f) {
		return nil
	}
	return func(r raw) error {
		out, err := value.AppendJSON(v.data, r.data)
		if err != nil {
			return onField(path, "%v", err)
		}
		v.data = out
		v.end()
		return nil
	}
}

func putGeography(f *protoField, path string, v *text) put {
	if !isString(f) {
		return nil
	}
	return func(r raw) error {
		out, err := value.Geography(string(r.data))
		if err != nil {
			return onField(path, "%v", err)
		}
		v.data = append(v.data, out...)
		v.end()
		return nil
	}
}
