package fileload

import (
	"fmt"
	"slices"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// saidSchemas are the columns of files that have been told with one of them since the last commit.
type saidSchemas map[table.Destination][]*table.Schema

// once is the JSON of a schema the first time that it is that of a destination's file, and "" afterwards.
func (s *saidSchemas) once(dst table.Destination, schema *table.Schema) string {
	for _, known := range (*s)[dst] {
		if known == schema || known.Equal(schema) {
			return ""
		}
	}
	if *s == nil {
		*s = saidSchemas{}
	}
	(*s)[dst] = append((*s)[dst], schema)
	return string(schema.CompactJSON())
}

// fileSchemas are the columns of the files of one commit, as its committables tell them.
type fileSchemas map[table.Destination][]string

func (f fileSchemas) add(dst table.Destination, schema string) {
	if schema != "" && !slices.Contains(f[dst], schema) {
		f[dst] = append(f[dst], schema)
	}
}

// columnsOf is the columns that all files of a destination have between them. Serializers learn of columns while they run, and one that was
// made after a crash has forgotten: only the files know. Without any that say it, it is what the serializer has.
func (c *Committer) columnsOf(dst table.Destination, written []string) (*table.Schema, error) {
	if len(written) == 0 {
		s, err := c.cfg.Rows.Schema(dst)
		if err != nil {
			return nil, misconfiguration{fmt.Errorf("table schema of %s: %w", dst, err)}
		}
		return s, nil
	}
	// The shortest is that of the oldest files, as a rule: what follows adds to it.
	slices.SortFunc(written, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return slices.Compare([]byte(a), []byte(b))
	})
	all := make([]*table.Schema, len(written))
	for i, text := range written {
		var err error
		if all[i], err = table.ParseSchemaJSON([]byte(text)); err != nil {
			return nil, misconfiguration{fmt.Errorf("columns of a file staged for %s: %w", dst, err)}
		}
	}
	columns := all[0]
	for _, s := range all[1:] {
		var err error
		if columns, err = columns.Union(s, table.UnionOptions{AllowNewFields: true, AllowFieldRelaxation: true}); err != nil {
			return nil, misconfiguration{fmt.Errorf("columns of the files staged for %s do not go together: %w", dst, err)}
		}
	}
	return relaxed(columns, all), nil
}

// relaxed makes columns NULLABLE that some files do not have.
func relaxed(columns *table.Schema, all []*table.Schema) *table.Schema {
	out := &table.Schema{Fields: slices.Clone(columns.Fields)}
	for i := range out.Fields {
		f := &out.Fields[i]
		if f.Mode == table.Required && slices.ContainsFunc(all, func(s *table.Schema) bool { return s.Field(f.Name) == nil }) {
			f.Mode = table.Nullable
		}
	}
	return out
}
