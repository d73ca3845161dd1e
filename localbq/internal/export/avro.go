package export

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/klauspost/compress/snappy"

	"github.com/millrace-dev/millrace/localbq/internal/avro"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// container writes an Avro object container file (Avro specification, "Object Container Files").
type container struct {
	out   io.Writer
	codec string
	sync  [16]byte
	rows  int64
	block []byte
}

var codecs = map[string]string{"NONE": "null", "DEFLATE": "deflate", "SNAPPY": "snappy"}

// blockBytes is where a block ends.
const blockBytes = 1 << 20

func writeAvro(w io.Writer, s *schema.Schema, batches []arrow.RecordBatch, o Options) error {
	e, err := avro.New(s, avro.Options{})
	if err != nil {
		return err
	}
	c := &container{out: w, codec: codecs[o.Compression]}
	rand.Read(c.sync[:])
	if err := c.header(e.Schema()); err != nil {
		return err
	}
	for _, b := range batches {
		rows := e.Rows(b)
		for i := range int(b.NumRows()) {
			c.block = rows.Append(c.block, i)
			if c.rows++; len(c.block) >= blockBytes {
				if err := c.flush(); err != nil {
					return err
				}
			}
		}
	}
	return c.flush()
}

func (c *container) header(schemaText string) error {
	head := append([]byte("Obj\x01"), 4) // two entries
	for _, s := range []string{"avro.schema", schemaText, "avro.codec", c.codec} {
		head = append(binary.AppendVarint(head, int64(len(s))), s...)
	}
	head = append(append(head, 0), c.sync[:]...)
	_, err := c.out.Write(head)
	return err
}

func (c *container) flush() error {
	if c.rows == 0 {
		return nil
	}
	packed, err := c.pack()
	if err != nil {
		return err
	}
	head := binary.AppendVarint(binary.AppendVarint(nil, c.rows), int64(len(packed)))
	c.rows, c.block = 0, c.block[:0]
	for _, part := range [][]byte{head, packed, c.sync[:]} {
		if _, err := c.out.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func (c *container) pack() ([]byte, error) {
	switch c.codec {
	case "snappy":
		return binary.BigEndian.AppendUint32(snappy.Encode(nil, c.block), crc32.ChecksumIEEE(c.block)), nil
	case "deflate":
		var out bytes.Buffer
		z, err := flate.NewWriter(&out, flate.DefaultCompression)
		if err == nil {
			_, err = z.Write(c.block)
			err = errors.Join(err, z.Close())
		}
		return out.Bytes(), err
	}
	return c.block, nil
}
