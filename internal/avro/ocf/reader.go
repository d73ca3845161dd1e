package ocf

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/millrace-dev/millrace/internal/avro"
)

// ErrDamaged is found in errors about bytes that are no container file, or no longer one. The same bytes will make no more sense
// the next time.
var ErrDamaged = errors.New("the Avro file is damaged or cut short")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

// Header is what a file begins with.
type Header struct {
	Text   string // the schema as JSON
	Schema *avro.Schema
	Codec  string // "null", "deflate", …
	Sync   [16]byte
	Size   int64 // where the first block begins
}

// magic is what every file begins with.
var magic = []byte("Obj\x01")

// maxHeaderBytes bounds the header. Schemas of the widest tables have a few MiB.
const maxHeaderBytes = 64 << 20

// Reader reads blocks one after the other. It is used from one goroutine.
type Reader struct {
	Header
	in    *bufio.Reader
	at    int64 // of in
	limit int
	codec codec

	raw, data []byte // of the block read last
}

// NewReader reads the header of a file. A block of more than limit bytes, packed or not, is refused.
func NewReader(in io.Reader, limit int) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(in, 64<<10), limit: limit}
	if err := r.header(); err != nil {
		return nil, err
	}
	c, err := codecOf(r.Codec)
	if err != nil {
		return nil, err
	}
	r.codec = c
	return r, nil
}

// NewReaderAt reads on in a file whose header is known. in begins at that offset of the file.
func NewReaderAt(h Header, in io.Reader, at int64, limit int) (*Reader, error) {
	c, err := codecOf(h.Codec)
	if err != nil {
		return nil, err
	}
	return &Reader{Header: h, in: bufio.NewReaderSize(in, 64<<10), at: at, limit: limit, codec: c}, nil
}

func (r *Reader) header() error {
	head, err := r.take(len(magic))
	if err != nil {
		return eof(err)
	}
	if !bytes.Equal(head, magic) {
		return damaged("it does not begin as one: expected Obj and the byte 1")
	}
	meta, err := r.metadata()
	if err != nil {
		return err
	}
	sync, err := r.take(len(r.Sync))
	if err != nil {
		return eof(err)
	}
	copy(r.Sync[:], sync)
	r.Size, r.Text, r.Codec = r.at, meta["avro.schema"], meta["avro.codec"]
	if r.Codec == "" {
		r.Codec = "null"
	}
	if r.Schema, err = avro.Parse(r.Text); err != nil {
		return damaged("its schema cannot be read: %v", err)
	}
	r.Schema.Prepare()
	if r.Schema.Empty() {
		return fmt.Errorf("the schema of the Avro file has records that take no bytes: expected a record with fields")
	}
	return nil
}

// metadata reads the map of text and bytes behind the magic.
func (r *Reader) metadata() (map[string]string, error) {
	meta := map[string]string{}
	for {
		n, err := r.count()
		if err != nil || n == 0 {
			return meta, err
		}
		for ; n > 0; n-- {
			key, err := r.text()
			if err != nil {
				return nil, err
			}
			if meta[key], err = r.text(); err != nil {
				return nil, err
			}
		}
	}
}

func (r *Reader) count() (int64, error) {
	n, err := r.long()
	if n < 0 {
		_, err = r.long()
		n = -n
	}
	if n < 0 || r.at > maxHeaderBytes {
		return 0, damaged("its header has more than %d bytes", maxHeaderBytes)
	}
	return n, eof(err)
}

func (r *Reader) text() (string, error) {
	n, err := r.long()
	if err != nil {
		return "", eof(err)
	}
	if n < 0 || n > maxHeaderBytes-r.at {
		return "", damaged("its header has more than %d bytes", maxHeaderBytes)
	}
	b, err := r.take(int(n))
	return string(b), eof(err)
}

// eof turns the end of the input into what it is where more must come.
func eof(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("it ends too early")
	}
	return err
}

func (r *Reader) long() (int64, error) {
	var b [10]byte
	for n := range b {
		c, err := r.in.ReadByte()
		if err != nil {
			if n > 0 {
				err = eof(err)
			}
			return 0, err
		}
		r.at++
		b[n] = c
		if c < 0x80 {
			u, next := avro.Varint(b[:n+1], 0)
			if next < 0 {
				break
			}
			return avro.Zigzag(u), nil
		}
	}
	return 0, damaged("a number has more than 64 bits")
}

