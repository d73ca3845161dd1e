package avro

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// AppendDefault appends the binary form of a default value, which is JSON: the first branch of a union, bytes and fixed as text
// of the code points 0 to 255 (Avro specification, "Complex Types").
func AppendDefault(buf []byte, s *Schema, value json.RawMessage) ([]byte, error) {
	d := defaults{left: maxDefaults}
	return d.append(buf, s, value, 0)
}

// maxDefaults is how many values a default may have: members of records have defaults of their own, and a few lines can ask for
// any number of them.
const maxDefaults = 100_000

type defaults struct{ left int }

var errDeep = errors.New("the default has too many values, or nests too deeply")

func (d *defaults) append(buf []byte, s *Schema, value json.RawMessage, depth int) ([]byte, error) {
	d.left--
	if depth++; depth > maxNesting || d.left < 0 {
		return buf, errDeep
	}
	switch s.Kind {
	case Null:
		if string(bytes.TrimSpace(value)) != "null" {
			return buf, mismatch(s)
		}
		return buf, nil
	case Union:
		for i, branch := range s.Branches { // the first that takes it: since Avro 1.12 it need not be the first of all
			out, err := d.append(AppendLong(buf, int64(i)), branch, value, depth)
			if err == nil {
				return out, nil
			}
		}
		return buf, mismatch(s)
	case Record:
		return d.appendRecord(buf, s, value, depth)
	case Array:
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil || items == nil {
			return buf, mismatch(s)
		}
		return d.appendItems(buf, s, items, depth)
	case Map:
		return d.appendMap(buf, s, value, depth)
	}
	return appendScalar(buf, s, value)
}

func mismatch(s *Schema) error {
	return fmt.Errorf("the default does not fit the type %s", describe(s))
}

func (d *defaults) appendRecord(buf []byte, s *Schema, value json.RawMessage, depth int) ([]byte, error) {
	var members object
	if err := json.Unmarshal(value, &members); err != nil || members == nil {
		return buf, mismatch(s)
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		v, ok := members[f.Name]
		if !ok {
			if v = f.Default; v == nil {
				return buf, fmt.Errorf("the default of %s has no %s", describe(s), f.Name)
			}
		}
		var err error
		if buf, err = d.append(buf, f.Type, v, depth); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

func (d *defaults) appendItems(buf []byte, s *Schema, items []json.RawMessage, depth int) (_ []byte, err error) {
	if len(items) > 0 {
		buf = AppendLong(buf, int64(len(items)))
	}
	for _, item := range items {
		if buf, err = d.append(buf, s.Items, item, depth); err != nil {
			return buf, err
		}
	}
	return append(buf, 0), nil
}

func (d *defaults) appendMap(buf []byte, s *Schema, value json.RawMessage, depth int) (_ []byte, err error) {
	var members object
	if err := json.Unmarshal(value, &members); err != nil || members == nil {
		return buf, mismatch(s)
	}
	if len(members) > 0 {
		buf = AppendLong(buf, int64(len(members)))
	}
	for name, v := range members {
		buf = append(AppendLong(buf, int64(len(name))), name...)
		if buf, err = d.append(buf, s.Values, v, depth); err != nil {
			return buf, err
		}
	}
	return append(buf, 0), nil
}

func appendScalar(buf []byte, s *Schema, value json.RawMessage) ([]byte, error) {
	value = bytes.TrimSpace(value)
	switch s.Kind {
	case Boolean:
		switch string(value) {
		case "true":
			return append(buf, 1), nil
		case "false":
			return append(buf, 0), nil
		}
		return buf, mismatch(s)
	case Int, Long:
		bits := 32
		if s.Kind == Long {
			bits = 64
		}
		n, err := strconv.ParseInt(string(value), 10, bits)
		if err != nil {
			return buf, mismatch(s)
		}
		return AppendLong(buf, n), nil
	case Float, Double:
		f, err := floatDefault(value)
		if err != nil {
			return buf, mismatch(s)
		}
		if s.Kind == Float {
			return binary.LittleEndian.AppendUint32(buf, math.Float32bits(float32(f))), nil
		}
		return binary.LittleEndian.AppendUint64(buf, math.Float64bits(f)), nil
	}
	return appendTextDefault(buf, s, value)
}

// floatDefault reads a number, or the names that most writers of schemas use for those that JSON lacks.
func floatDefault(value json.RawMessage) (float64, error) {
	switch textOf(value) {
	case "NaN":
		return math.NaN(), nil
	case "Infinity", "INF":
		return math.Inf(1), nil
	case "-Infinity", "-INF":
		return math.Inf(-1), nil
	}
	var f float64
	if len(value) == 0 || value[0] == 'n' {
		return 0, errDeep
	}
	return f, json.Unmarshal(value, &f)
}

func appendTextDefault(buf []byte, s *Schema, value json.RawMessage) ([]byte, error) {
	var text *string
	if err := json.Unmarshal(value, &text); err != nil || text == nil {
		return buf, mismatch(s)
	}
	switch s.Kind {
	case Enum:
		i := slices.Index(s.Symbols, *text)
		if i < 0 {
			return buf, mismatch(s)
		}
		return AppendLong(buf, int64(i)), nil
	case String:
		return append(AppendLong(buf, int64(len(*text))), *text...), nil
	}
	var raw []byte
	for _, r := range *text {
		if r > 255 {
			return buf, mismatch(s)
		}
		raw = append(raw, byte(r))
	}
	if s.Kind == Bytes {
		buf = AppendLong(buf, int64(len(raw)))
	} else if len(raw) != s.Size {
		return buf, mismatch(s)
	}
	return append(buf, raw...), nil
}

// AppendLong appends an int or a long.
func AppendLong(buf []byte, n int64) []byte {
	return binary.AppendUvarint(buf, uint64(n)<<1^uint64(n>>63))
}
