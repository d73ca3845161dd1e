package decode

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// parseFallback reads a default_value as a descriptor spells it.
func parseFallback(f *protoField, s string) (raw, bool) {
	switch f.kind {
	case protoreflect.BoolKind:
		return raw{bits: protowire.EncodeBool(s == "true")}, s == "true" || s == "false"
	case protoreflect.StringKind:
		return raw{data: []byte(s)}, true
	case protoreflect.BytesKind:
		return unescape(s)
	case protoreflect.EnumKind:
		for number, name := range f.enum {
			if name == s {
				return raw{bits: uint64(int64(number))}, true
			}
		}
		return raw{}, false
	case protoreflect.DoubleKind:
		v, err := strconv.ParseFloat(s, 64)
		return raw{bits: math.Float64bits(v)}, err == nil
	case protoreflect.FloatKind:
		v, err := strconv.ParseFloat(s, 32)
		return raw{bits: uint64(math.Float32bits(float32(v)))}, err == nil
	}
	return parseIntFallback(f.kind, s)
}

func parseIntFallback(kind protoreflect.Kind, s string) (raw, bool) {
	switch kind {
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		v, err := strconv.ParseUint(s, 0, 32)
		return raw{bits: v}, err == nil
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		v, err := strconv.ParseUint(s, 0, 64)
		return raw{bits: v}, err == nil
	case protoreflect.Int32Kind, protoreflect.Sfixed32Kind:
		v, err := strconv.ParseInt(s, 0, 32)
		return raw{bits: uint64(v)}, err == nil
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		v, err := strconv.ParseInt(s, 0, 64)
		return raw{bits: protowire.EncodeZigZag(v)}, err == nil
	case protoreflect.Int64Kind, protoreflect.Sfixed64Kind:
		v, err := strconv.ParseInt(s, 0, 64)
		return raw{bits: uint64(v)}, err == nil
	}
	return raw{}, false
}

// unescape reads C escapes, the spelling of a bytes default.
func unescape(s string) (raw, bool) {
	var out []byte
	for s != "" {
		if s[0] != '\\' {
			out, s = append(out, s[0]), s[1:]
			continue
		}
		value, _, rest, err := strconv.UnquoteChar(s, 0)
		if err != nil {
			// UnquoteChar refuses an escaped quote unless told which, and descriptors escape both.
			if len(s) > 1 && (s[1] == '\'' || s[1] == '"') {
				out, s = append(out, s[1]), s[2:]
				continue
			}
			return raw{}, false
		}
		out, s = append(out, byte(value)), rest
	}
	return raw{data: out}, true
}
