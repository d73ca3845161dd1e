package job

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/millrace-dev/millrace/bigquery/schema/schemafile"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/nearest"
)

// CheckSchema reads the schema file, if one is named, or the descriptors of protobuf messages, and holds it to what the job file says
// of its columns. An *InvalidError lists every fault, those of the schema with their places in its file. Nothing else is read.
func (p *Parsed) CheckSchema() error {
	if p.Source.Files != nil && p.Source.Files.Format == "protobuf" {
		_, err := p.protobuf()
		return err
	}
	if p.Sink.BigQuery.Schema.File == "" {
		return nil
	}
	_, err := p.schemaFile()
	return err
}

const schemaFileKey = "sink.bigquery.schema.file"

// schemaFile reads the schema file.
func (p *Parsed) schemaFile() (*table.Schema, error) {
	name := p.path(p.Sink.BigQuery.Schema.File)
	f, err := os.Open(name)
	if err != nil {
		return nil, p.fault(schemaFileKey, "%v", err)
	}
	defer f.Close()
	parsed, err := readSchema(f)
	if err != nil {
		return nil, p.schemaFaults(name, err)
	}
	return parsed, p.namedColumns(parsed)
}

// readSchema reads a schema in any of its forms. Of a data file only the schema is read; what comes through a pipe can only be
// read whole.
func readSchema(f *os.File) (*table.Schema, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() {
		return schemafile.Read(f, info.Size(), f.Name(), schemafile.Options{})
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return schemafile.Read(bytes.NewReader(text), int64(len(text)), f.Name(), schemafile.Options{})
}

// schemaFaults are mistakes of the configuration, though in another file than the job's.
func (p *Parsed) schemaFaults(name string, err error) error {
	var out InvalidError
	for _, e := range causes(err) {
		f := Fault{File: name, Msg: e.Error()}
		var at *table.JSONError
		var path *os.PathError
		switch {
		case errors.As(e, &at):
			f.Line, f.Column, f.Key, f.Msg = int(at.Line), int(at.Column), at.Path, at.Msg
		case errors.As(e, &path): // a folder, say, which can be opened and not read
			return p.fault(schemaFileKey, "%v", err)
		}
		out.Faults = append(out.Faults, f)
	}
	return &out
}

// causes are the errors that were joined into one.
func causes(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, causes(e)...)
	}
	return all
}

// namedColumns holds the columns that new tables are partitioned and clustered by to their schema.
func (p *Parsed) namedColumns(s *table.Schema) error {
	const key = "sink.bigquery.create."
	c := p.Sink.BigQuery.Create
	var faults []error
	missing := func(key, name string) {
		var names []string
		for _, f := range s.Fields {
			names = append(names, f.Name)
		}
		hint := "; name one of those of the schema"
		if near := nearest.To(name, names); near != "" {
			hint = "; did you mean " + near + "?"
		}
		faults = append(faults, p.fault(key, "the schema has no column %q%s", name, hint))
	}
	if c.Partition != nil && c.Partition.Field != "" {
		at := key + "partition.field"
		switch f := s.Field(c.Partition.Field); {
		case f == nil:
			missing(at, c.Partition.Field)
		case !partitions(f):
			faults = append(faults, p.fault(at, "names the column %s, which is %s: expected DATE, DATETIME or TIMESTAMP", f.Name, spelled(f)))
		}
	}
	for i, name := range c.Cluster {
		at := fmt.Sprintf("%scluster[%d]", key, i)
		switch f := s.Field(name); {
		case f == nil:
			missing(at, name)
		case !clusters(f):
			faults = append(faults, p.fault(at, "names the column %s, which is %s: tables cannot be clustered by that", f.Name, spelled(f)))
		}
	}
	return joinFaults(faults)
}

// joinFaults is all faults of several *InvalidError in one.
func joinFaults(errs []error) error {
	var all InvalidError
	for _, err := range errs {
		var invalid *InvalidError
		if errors.As(err, &invalid) {
			all.Faults = append(all.Faults, invalid.Faults...)
		}
	}
	if len(all.Faults) == 0 {
		return nil
	}
	return &all
}

// partitions reports whether tables can be partitioned by a column.
func partitions(f *table.Field) bool {
	return f.Mode != table.Repeated && (f.Type == table.Date || f.Type == table.DateTime || f.Type == table.Timestamp)
}

// clusters reports whether tables can be clustered by a column (BigQuery documentation, "Introduction to clustered tables",
// "Limitations").
func clusters(f *table.Field) bool {
	switch f.Type {
	case table.Struct, table.JSON, table.Float64, table.Geography, table.Range, table.Interval, table.Bytes, table.Time:
		return false
	}
	return f.Mode != table.Repeated
}
