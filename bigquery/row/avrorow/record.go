package avrorow

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// This file makes rows of Go values. It goes by the plan of the schema read with itself, whose unions have one type beside null.

var (
	errNilRecord = badType("the record is nil, expected a map")
	errNoMap     = badType("expected a map by field name")
	errNoList    = badType("expected a slice or an array")
	errNoEntries = badType("expected a map of strings to values")
	errNullKey   = &row.ValueError{Kind: row.KindNullKey, Msg: "nil, expected a string: a map's keys are never null"}
	errNoColumn  = &row.ValueError{Kind: row.KindUnknown, Msg: "the schema has no such field"}
)

func appendFields(buf []byte, m map[string]any, p *plan) ([]byte, *row.Error) {
	found := 0
	for k := range p.steps {
		s := &p.steps[k]
		v, ok := m[s.name]
		if !ok && s.field != s.name {
			v, ok = m[s.field]
		}
		if ok {
			found++
		}
		var e *row.Error
		if buf, e = appendField(buf, v, s); e != nil {
			return buf, e.Within(s.name)
		}
	}
	if found < len(m) {
		return buf, unknown(m, p)
	}
	return buf, nil
}

// unknown names the first key, in the order of keys, that is no field.
func unknown(m map[string]any, p *plan) *row.Error {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.ContainsFunc(p.steps, func(s step) bool { return s.name == name || s.field == name }) {
			return row.At(errNoColumn, name, -1)
		}
	}
	return nil
}

func appendField(buf []byte, v any, s *step) ([]byte, *row.Error) {
	if isNil(v) {
		if s.required {
			return buf, row.At(errRequired, "", -1)
		}
		return buf, nil
	}
	if s.some != nil {
		s = s.some
	}
	switch s.op {
	case opArray:
		return appendList(buf, v, s)
	case opMap:
		return appendMap(buf, v, s)
	}
	return appendOne(append(buf, s.tag...), v, s)
}

