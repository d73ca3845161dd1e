package decode

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// jsonPut makes what feeds one JSON value into the vector of a column.
func jsonPut(f *schema.Field, path string, v vector, o JSONOptions) (func(any) error, error) {
	switch f.Type {
	case schema.Struct:
		return putObject(f, path, v.(*group), o)
	case schema.Range:
		return putRangeObject(f, path, v.(*group), o)
	case schema.Int64:
		return putText("integer", func(s string) error { return appendInteger(v.(*fixed[int64]), s) }), nil
	case schema.Float64:
		return putText("double", func(s string) error { return appendFloat(v.(*fixed[float64]), s) }), nil
	case schema.Bool:
		return putText("boolean", func(s string) error { return appendBool(v.(*bools), s) }), nil
	}
	put := scalar(&protoField{kind: protoreflect.StringKind}, f, path, v)
	switch {
	case f.Type == schema.Bytes:
		put := scalar(&protoField{kind: protoreflect.BytesKind}, f, path, v)
		return putText("bytes", func(s string) error { return appendBase64(put, s) }), nil
	case f.Type == schema.Timestamp && !f.Picos():
		return putText("timestamp", func(s string) error { return appendTimestamp(v.(*fixed[int64]), put, s) }), nil
	}
	return putText(strings.ToLower(f.Type.String()), func(s string) error { return put(raw{data: []byte(s)}) }), nil
}

// putText takes scalars by their text and refuses records.
func putText(kind string, put func(string) error) func(any) error {
	return func(v any) error {
		s, ok := scalarText(v)
		if !ok {
			return fmt.Errorf("This field: %s is not a record.", kind)
		}
		return put(s)
	}
}

func appendInteger(v *fixed[int64], s string) error {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		v.append(n)
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || f < -1<<63 || f >= 1<<63 {
		return fmt.Errorf("Cannot convert value to integer (bad value): %s", s)
	}
	v.append(int64(f))
	return nil
}

func appendFloat(v *fixed[float64], s string) error {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.ContainsAny(s, "xX_") {
		return fmt.Errorf("Cannot convert value to floating point (bad value): %s", s)
	}
	v.append(f)
	return nil
}

func appendBool(v *bools, s string) error {
	switch strings.ToLower(s) {
	case "true", "t", "yes", "y", "1":
		v.append(true)
	case "false", "f", "no", "n", "0":
		v.append(false)
	default:
		return fmt.Errorf("Cannot convert value to boolean (bad value): %s", s)
	}
	return nil
}

func appendBase64(put put, s string) error {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		b, err = base64.RawStdEncoding.DecodeString(s)
	}
	if err != nil {
		return errors.New("Could not decode base64 string to bytes.")
	}
	return put(raw{data: b})
}

// appendTimestamp reads text, or seconds since the epoch with a fraction.
func appendTimestamp(v *fixed[int64], text put, s string) error {
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return text(raw{data: []byte(s)})
	}
	if seconds < minSeconds || seconds > maxSeconds || math.IsNaN(seconds) {
		return fmt.Errorf("Timestamp field value is out of range: %s", s)
	}
	micros := int64(math.Floor(seconds * 1e6))
	if exact, ok := new(big.Rat).SetString(s); ok && !strings.ContainsAny(s, "eExX") && len(s) < 40 {
		exact.Mul(exact, big.NewRat(1_000_000, 1))
		micros = new(big.Int).Div(exact.Num(), exact.Denom()).Int64()
	}
	v.append(micros)
	return nil
}

// 0001-01-01 and 9999-12-31 23:59:59 in seconds since the epoch.
const (
	minSeconds = -62135596800
	maxSeconds = 253402300799
)

func putObject(f *schema.Field, path string, v *group, o JSONOptions) (func(any) error, error) {
	n, err := newJSONNode(f.Fields, v.members, path, o)
	if err != nil {
		return nil, err
	}
	return func(x any) error {
		object, ok := x.(map[string]any)
		if !ok {
			return fmt.Errorf("This field: %s is a record.", path)
		}
		v.valid()
		return n.append(object)
	}, nil
}

// putRangeObject takes {"start": …, "end": …}, either of which may be absent or null for no bound.
func putRangeObject(f *schema.Field, path string, v *group, o JSONOptions) (func(any) error, error) {
	bounds := []*schema.Field{{Name: "start", Type: f.RangeElement}, {Name: "end", Type: f.RangeElement}}
	n, err := newJSONNode(bounds, v.members, path, o)
	if err != nil {
		return nil, err
	}
	return func(x any) error {
		object, ok := x.(map[string]any)
		if !ok {
			return fmt.Errorf("This field: %s is a range: give it as an object of start and end.", path)
		}
		v.valid()
		if err := n.append(object); err != nil {
			return err
		}
		if !bounded(object, "start") || !bounded(object, "end") || before(v.members[0], v.members[1]) {
			return nil
		}
		return errors.New("Range start must be less than range end.")
	}, nil
}

func bounded(object map[string]any, name string) bool {
	for k, v := range object {
		if strings.EqualFold(k, name) {
			return v != nil
		}
	}
	return false
}
