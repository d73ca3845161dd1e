package protorow

import (
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// The messages of struct.proto are what JSON columns are mostly made of. They are printed from their wire form, as
// protobuf's printer would print them.

// structPlan, entryPlan, listPlan and valuePlan are the messages of struct.proto: fields as scan finds them.
var (
	structPlan = planOf(column{number: 1, wire: protowire.BytesType, list: true})
	entryPlan  = planOf(column{number: 1, wire: protowire.BytesType}, column{number: 2, wire: protowire.BytesType, members: &message{}})
	listPlan   = planOf(column{number: 1, wire: protowire.BytesType, list: true})
	valuePlan  = planOf(
		column{number: 1, wire: protowire.VarintType, op: opNull, rivals: []int32{1, 2, 3, 4, 5}},
		column{number: 2, wire: protowire.Fixed64Type, op: opDouble, rivals: []int32{0, 2, 3, 4, 5}},
		column{number: 3, wire: protowire.BytesType, op: opString, rivals: []int32{0, 1, 3, 4, 5}},
		column{number: 4, wire: protowire.VarintType, op: opBool, rivals: []int32{0, 1, 2, 4, 5}},
		column{number: 5, wire: protowire.BytesType, op: opStructJSON, rivals: []int32{0, 1, 2, 3, 5}, members: structPlan},
		column{number: 6, wire: protowire.BytesType, op: opListJSON, rivals: []int32{0, 1, 2, 3, 4}, members: listPlan},
	)
	compareText = keyOrder(protoreflect.StringKind)
)

func planOf(columns ...column) *message {
	m := &message{columns: columns}
	m.index()
	return m
}

// maxPrintedDepth is how deep messages may lie in one another, as in the protobuf library (protobuf-go 1.36.12,
// protowire.DefaultRecursionLimit).
const maxPrintedDepth = 10_000

// json appends the JSON text of a Struct, a Value or a ListValue, with its length.
func (s *scratch) json(buf []byte, o op, data []byte) ([]byte, *row.Error) {
	buf, start := row.BeginLength(buf)
	buf, why := s.print(buf, o, data, maxPrintedDepth)
	if why != "" {
		return buf, unprintable(why)
	}
	return row.EndLength(buf, start), nil
}

// print appends the JSON text of a message. why is empty unless it has none.
func (s *scratch) print(buf []byte, o op, data []byte, deeper int) (out []byte, why string) {
	if deeper == 0 {
		return buf, "its values lie too deep in one another"
	}
	switch o {
	case opStructJSON:
		return s.printStruct(buf, data, deeper-1)
	case opListJSON:
		return s.printList(buf, data, deeper-1)
	}
	return s.printValue(buf, data, deeper-1)
}

func (s *scratch) printStruct(buf, data []byte, deeper int) ([]byte, string) {
	base := len(s.entries)
	if err := s.collect(structPlan, entryPlan, data); err != nil {
		return buf, whyNoMessage
	}
	slices.SortStableFunc(s.entries[base:], compareText)
	buf = append(buf, '{')
	first := true
	for i := base; i < len(s.entries); i++ {
		if i+1 < len(s.entries) && compareText(s.entries[i], s.entries[i+1]) == 0 {
			continue
		}
		if !first {
			buf = append(buf, ',')
		}
		first = false
		var why string
		if buf, why = s.printMember(buf, s.entries[i], deeper); why != "" {
			return buf, why
		}
	}
	clear(s.entries[base:])
	s.entries = s.entries[:base]
	return append(buf, '}'), ""
}

func (s *scratch) printMember(buf []byte, e entry, deeper int) ([]byte, string) {
	if !utf8.Valid(e.text) {
		return buf, whyNoMessage
	}
	buf = append(row.AppendQuoted(buf, e.text), ':')
	base := s.push(entryPlan)
	if err := s.scan(entryPlan, e.data, base); err != nil {
		return buf, whyNoMessage
	}
	value := s.slots[base+1].data
	s.pop(base)
	return s.print(buf, opValueJSON, value, deeper)
}

// collect appends the entries of the map that is the first field of a message.
func (s *scratch) collect(m, members *message, data []byte) error {
	base := s.push(m)
	if err := s.scan(m, data, base); err != nil {
		return err
	}
	all := s.slots[base].data
	s.pop(base)
	return s.collectEntries(&m.columns[0], members, all)
}

func (s *scratch) printList(buf, data []byte, deeper int) ([]byte, string) {
	base := s.push(listPlan)
	if err := s.scan(listPlan, data, base); err != nil {
		return buf, whyNoMessage
	}
	all := s.slots[base].data
	s.pop(base)
	buf = append(buf, '[')
	first := true
	for len(all) > 0 {
		number, typ, n := tag(all)
		_, content, size := value(all[n:], number, typ)
		all = all[n+size:]
		if number != 1 || typ != protowire.BytesType {
			continue
		}
		if !first {
			buf = append(buf, ',')
		}
		first = false
		var why string
		if buf, why = s.print(buf, opValueJSON, content, deeper); why != "" {
			return buf, why
		}
	}
	return append(buf, ']'), ""
}

func (s *scratch) printValue(buf, data []byte, deeper int) ([]byte, string) {
	base := s.push(valuePlan)
	if err := s.scan(valuePlan, data, base); err != nil {
		return buf, whyNoMessage
	}
	kind := slices.IndexFunc(s.slots[base:], func(sl slot) bool { return sl.seen })
	if kind < 0 {
		return buf, whyNoForm
	}
	v := s.slots[base+kind]
	s.pop(base)
	switch o := valuePlan.columns[kind].op; o {
	case opNull:
		return append(buf, "null"...), ""
	case opBool:
		return strconv.AppendBool(buf, v.num != 0), ""
	case opString:
		if !utf8.Valid(v.data) {
			return buf, whyNoMessage
		}
		return row.AppendQuoted(buf, v.data), ""
	case opDouble:
		return printNumber(buf, math.Float64frombits(v.num))
	default:
		return s.print(buf, o, v.data, deeper)
	}
}

// printNumber writes a number as JavaScript does, like the protobuf library and encoding/json.
func printNumber(buf []byte, f float64) ([]byte, string) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return buf, whyNoForm
	}
	if a := math.Abs(f); a == 0 || a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(buf, f, 'f', -1, 64), ""
	}
	buf = strconv.AppendFloat(buf, f, 'e', -1, 64)
	if n := len(buf); buf[n-4] == 'e' && buf[n-3] == '-' && buf[n-2] == '0' { // e-09 is e-9
		buf[n-2] = buf[n-1]
		buf = buf[:n-1]
	}
	return buf, ""
}
