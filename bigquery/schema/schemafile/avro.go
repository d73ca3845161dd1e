package schemafile

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/millrace-dev/millrace/bigquery/schema/avroschema"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// avroText says whether JSON is an Avro schema: an object with a "type".
func avroText(text []byte) bool {
	var o struct {
		Type json.RawMessage `json:"type"`
	}
	return json.Unmarshal(text, &o) == nil && o.Type != nil
}

var errNoSchema = errors.New("the Avro file has no schema in its header")

// readContainer finds the schema in the header of an object container file: a map, written in blocks, of which one with a
// negative count says its size as well (Avro specification, "Object Container Files", "Maps").
func readContainer(r io.Reader) (*table.Schema, error) {
	b := bufio.NewReader(io.LimitReader(r, maxText))
	if _, err := b.Discard(4); err != nil {
		return nil, header(err)
	}
	for {
		count, err := binary.ReadVarint(b)
		if err == nil && count < 0 {
			count = -count
			_, err = binary.ReadVarint(b)
		}
		if err != nil {
			return nil, header(err)
		}
		if count == 0 {
			return nil, errNoSchema
		}
		for range count {
			key, err := readBytes(b)
			if err != nil {
				return nil, header(err)
			}
			value, err := readBytes(b)
			if err != nil {
				return nil, header(err)
			}
			if string(key) == "avro.schema" {
				return avroschema.Read(string(value))
			}
		}
	}
}

func header(err error) error { return fmt.Errorf("the header of the Avro file is damaged: %w", err) }

// readBytes reads what has a length before it, and asks for no more memory than there are bytes.
func readBytes(b *bufio.Reader) ([]byte, error) {
	n, err := binary.ReadVarint(b)
	if err != nil {
		return nil, err
	}
	if n < 0 || n > maxText {
		return nil, fmt.Errorf("a length of %d", n)
	}
	out, err := io.ReadAll(io.LimitReader(b, n))
	if err == nil && int64(len(out)) < n {
		err = io.ErrUnexpectedEOF
	}
	return out, err
}
