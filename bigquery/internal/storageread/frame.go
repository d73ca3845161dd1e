package storageread

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Durable bytes are two letters for the kind, a version byte, and fields one after the other: integers as varints, text
// behind its length, which may exceed 64 KiB for the schemas of wide tables. Fields are only ever appended, with a new
// version.

func appendHeader(b []byte, kind string, version byte) []byte {
	return append(append(b, kind...), version)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendInstant keeps nanoseconds, and the zero time apart from every instant.
func appendInstant(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	b = binary.AppendVarint(append(b, 1), t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

// frame reads what the functions above wrote. After the first fault everything reads as zero, and err says what it was.
type frame struct {
	rest []byte
	what string
	err  error
}

// openFrame checks the header. what names the bytes in errors.
func openFrame(b []byte, kind string, newest byte, what string) *frame {
	f := &frame{what: what}
	switch {
	case len(b) < 3 || string(b[:2]) != kind:
		f.fail("these bytes are none")
	case b[2] < 1 || b[2] > newest:
		f.fail(fmt.Sprintf("version %d: this program reads versions 1 to %d", b[2], newest))
	default:
		f.rest = b[3:]
	}
	return f
}

func (f *frame) fail(why string) {
	if f.err == nil {
		f.err = fmt.Errorf("%s of a BigQuery read: %s", f.what, why)
	}
	f.rest = nil
}

func (f *frame) uvarint() uint64 {
	v, n := binary.Uvarint(f.rest)
	if n <= 0 {
		f.fail("a number is cut or too long")
		return 0
	}
	f.rest = f.rest[n:]
	return v
}

func (f *frame) varint() int64 {
	v, n := binary.Varint(f.rest)
	if n <= 0 {
		f.fail("a number is cut or too long")
		return 0
	}
	f.rest = f.rest[n:]
	return v
}

func (f *frame) byte() byte {
	if len(f.rest) == 0 {
		f.fail("the bytes end too early")
		return 0
	}
	b := f.rest[0]
	f.rest = f.rest[1:]
	return b
}

func (f *frame) text() string {
	n := f.uvarint()
	if n > uint64(len(f.rest)) {
		f.fail("a text is longer than the bytes")
		return ""
	}
	s := string(f.rest[:n])
	f.rest = f.rest[n:]
	return s
}

func (f *frame) instant() time.Time {
	if f.byte() == 0 {
		return time.Time{}
	}
	seconds, nanos := f.varint(), f.uvarint()
	if nanos >= 1e9 {
		f.fail("an instant has more than a second of nanoseconds")
		return time.Time{}
	}
	return time.Unix(seconds, int64(nanos)).UTC()
}

// close answers the first fault; bytes left over are one.
func (f *frame) close() error {
	if f.err == nil && len(f.rest) > 0 {
		f.fail(fmt.Sprintf("%d bytes too many", len(f.rest)))
	}
	return f.err
}
