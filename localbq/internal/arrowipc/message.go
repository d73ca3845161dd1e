package arrowipc

import (
	"encoding/binary"
	"fmt"
)

// Kinds of message and versions of metadata (Message.fbs, MessageHeader; Schema.fbs, MetadataVersion).
const (
	headerSchema      = 1
	headerRecordBatch = 3
	version4          = 3 // the oldest version with today's buffers
	continuation      = 0xffffffff
)

var headerNames = map[uint8]string{1: "schema", 2: "dictionary batch", 3: "record batch", 4: "tensor", 5: "sparse tensor"}

// message is one encapsulated message.
type message struct {
	meta   *flatbuffer
	header table
	body   []byte
}

// parse reads a message that must be all there is, and of one kind.
func parse(b []byte, header uint8) (*message, error) {
	want := headerNames[header]
	meta, rest, err := metadata(b)
	if err != nil {
		return nil, fmt.Errorf("not an IPC %s message: %w", want, err)
	}
	m := &message{meta: &flatbuffer{data: meta}}
	root := m.meta.root()
	version, kind, length := root.int16(0, 0), root.byte(1, 0), root.int64(3)
	m.header, _ = root.sub(2)
	switch {
	case m.meta.broken:
		return nil, fmt.Errorf("not an IPC %s message: its metadata is malformed", want)
	case version < version4:
		return nil, fmt.Errorf("an IPC message of metadata version V%d, expected V4 or V5", version+1)
	case kind != header:
		return nil, fmt.Errorf("an IPC message of kind %s, expected one bare %s message", kindName(kind), want)
	case length < 0 || length > int64(len(rest)):
		return nil, fmt.Errorf("the IPC message says its body has %d bytes, and has %d", length, len(rest))
	case length < int64(len(rest)):
		return nil, fmt.Errorf("%d bytes follow the IPC %s message, expected one bare message", int64(len(rest))-length, want)
	}
	m.body = rest
	return m, nil
}

func kindName(kind uint8) string {
	if name, ok := headerNames[kind]; ok {
		return name
	}
	return fmt.Sprintf("number %d", kind)
}

// metadata cuts a message into its metadata and what follows. The continuation marker is missing from messages of Arrow
// before 0.15.
func metadata(b []byte) (meta, rest []byte, err error) {
	if len(b) >= 4 && binary.LittleEndian.Uint32(b) == continuation {
		b = b[4:]
	}
	if len(b) < 4 {
		return nil, nil, fmt.Errorf("it is cut off at the length of its metadata")
	}
	size := int64(int32(binary.LittleEndian.Uint32(b)))
	b = b[4:]
	if size <= 0 || size > int64(len(b)) {
		return nil, nil, fmt.Errorf("its metadata has %d bytes by its own account, and %d follow", size, len(b))
	}
	return b[:size], b[size:], nil
}