// isNil says whether v is null: nil, or a nil pointer. A nil slice of bytes is one too, a nil list is an empty one.
func isNil(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []byte:
		return v == nil
	case string, int64, int32, float64, bool, map[string]any, []any:
		return false
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// appendOne appends a value that is there, and no list.
func appendOne(buf []byte, v any, s *step) ([]byte, *row.Error) {
	switch s.op {
	case opStruct:
		m, ok := fieldsOf(v)
		if !ok {
			return buf, row.At(errNoMap, "", -1)
		}
		buf, start := row.BeginLength(buf)
		buf, e := appendFields(buf, m, s.plan)
		if e != nil {
			return buf, e
		}
		return row.EndLength(buf, start), nil
	}
	out, err := appendScalar(buf, v, s)
	if err != nil {
		return buf, row.At(err, "", -1)
	}
	return out, nil
}

// fieldsOf is a record's map, whatever its type is called.
func fieldsOf(v any) (map[string]any, bool) {
	if m, ok := v.(map[string]any); ok {
		return m, true
	}
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Map || !r.CanConvert(reflect.TypeFor[map[string]any]()) {
		return nil, false
	}
	m, ok := r.Convert(reflect.TypeFor[map[string]any]()).Interface().(map[string]any)
	return m, ok
}

func appendList(buf []byte, v any, s *step) ([]byte, *row.Error) {
	n, at, ok := elements(v)
	if !ok {
		return buf, row.At(errNoList, "", -1)
	}
	if n == 0 {
		return buf, nil
	}
	start := 0
	if s.packed {
		buf, start = row.BeginLength(append(buf, s.tag...))
	}
	elem := s.elem
	if elem.some != nil {
		elem = elem.some
	}
	for i := range n {
		var e *row.Error
		if v := at(i); isNil(v) {
			e = row.At(errNullElem, "", -1)
		} else {
			buf, e = appendOne(append(buf, elem.tag...), v, elem)
		}
		if e != nil {
			return buf, e.Element(i)
		}
	}
	if s.packed {
		buf = row.EndLength(buf, start)
	}
	return buf, nil
}

// elements takes a list apart. Bytes are no list.
func elements(v any) (n int, at func(int) any, ok bool) {
	if list, ok := v.([]any); ok {
		return len(list), func(i int) any { return list[i] }, true
	}
	r := reflect.ValueOf(v)
	if k := r.Kind(); k != reflect.Slice && k != reflect.Array || r.Type().Elem().Kind() == reflect.Uint8 {
		return 0, nil, false
	}
	return r.Len(), func(i int) any { return r.Index(i).Interface() }, true
}

// appendMap appends the entries of a map in the order of their keys.
func appendMap(buf []byte, v any, s *step) ([]byte, *row.Error) {
	entries, e := entriesOf(v)
	if e != nil {
		return buf, e
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !utf8.ValidString(name) {
			return buf, row.At(errUTF8, "key", -1)
		}
		var start int
		buf, start = row.BeginLength(append(buf, s.tag...))
		buf = row.AppendText(append(buf, s.key...), name)
		if buf, e = appendField(buf, entries[name], s.elem); e != nil {
			return buf, e.Within("value")
		}
		buf = row.EndLength(buf, start)
	}
	return buf, nil
}

func entriesOf(v any) (map[string]any, *row.Error) {
	if m, ok := v.(map[string]any); ok {
		return m, nil
	}
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Map {
		return nil, row.At(errNoEntries, "", -1)
	}
	m := make(map[string]any, r.Len())
	for it := r.MapRange(); it.Next(); {
		k := it.Key()
		for k.Kind() == reflect.Interface || k.Kind() == reflect.Pointer {
			if k.IsNil() {
				return nil, row.At(errNullKey, "key", -1)
			}
			k = k.Elem()
		}
		if k.Kind() != reflect.String {
			return nil, row.At(errNoEntries, "key", -1)
		}
		m[k.String()] = it.Value().Interface()
	}
	return m, nil
}

func appendScalar(buf []byte, v any, s *step) ([]byte, error) {
	switch s.op {
	case opText, opUUID, opDateTimeText:
		return appendText(buf, v, s.op)
	case opEnum:
		return appendSymbol(buf, v, s)
	case opBool:
		b, ok := boolOf(v)
		if !ok {
			return buf, errNoBool
		}
		return row.AppendBool(buf, b), nil
	case opFloat, opDouble:
		return appendFloat(buf, v, s.op)
	case opBytes, opFixed:
		return appendBytes(buf, v, s)
	case opDecimal, opFixedDecimal:
		return appendDecimal(buf, v, s)
	}
	return appendInteger(buf, v, s)
}

var (
	errNoBool    = badType("expected a bool")
	errNoText    = badType("expected a string")
	errNoFloat   = badType("expected a float64 or a float32")
	errNoBytes   = badType("expected a slice of bytes")
	errNoDecimal = badType("expected a *big.Rat, or bytes at the schema's scale")
	errNoInteger = badType("expected an integer")
	errNoEnum    = badType("expected a symbol of the enum")
	errSize      = badType("expected as many bytes as the fixed type has")
	errWide      = &row.ValueError{Kind: row.KindRange, Msg: "expected a number of 64 bits, with a sign"}
	errInt       = &row.ValueError{Kind: row.KindRange, Msg: "expected a number of 32 bits, with a sign: the schema says int"}
)

func boolOf(v any) (bool, bool) {
	if b, ok := v.(bool); ok {
		return b, true
	}
	r := indirect(v)
	if r.Kind() != reflect.Bool {
		return false, false
	}
	return r.Bool(), true
}

// indirect follows pointers.
func indirect(v any) reflect.Value {
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer && !r.IsNil() {
		r = r.Elem()
	}
	return r
}

func textOf(v any) (string, bool) {
	if s, ok := v.(string); ok {
		return s, true
	}
	r := indirect(v)
	if r.Kind() != reflect.String {
		return "", false
	}
	return r.String(), true
}

func appendText(buf []byte, v any, o op) ([]byte, error) {
	if o == opUUID {
		if id, ok := uuidOf(v); ok {
			return row.AppendText(buf, id), nil
		}
	}
	if o == opDateTimeText {
		if micros, err := dateTimeOf(v); err != errNoTime {
			if err != nil {
				return buf, err
			}
			return row.AppendInt(buf, row.PackDateTime(micros)), nil
		}
	}
	text, ok := textOf(v)
	switch {
	case !ok:
		return buf, errNoText
	case !utf8.ValidString(text):
		return buf, errUTF8
	case o == opDateTimeText:
		micros, err := row.ParseDateTime(text)
		if err != nil {
			return buf, err
		}
		return row.AppendInt(buf, row.PackDateTime(micros)), nil
	}
	return row.AppendText(buf, text), nil
}

// uuidOf prints sixteen bytes as 8-4-4-4-12 hexadecimal digits.
func uuidOf(v any) (string, bool) {
	r := indirect(v)
	if r.Kind() != reflect.Array || r.Len() != 16 || r.Type().Elem().Kind() != reflect.Uint8 {
		return "", false
	}
	const digits = "0123456789abcdef"
	text := make([]byte, 0, 36)
	for i := range 16 {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text = append(text, '-')
		}
		b := r.Index(i).Uint()
		text = append(text, digits[b>>4], digits[b&15])
	}
	return string(text), true
}