// take reads n bytes, allocating no more than twice what is there.
func (r *Reader) take(n int) ([]byte, error) {
	const step = 1 << 20
	if cap(r.raw) < n && n <= step {
		r.raw = make([]byte, n)
	}
	if cap(r.raw) >= n {
		r.raw = r.raw[:n]
		read, err := io.ReadFull(r.in, r.raw)
		r.at += int64(read)
		return r.raw, err
	}
	var b bytes.Buffer
	read, err := io.CopyN(&b, r.in, int64(n))
	r.at += read
	r.raw = b.Bytes()
	return r.raw, err
}

// Block is a block's header.
type Block struct {
	Offset int64 // of the block in the file
	Count  int64 // of records
	Size   int64 // of its packed bytes
}

// Next reads the header of the next block; io.EOF at the end of the file. Data or Skip must follow.
func (r *Reader) Next() (Block, error) {
	b := Block{Offset: r.at}
	var err error
	if b.Count, err = r.long(); err != nil {
		return b, err // io.EOF: between blocks is where a file ends
	}
	if b.Size, err = r.long(); err != nil {
		return b, r.blockError(b, eof(err))
	}
	if b.Count < 0 || b.Size < 0 {
		return b, r.blockError(b, damaged("a block of %d records in %d bytes", b.Count, b.Size))
	}
	if b.Size > int64(r.limit) {
		return b, r.blockError(b, r.tooLarge())
	}
	return b, nil
}

// tooLarge is no damage: the block may be right, and the limit too low.
func (r *Reader) tooLarge() error {
	return fmt.Errorf("a block of more than %d bytes: raise maxBlockBytes if the file is to be trusted", r.limit)
}

func (r *Reader) blockError(b Block, err error) error {
	return fmt.Errorf("block at byte %d: %w", b.Offset, err)
}

// Data reads the records of a block, in the clear. They are valid until the next call.
func (r *Reader) Data(b Block) ([]byte, error) {
	raw, err := r.take(int(b.Size))
	if err != nil {
		return nil, r.blockError(b, eof(err))
	}
	data, err := r.codec.unpack(r.data[:0], raw, r.limit)
	if errors.Is(err, errTooLarge) || err == nil && len(data) > r.limit {
		return nil, r.blockError(b, r.tooLarge())
	}
	if err != nil {
		return nil, r.blockError(b, damaged("its %s bytes cannot be unpacked: %v", r.Codec, err))
	}
	if r.Codec != "null" {
		r.data = data
	}
	// Every record takes a byte at least.
	if b.Count > int64(len(data)) {
		return nil, r.blockError(b, damaged("it says %d records and has %d bytes", b.Count, len(data)))
	}
	return data, r.sync(b)
}

// Skip passes over the bytes of a block.
func (r *Reader) Skip(b Block) error {
	n, err := r.in.Discard(int(b.Size))
	r.at += int64(n)
	if err != nil {
		return r.blockError(b, eof(err))
	}
	return r.sync(b)
}

func (r *Reader) sync(b Block) error {
	var got [16]byte
	n, err := io.ReadFull(r.in, got[:])
	r.at += int64(n)
	if err != nil {
		return r.blockError(b, eof(err))
	}
	if got != r.Sync {
		return r.blockError(b, damaged("the marker behind it is not the file's"))
	}
	return nil
}

// At is the offset of the next block.
func (r *Reader) At() int64 { return r.at }

// Seek goes behind the next sync marker that begins at the current offset or later; io.EOF where there is none.
func (r *Reader) Seek() error {
	for {
		window, err := r.in.Peek(r.in.Size())
		if i := bytes.Index(window, r.Sync[:]); i >= 0 {
			n, _ := r.in.Discard(i + len(r.Sync))
			r.at += int64(n)
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil {
			return io.EOF
		}
		n, _ := r.in.Discard(len(window) - len(r.Sync) + 1)
		r.at += int64(n)
	}
}
