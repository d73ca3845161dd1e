package export

import (
	"encoding/binary"
)

// container is what one file has around its chunks.
type container interface {
	head() []byte
	// place takes note of a chunk that goes to that offset of the file.
	place(c *chunk, offset int64) error
	// note is what has to be known of the chunks placed since the last note, to end the file; restore takes it.
	note() (string, error)
	restore(note string) error
	foot() ([]byte, error)
}

// wrapped is a container of chunks of which nothing has to be known.
type wrapped struct{ first, last []byte }

func (w wrapped) head() []byte            { return w.first }
func (wrapped) place(*chunk, int64) error { return nil }
func (wrapped) note() (string, error)     { return "", nil }
func (wrapped) restore(string) error      { return nil }
func (w wrapped) foot() ([]byte, error)   { return w.last, nil }

// parquetFile is the container of row groups.
type parquetFile struct{ *footer }

func (parquetFile) head() []byte { return []byte(parquetMagic) }

func (p parquetFile) place(c *chunk, offset int64) error { return p.footer.place(c.group, offset) }

func (p parquetFile) foot() ([]byte, error) { return p.bytes() }

// avroHeader is the beginning of a container file without compression (Avro specification, "Object Container Files").
func avroHeader(schema string, sync []byte) []byte {
	b := []byte("Obj\x01")
	b = binary.AppendVarint(b, 2) // entries of the metadata map
	for _, kv := range [][2]string{{"avro.schema", schema}, {"avro.codec", "null"}} {
		for _, s := range kv {
			b = append(binary.AppendVarint(b, int64(len(s))), s...)
		}
	}
	b = append(b, 0)
	return append(b, sync...)
}