func appendSymbol(buf []byte, v any, s *step) ([]byte, error) {
	text, ok := textOf(v)
	if !ok {
		return buf, errNoEnum
	}
	for _, symbol := range s.symbols {
		// Symbols hold their length before them, one byte or two.
		if len(symbol) > len(text) && symbol[len(symbol)-len(text):] == text && len(symbol)-len(text) == len(row.AppendInt(nil, int64(len(text)))) {
			return append(buf, symbol...), nil
		}
	}
	return buf, errNoEnum
}

func appendFloat(buf []byte, v any, o op) ([]byte, error) {
	var f float64
	switch v := v.(type) {
	case float64:
		f = v
	case float32:
		f = float64(v)
	default:
		r := indirect(v)
		if !r.CanFloat() {
			return buf, errNoFloat
		}
		f = r.Float()
	}
	if o == opFloat {
		// A float of the schema has 32 bits, whatever the Go type.
		f = float64(float32(f))
	}
	return row.AppendFloat(buf, f), nil
}

func appendBytes(buf []byte, v any, s *step) ([]byte, error) {
	b, ok := bytesOf(v)
	if !ok {
		return buf, errNoBytes
	}
	if s.op == opFixed && len(b) != s.size {
		return buf, errSize
	}
	return row.AppendText(buf, b), nil
}

// bytesOf is a slice or an array of bytes.
func bytesOf(v any) ([]byte, bool) {
	if b, ok := v.([]byte); ok {
		return b, true
	}
	r := indirect(v)
	if k := r.Kind(); k != reflect.Slice && k != reflect.Array || r.Type().Elem().Kind() != reflect.Uint8 {
		return nil, false
	}
	if r.Kind() == reflect.Slice {
		return r.Bytes(), true
	}
	b := make([]byte, r.Len())
	reflect.Copy(reflect.ValueOf(b), r)
	return b, true
}

func appendInteger(buf []byte, v any, s *step) ([]byte, error) {
	n, err := integerOf(v)
	if err == errNoInteger {
		return appendTime(buf, v, s.op)
	}
	if err != nil {
		return buf, err
	}
	if s.narrow && (n < math.MinInt32 || n > math.MaxInt32) {
		return buf, errInt
	}
	return appendNumber(buf, n, s.op)
}

func integerOf(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case int32:
		return int64(v), nil
	case int:
		return int64(v), nil
	}
	r := indirect(v)
	switch {
	case isTime(r.Type()):
		return 0, errNoInteger
	case r.CanInt():
		return r.Int(), nil
	case r.CanUint():
		if r.Uint() > math.MaxInt64 {
			return 0, errWide
		}
		return int64(r.Uint()), nil
	}
	return 0, errNoInteger
}
