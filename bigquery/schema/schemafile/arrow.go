package schemafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/millrace-dev/millrace/bigquery/schema/arrowschema"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// readArrow reads the schema of an IPC file or stream. The library takes as much memory as a damaged one says, and meets other
// damage with a panic, so what it will read is looked through before.
func readArrow(r io.ReaderAt, size int64, stream bool) (s *table.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("the Arrow file is damaged: %v", p)
		}
	}()
	if stream {
		err = checkStream(r, size)
	} else {
		err = checkFile(r, size)
	}
	if err != nil {
		return nil, fmt.Errorf("no Arrow file, or a damaged one: %w", err)
	}
	if stream {
		in, err := ipc.NewReader(io.NewSectionReader(r, 0, size))
		if err != nil {
			return nil, fmt.Errorf("no Arrow stream, or a damaged one: %w", err)
		}
		defer in.Release()
		return arrowschema.Read(in.Schema())
	}
	in, err := ipc.NewFileReader(io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, fmt.Errorf("no Arrow file, or a damaged one: %w", err)
	}
	s, err = arrowschema.Read(in.Schema())
	return s, errors.Join(err, in.Close())
}

// checkStream looks at the first message: a marker, a length, and a Message (Arrow columnar format, "Encapsulated message
// format"; Message.fbs).
func checkStream(r io.ReaderAt, size int64) error {
	text, err := part(r, size, 4, 8)
	if err != nil {
		return err
	}
	b, err := part(r, size, 8, 8+int64(binary.LittleEndian.Uint32(text)))
	if err != nil {
		return err
	}
	message := buffer(b).root()
	if kind := buffer(b).field(message, 6); kind == 0 || b[kind] != 1 {
		return errors.New("the first message is no schema")
	}
	return buffer(b).schema(buffer(b).child(message, 8))
}

// checkFile looks at the footer, whose length stands before the marker at the end (File.fbs).
func checkFile(r io.ReaderAt, size int64) error {
	text, err := part(r, size, size-10, size-6)
	if err != nil {
		return err
	}
	b, err := part(r, size, size-10-int64(binary.LittleEndian.Uint32(text)), size-10)
	if err != nil {
		return err
	}
	footer := buffer(b).root()
	for _, blocks := range []int{8, 10} { // of dictionaries, and of record batches: 24 bytes each
		if _, _, err := buffer(b).vector(footer, blocks, 24); err != nil {
			return err
		}
	}
	return buffer(b).schema(buffer(b).child(footer, 6))
}

// part reads the bytes from one place to another.
func part(r io.ReaderAt, size, from, to int64) ([]byte, error) {
	if from < 0 || to < from || to > size || to-from > maxText {
		return nil, errors.New("a length in it does not fit the file")
	}
	b := make([]byte, to-from)
	if _, err := r.ReadAt(b, from); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b, nil
}

// buffer is a FlatBuffer (FlatBuffers, "Internals"). Reading outside of it panics.
type buffer []byte

func (b buffer) uint32(at int) int { return int(binary.LittleEndian.Uint32(b[at:])) }

func (b buffer) root() int { return b.uint32(0) }

// field is where a table's field is, by its place in the table of offsets; 0 when it is not there.
func (b buffer) field(t, slot int) int {
	offsets := t - int(int32(b.uint32(t)))
	if slot >= int(binary.LittleEndian.Uint16(b[offsets:])) {
		return 0
	}
	off := int(binary.LittleEndian.Uint16(b[offsets+slot:]))
	if off == 0 {
		return 0
	}
	return t + off
}

// child is the table that a field refers to.
func (b buffer) child(t, slot int) int {
	at := b.field(t, slot)
	if at == 0 {
		return 0
	}
	return at + b.uint32(at)
}

// vector is where a field's elements begin, and how many there are, which the buffer must have room for.
func (b buffer) vector(t, slot, size int) (start, n int, err error) {
	at := b.child(t, slot)
	if at == 0 {
		return 0, 0, nil
	}
	if n = b.uint32(at); n > (len(b)-at-4)/size {
		return 0, 0, errors.New("a list in it is longer than the file")
	}
	return at + 4, n, nil
}

// schema looks through a Schema: its fields, and what they contain (Schema.fbs).
func (b buffer) schema(t int) error {
	if t == 0 {
		return errors.New("it has no schema")
	}
	left := table.MaxColumns * 4 // fields may be shared by many, so that they are more than the bytes
	return b.fields(t, 6, 8, &left)
}

func (b buffer) fields(t, children, metadata int, left *int) error {
	if _, _, err := b.vector(t, metadata, 4); err != nil {
		return err
	}
	start, n, err := b.vector(t, children, 4)
	if err != nil {
		return err
	}
	if *left -= n; *left < 0 {
		return errors.New("it has more fields than a table could have columns")
	}
	for i := range n {
		at := start + 4*i
		if err := b.fields(at+b.uint32(at), 14, 16, left); err != nil {
			return err
		}
	}
	return nil
}
