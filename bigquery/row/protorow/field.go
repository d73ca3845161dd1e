package protorow

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// AppendField appends the text of a value in a message in wire form, at a dotted path of declared names: what records are routed by.
// Texts, whole numbers, booleans and the names of enums' values have such a text. Errors are *row.Error values: R-REQUIRED where the
// path leads nowhere, or to a field that is not set or empty, R-TYPE where the value has no such text.
func AppendField(buf []byte, md protoreflect.MessageDescriptor, message []byte, path string) ([]byte, error) {
	for rest := path; ; {
		name, more, deeper := strings.Cut(rest, ".")
		fd := md.Fields().ByName(protoreflect.Name(name))
		if fd == nil {
			return buf, routing(row.KindRequired, path, "the message has no such field, and the record is routed by it")
		}
		if fd.Cardinality() == protoreflect.Repeated || deeper && fd.Message() == nil {
			return buf, routing(row.KindType, path, "expected a path of messages to a single text, number, boolean or enum")
		}
		sl, err := find(message, fd)
		if err != nil {
			return buf, malformed(err)
		}
		if !deeper {
			return appendText(buf, fd, sl, path)
		}
		if !sl.seen {
			return buf, routing(row.KindRequired, path, noValue)
		}
		md, message, rest = fd.Message(), sl.data, more
	}
}

const noValue = "there is no value, and the record is routed by it"

func routing(kind row.Kind, path, msg string) *row.Error {
	return &row.Error{Kind: kind, Path: path, Offset: -1, Msg: msg}
}

// find is what a message has of one field that is not repeated.
func find(message []byte, fd protoreflect.FieldDescriptor) (sl slot, err error) {
	_, wire, _ := scalar(fd.Kind())
	if fd.Kind() == protoreflect.GroupKind {
		wire = protowire.StartGroupType
	}
	for at := 0; at < len(message); {
		number, typ, n := tag(message[at:])
		if n <= 0 {
			return sl, errTag
		}
		at += n
		num, content, n := value(message[at:], number, typ)
		if n < 0 {
			return sl, errCut
		}
		at += n
		switch {
		case number > math.MaxInt32:
		case number != uint64(fd.Number()):
			if o := fd.ContainingOneof(); o != nil && o.Fields().ByNumber(protowire.Number(number)) != nil {
				sl = slot{} // of the members of a oneof the last counts
			}
		case typ != wire:
		case sl.seen && fd.Message() != nil:
			sl.data = append(slices.Clip(sl.data), content...)
		default:
			sl = slot{num: num, data: content, seen: true}
		}
	}
	return sl, nil
}

// appendText appends the text of a value, or of what stands for one that is not there.
func appendText(buf []byte, fd protoreflect.FieldDescriptor, sl slot, path string) ([]byte, error) {
	if !sl.seen && fd.HasPresence() {
		return buf, routing(row.KindRequired, path, noValue)
	}
	o, _, _ := scalar(fd.Kind())
	switch {
	case fd.Message() != nil || o == opBytes || o == opFloat || o == opDouble:
		return buf, routing(row.KindType, path, "expected a text, a whole number, a boolean or an enum")
	case o == opString && len(sl.data) == 0:
		return buf, routing(row.KindRequired, path, noValue)
	case o == opString && !utf8.Valid(sl.data):
		return buf, row.At(errUTF8, path, -1)
	case o == opString:
		return append(buf, sl.data...), nil
	case o == opBool:
		return strconv.AppendBool(buf, sl.num != 0), nil
	case o == opEnum:
		if v := fd.Enum().Values().ByNumber(protoreflect.EnumNumber(int32(sl.num))); v != nil {
			return append(buf, v.Name()...), nil
		}
		return strconv.AppendInt(buf, int64(int32(sl.num)), 10), nil
	case o == opUint64:
		return strconv.AppendUint(buf, sl.num, 10), nil
	}
	return strconv.AppendInt(buf, (&column{op: o}).integer(sl.num), 10), nil
}
