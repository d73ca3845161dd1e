package fileload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// schemaNote is a committable that is no file: the schema of files beside it, where the serializer's may be another one by the time of
// the commit. One that evolves begins anew in the next process, without the columns that it has learnt; a load that is not told of a
// column leaves it out without a word (measured by another connector, 2026-08).
//
// It begins with a byte that no file's does, and its version:
//
//	's', 1, project, dataset, table, schema as JSON
//
// Texts are a uvarint length and UTF-8.
type schemaNote struct {
	Destination table.Destination
	Schema      string
}

const (
	schemaNoteKind    byte = 's'
	schemaNoteVersion byte = 1
)

func isSchemaNote(data []byte) bool { return len(data) > 0 && data[0] == schemaNoteKind }

func (n schemaNote) marshal() []byte {
	b := []byte{schemaNoteKind, schemaNoteVersion}
	for _, s := range []string{n.Destination.Project, n.Destination.Dataset, n.Destination.Table, n.Schema} {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

func parseSchemaNote(data []byte) (n schemaNote, err error) {
	if len(data) < 2 || data[0] != schemaNoteKind || data[1] != schemaNoteVersion {
		return n, fmt.Errorf("%w: a schema of files in a version that this program does not know: it reads and writes version %d",
			loadplan.ErrCommittable, schemaNoteVersion)
	}
	rest := data[2:]
	for _, s := range []*string{&n.Destination.Project, &n.Destination.Dataset, &n.Destination.Table, &n.Schema} {
		size, used := binary.Uvarint(rest)
		if used <= 0 || size > uint64(len(rest)-used) || !utf8.Valid(rest[used:used+int(size)]) {
			return schemaNote{}, fmt.Errorf("%w: a schema of files that is cut off or no text", loadplan.ErrCommittable)
		}
		*s, rest = string(rest[used:used+int(size)]), rest[used+int(size):]
	}
	if len(rest) > 0 {
		return schemaNote{}, fmt.Errorf("%w: %d bytes behind a schema of files", loadplan.ErrCommittable, len(rest))
	}
	return n, nil
}

// notes are schemas of files that a writer has staged since the last checkpoint.
type notes map[schemaNote]bool

// promises are committables of them, in order.
func (n notes) promises() (out []stream.Committable) {
	for _, data := range slices.Sorted(maps.Keys(n.encoded())) {
		out = append(out, stream.Committable{Key: "schema", Data: []byte(data)})
	}
	return out
}

func (n notes) encoded() map[string]bool {
	out := map[string]bool{}
	for note := range n {
		out[string(note.marshal())] = true
	}
	return out
}

// learnt are the schemas of files by destination.
type learnt map[table.Destination][]*table.Schema

func (l learnt) add(data []byte) error {
	n, err := parseSchemaNote(data)
	if err != nil {
		return err
	}
	s, err := table.ParseSchemaJSON([]byte(n.Schema))
	if err != nil {
		return fmt.Errorf("%w: the schema of files of %s: %w", loadplan.ErrCommittable, n.Destination, err)
	}
	l[n.Destination] = append(l[n.Destination], s)
	return nil
}

// with is a schema and everything that files have beside it.
func (l learnt) with(dst table.Destination, s *table.Schema) (*table.Schema, error) {
	for _, more := range l[dst] {
		var err error
		if s, err = s.Union(more, table.UnionOptions{AllowNewFields: true, AllowFieldRelaxation: true}); err != nil {
			return nil, errors.Join(fmt.Errorf("rows of %s in staged files do not fit those that the serializer makes now", dst), err)
		}
	}
	return s, nil
}
