package storageread

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace-dev/millrace/bigquery/table"
)

const (
	savedKind    = "RP"
	savedVersion = 1
)

// Save is the session as durable bytes: another process reads on with Restore.
func (s *Session) Save() []byte {
	b := appendHeader(nil, savedKind, savedVersion)
	b = appendText(b, s.Name)
	for _, part := range []string{s.Table.Project, s.Table.Dataset, s.Table.Table} {
		b = appendText(b, part)
	}
	format := byte(formatAvro)
	if s.Arrow {
		format = formatArrow
	}
	b = appendText(append(appendInstant(b, s.Expires), format), s.Schema)
	b = binary.AppendVarint(binary.AppendVarint(b, s.Rows), s.Bytes)
	b = binary.AppendUvarint(b, uint64(len(s.Streams)))
	for _, name := range s.Streams {
		b = appendText(b, name)
	}
	return b
}

// Restore is the session that was saved. It makes no call: whether the service still has the session, reading tells.
func (c *Config) Restore(saved []byte) (*Session, error) {
	f := openFrame(saved, savedKind, savedVersion, "the saved session")
	s := &Session{Name: f.text()}
	s.Table = table.Destination{Project: f.text(), Dataset: f.text(), Table: f.text()}
	s.Expires = f.instant()
	s.Arrow = f.format() == formatArrow
	s.Schema = f.text()
	s.Rows, s.Bytes = f.varint(), f.varint()
	for range f.uvarint() {
		s.Streams = append(s.Streams, f.text())
		if f.err != nil {
			return nil, f.err
		}
	}
	if err := f.close(); err != nil {
		return nil, err
	}
	if s.Arrow != c.Arrow {
		return nil, fmt.Errorf("the session %s: %w", s.Name, errFormat)
	}
	if c.Arrow {
		return s, nil
	}
	_, err := c.Decoder(s.Schema)
	return s, err
}
