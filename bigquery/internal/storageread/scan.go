package storageread

import (
	"io"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// scan is a part of a message that lies in several buffers, taken off from its beginning.
type scan struct {
	buffers mem.BufferSlice
	at      int // where it begins in the first of them
	left    int // how many bytes it has
}

func newScan(data mem.BufferSlice) scan { return scan{data, 0, data.Len()} }

// field is where one is: behind head bytes of tag and length it has size bytes.
type field struct {
	number     protowire.Number
	kind       protowire.Type
	head, size int
}

// field reads what comes first.
func (s *scan) field() (f field, err error) {
	const most = 2 * 10 // a tag and a length, each a varint (Protocol Buffers, "Encoding")
	b := s.append(make([]byte, 0, most), min(most, s.left))
	f.number, f.kind, f.head = protowire.ConsumeTag(b)
	if f.head < 0 {
		return f, protowire.ParseError(f.head)
	}
	switch f.kind {
	case protowire.BytesType:
		size, n := protowire.ConsumeVarint(b[f.head:])
		if n < 0 {
			return f, protowire.ParseError(n)
		}
		f.head += n
		if size > uint64(s.left-f.head) {
			return f, io.ErrUnexpectedEOF
		}
		f.size = int(size)
		return f, nil
	case protowire.StartGroupType:
		b = s.append(nil, s.left)
	}
	f.size = protowire.ConsumeFieldValue(f.number, f.kind, b[f.head:])
	if f.size < 0 {
		return f, protowire.ParseError(f.size)
	}
	return f, nil
}

// first is a scan of the first n bytes.
func (s *scan) first(n int) scan { return scan{s.buffers, s.at, n} }

func (s *scan) skip(n int) {
	s.left -= n
	s.at += n
	for len(s.buffers) > 0 && s.at >= s.buffers[0].Len() {
		s.at -= s.buffers[0].Len()
		s.buffers = s.buffers[1:]
	}
}

// append appends the first n bytes to b.
func (s *scan) append(b []byte, n int) []byte {
	at := s.at
	for _, buf := range s.buffers {
		part := buf.ReadOnlyData()[at:]
		if at = 0; len(part) >= n {
			return append(b, part[:n]...)
		}
		b = append(b, part...)
		n -= len(part)
	}
	return b
}

// share is all bytes in the same buffers, which live until it is freed.
func (s *scan) share() (all mem.BufferSlice) {
	at, n := s.at, s.left
	for _, buf := range s.buffers {
		if n == 0 {
			break
		}
		end := min(buf.Len(), at+n)
		all = append(all, buf.Slice(at, end))
		n -= end - at
		at = 0
	}
	return all
}
