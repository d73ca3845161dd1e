package protorow

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// message is the plan of a message type: which of its fields are read, and what becomes of them.
type message struct {
	columns []column
	dense   []int32 // column by field number, from 0; -1 where there is none
	sparse  map[protowire.Number]int32
}

// denseNumbers bounds the field numbers that are looked up in a list, so that a field number of half a billion costs no
// half a billion entries.
const denseNumbers = 4096

// column is a field that is read. Its kind says how: see op.
type column struct {
	name   string
	number protowire.Number
	wire   protowire.Type // of one value in the message
	op     op
	tag    string // what goes before a value in the row; "" inside a packed list

	list     bool   // repeated, or a map
	inPacked bool   // a packed list may stand in the message
	packed   bool   // the row has a packed list
	required bool   // absent is an error
	absent   string // what the row has where the field is absent
	asEmpty  bool   // absent means a message without fields: the value of a map entry
	dropText bool   // "" is NULL
	rivals   []int32

	members *message // of opStruct, opMap, and of well-known types, whose fields are in a fixed order
	enum    *enum
	print   *printer
	compare func(a, b entry) int // of opMap: the order of keys
}

// op is how a value is read and written.
type op uint8

const (
	opInt64 op = iota + 1 // int64, sfixed64
	opInt32               // int32, sfixed32
	opSint32
	opSint64
	opUint32
	opUint64
	opBool
	opFloat
	opDouble
	opString
	opBytes
	opEnum
	opStruct
	opMap
	opTimestamp
	opDuration
	opFieldMask
	opWrapper
	opJSON // any other message that is printed
	opStructJSON
	opValueJSON
	opListJSON
	opNull // of a Value
)

// column finds the column of a field, -1 when there is none.
func (m *message) column(number uint64) int {
	if number < uint64(len(m.dense)) {
		return int(m.dense[number])
	}
	if i, ok := m.sparse[protowire.Number(number)]; ok {
		return int(i)
	}
	return -1
}

// index makes columns findable once they are all there.
func (m *message) index() {
	top := protowire.Number(-1)
	for i := range m.columns {
		if n := m.columns[i].number; n < denseNumbers {
			top = max(top, n)
		}
	}
	m.dense = make([]int32, top+1)
	for i := range m.dense {
		m.dense[i] = -1
	}
	for i := range m.columns {
		n := m.columns[i].number
		if n < denseNumbers {
			m.dense[n] = int32(i)
			continue
		}
		if m.sparse == nil {
			m.sparse = map[protowire.Number]int32{}
		}
		m.sparse[n] = int32(i)
	}
}

// enum is the names of an enum's values.
type enum struct {
	short string // of the type
	dense []string
	names map[int32]string
}

func (e *enum) name(n int32) string {
	if n >= 0 && int(n) < len(e.dense) {
		return e.dense[n]
	}
	return e.names[n]
}
