package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/millrace-dev/millrace/stream"
)

// The frame of a stored checkpoint, the same in all versions, integers big-endian:
//
//	magic    "millrace checkpoint\n"
//	version  uint32
//	length   uint64, of the payload
//	payload
//	crc      uint32, CRC-32C of everything before it
//
// The payload is a row of fields in the order of encodePayload: integers as varints, texts and bytes with their length before
// them, lists with their count. Version 1 had committables without their checkpoint.
const (
	magic         = "millrace checkpoint\n"
	frameHead     = len(magic) + 4 + 8
	frameTail     = 4
	formatVersion = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged is wrapped by what DecodeCheckpoint answers for bytes that are not a whole checkpoint: torn, truncated,
// changed, or something else altogether.
var ErrDamaged = errors.New("not a whole checkpoint")

// FormatError is what DecodeCheckpoint answers for a checkpoint in a format it does not know: a later version wrote it.
type FormatError struct{ Version uint32 }

func (e *FormatError) Error() string {
	return fmt.Sprintf("the checkpoint has format %d, and this version of millrace reads formats up to %d: "+
		"use the version that wrote it, or a later one", e.Version, formatVersion)
}

// Encode returns the checkpoint as it is stored.
func (c *Checkpoint) Encode() []byte {
	payload := c.encodePayload()
	b := make([]byte, 0, frameHead+len(payload)+frameTail)
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint32(b, formatVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(len(payload)))
	b = append(b, payload...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// DecodeCheckpoint reads what Encode returned, now or in any earlier version. The checkpoint shares no memory with data.
func DecodeCheckpoint(data []byte) (*Checkpoint, error) {
	version, payload, err := unframe(data)
	if err != nil {
		return nil, err
	}
	if version == 0 || version > formatVersion {
		return nil, &FormatError{version}
	}
	d := decoder{rest: bytes.Clone(payload), version: version}
	c := d.checkpoint()
	if d.err == nil && len(d.rest) > 0 {
		d.fail("%d bytes follow the last field", len(d.rest))
	}
	if d.err != nil {
		return nil, d.err
	}
	return c, nil
}

func unframe(data []byte) (version uint32, payload []byte, err error) {
	if !bytes.HasPrefix(data, []byte(magic)) {
		return 0, nil, fmt.Errorf("%w: it does not begin as one", ErrDamaged)
	}
	if len(data) < frameHead+frameTail {
		return 0, nil, fmt.Errorf("%w: it ends after %d bytes", ErrDamaged, len(data))
	}
	version = binary.BigEndian.Uint32(data[len(magic):])
	length := binary.BigEndian.Uint64(data[len(magic)+4:])
	if have := uint64(len(data) - frameHead - frameTail); length != have {
		return 0, nil, fmt.Errorf("%w: it says that its payload has %d bytes and has %d", ErrDamaged, length, have)
	}
	body, tail := data[:len(data)-frameTail], data[len(data)-frameTail:]
	if got, want := crc32.Checksum(body, castagnoli), binary.BigEndian.Uint32(tail); got != want {
		return 0, nil, fmt.Errorf("%w: its checksum is %08x, want %08x", ErrDamaged, got, want)
	}
	return version, body[frameHead:], nil
}

const (
	flagSavepoint = 1 << iota
	flagFinished
	flagStopped
	knownFlags = 1<<iota - 1
)

func (c *Checkpoint) flags() (f int64) {
	for flag, set := range map[int64]bool{flagSavepoint: c.Savepoint, flagFinished: c.Finished, flagStopped: c.Stopped} {
		if set {
			f |= flag
		}
	}
	return f
}

func (c *Checkpoint) encodePayload() []byte {
	var e encoder
	e.text(c.Job)
	e.int(c.ID)
	e.bytes(c.Run[:])
	e.int(c.Taken.UnixNano())
	e.int(int64(c.Lanes))
	e.int(c.flags())
	e.tally(c.Tally)
	e.int(c.InputBytes)
	e.bytes(c.Enumerator)
	e.count(len(c.Splits))
	for _, h := range c.Splits {
		e.int(int64(h.Lane))
		e.text(h.Split.ID)
		e.bytes(h.Split.Data)
		e.int(h.Split.Position)
	}
	e.count(len(c.States))
	for _, s := range c.States {
		e.text(s.Destination)
		e.text(s.Shard)
		e.bytes(s.Data)
	}
	e.count(len(c.Committables))
	for _, h := range c.Committables {
		e.int(int64(h.Lane))
		e.int(h.Checkpoint)
		e.text(h.Committable.Key)
		e.bytes(h.Committable.Data)
	}
	return e.b
}

func (d *decoder) checkpoint() *Checkpoint {
	c := &Checkpoint{Job: d.text(), ID: d.int()}
	d.runID(&c.Run)
	c.Taken = time.Unix(0, d.int()).UTC()
	c.Lanes = d.small("lanes")
	flags := d.int()
	if flags&^knownFlags != 0 {
		d.fail("flags %#x, of which only %#x are known", flags, int64(knownFlags))
	}
	c.Savepoint, c.Finished, c.Stopped = flags&flagSavepoint != 0, flags&flagFinished != 0, flags&flagStopped != 0
	c.Tally = d.tally()
	c.InputBytes = d.int()
	c.Enumerator = d.bytes()
	c.Splits = list(d, func() HeldSplit {
		return HeldSplit{d.small("lane"), stream.Split{ID: d.text(), Data: d.bytes(), Position: d.int()}}
	})
	c.States = list(d, func() stream.State {
		return stream.State{Destination: d.text(), Shard: d.text(), Data: d.bytes()}
	})
	c.Committables = list(d, func() HeldCommittable {
		h := HeldCommittable{Lane: d.small("lane")}
		if d.version > 1 {
			h.Checkpoint = d.int()
		}
		h.Committable = stream.Committable{Key: d.text(), Data: d.bytes()}
		return h
	})
	return c
}

type encoder struct{ b []byte }

func (e *encoder) int(v int64)   { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) count(n int)   { e.b = binary.AppendUvarint(e.b, uint64(n)) }
func (e *encoder) text(s string) { e.count(len(s)); e.b = append(e.b, s...) }

// bytes keeps nil apart from empty: a nil enumerator state means a fresh start.
func (e *encoder) bytes(p []byte) {
	if p == nil {
		e.count(0)
		return
	}
	e.count(len(p) + 1)
	e.b = append(e.b, p...)
}

func (e *encoder) tally(t stream.Tally) {
	for _, n := range tallyFields(&t) {
		e.int(*n)
	}
}

func tallyFields(t *stream.Tally) [6]*int64 {
	return [...]*int64{&t.Read, &t.Written, &t.DeadLettered, &t.Skipped, &t.Failed, &t.Bytes}
}

// decoder reads fields off rest. After the first fault it answers zeros.
type decoder struct {
	rest    []byte
	version uint32
	err     error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
	}
	d.rest = nil
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail("a number is cut or too long")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) small(what string) int {
	v := d.int()
	if v < 0 || v > 1<<31-1 {
		d.fail("%s %d", what, v)
		return 0
	}
	return int(v)
}

// count reads a number of things that take at least one byte each.
func (d *decoder) count() int {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail("a length is cut or too long")
		return 0
	}
	d.rest = d.rest[n:]
	if v > uint64(len(d.rest))+1 {
		d.fail("a length of %d where %d bytes are left", v, len(d.rest))
		return 0
	}
	return int(v)
}

func (d *decoder) take(n int) []byte {
	if n > len(d.rest) {
		d.fail("%d bytes where %d are left", n, len(d.rest))
		return nil
	}
	p := d.rest[:n:n]
	d.rest = d.rest[n:]
	return p
}

func (d *decoder) text() string { return string(d.take(d.count())) }

func (d *decoder) bytes() []byte {
	n := d.count()
	if n == 0 {
		return nil
	}
	return d.take(n - 1)
}

func (d *decoder) runID(id *RunID) {
	p := d.bytes()
	if d.err == nil && len(p) != len(id) {
		d.fail("a run id of %d bytes", len(p))
	}
	copy(id[:], p)
}

func (d *decoder) tally() (t stream.Tally) {
	for _, n := range tallyFields(&t) {
		*n = d.int()
	}
	return t
}

func list[T any](d *decoder, one func() T) []T {
	var all []T
	for range d.count() {
		if d.err != nil {
			return nil
		}
		all = append(all, one())
	}
	return all
}
