package load

import (
	"errors"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// settle decides the schema that the rows have.
func (j *job) settle(sources []Source) error {
	asked := j.Schema
	var err error
	derived := false
	switch {
	case asked != nil:
	case j.Format == Avro || j.Format == Parquet:
		derived = true
		asked, err = j.fileSchema(sources)
	case j.Autodetect:
		derived = true
		asked, err = j.detect(sources)
	case j.Existing == nil:
		return refusal.New(refusal.Invalid, "No schema specified on job or table.")
	}
	if err != nil {
		return err
	}
	if derived {
		adopt(asked.Fields, j.Existing)
	}
	j.out.Schema, err = Merge(j.Table, j.Existing, asked, j.AddFields, j.RelaxFields)
	if err == nil {
		err = j.out.Schema.Check()
	}
	return err
}

// fileSchema is what the files say of themselves: the last one speaks, as the one BigQuery takes is the last by name
// (BigQuery documentation, "Loading Avro data", "Automatically infer schema").
func (j *job) fileSchema(sources []Source) (s *schema.Schema, err error) {
	last := sources[len(sources)-1]
	f, err := last.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, end, err := j.open(f, last)
	if err != nil {
		return nil, failed(last, err)
	}
	defer end()
	return r.(typed).Schema(), nil
}

// adopt gives columns that were derived the types that the table has for them: whether the files' values fit those is for
// Check to say.
func adopt(fields []*schema.Field, existing *schema.Schema) {
	for _, f := range fields {
		have := existing.Field(f.Name)
		if have == nil {
			continue
		}
		if f.Type == schema.Struct && have.Type == schema.Struct {
			adopt(f.Fields, &schema.Schema{Fields: have.Fields})
			continue
		}
		f.Type, f.Fields = have.Type, have.Fields
		f.MaxLength, f.Precision, f.Scale, f.RangeElement = have.MaxLength, have.Precision, have.Scale, have.RangeElement
		f.TimestampPrecision = have.TimestampPrecision
	}
}

// Merge is the schema of a table, as p:d.t, after a job that asks for columns: nil existing takes them as they are.
func Merge(table string, existing, asked *schema.Schema, add, relax bool) (*schema.Schema, error) {
	switch {
	case existing == nil || len(existing.Fields) == 0:
		return asked.Clone(), nil
	case asked == nil:
		return existing, nil
	}
	m := merger{table: table, add: add, relax: relax}
	fields, err := m.fields(existing.Fields, asked.Fields, "")
	switch {
	case err != nil:
		return nil, err
	case !m.changed:
		return existing, nil
	}
	return &schema.Schema{Fields: fields}, nil
}

type merger struct {
	table      string
	add, relax bool
	changed    bool
}

func (m *merger) refuse(format string, args ...any) error {
	return refusal.New(refusal.Invalid, "Provided Schema does not match Table "+m.table+". "+format, args...)
}

func (m *merger) fields(existing, asked []*schema.Field, parent string) ([]*schema.Field, error) {
	out := (&schema.Schema{Fields: existing}).Clone().Fields
	for _, f := range asked {
		path := f.Name
		if parent != "" {
			path = parent + "." + f.Name
		}
		have := (&schema.Schema{Fields: out}).Field(f.Name)
		if have == nil {
			if err := m.added(f, path); err != nil {
				return nil, err
			}
			out = append(out, f)
			continue
		}
		if err := m.kept(have, f, path); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (m *merger) added(f *schema.Field, path string) error {
	switch {
	case f.Mode == schema.Required:
		return m.refuse("Cannot add required fields to an existing schema. (field: %s)", path)
	case !m.add:
		return m.refuse("Cannot add fields (field: %s)", path)
	}
	m.changed = true
	return nil
}

// kept changes a column that is there already. A NULLABLE column that is asked to be REQUIRED stays as it is (measured by
// another connector against the service, 2026-08).
func (m *merger) kept(have, f *schema.Field, path string) error {
	if have.Type != f.Type || have.RangeElement != f.RangeElement {
		return m.refuse("Field %s has changed type from %s to %s", path, have.Type.Legacy(), f.Type.Legacy())
	}
	switch {
	case have.Mode == f.Mode, have.Mode == schema.Nullable && f.Mode == schema.Required:
	case have.Mode == schema.Required && f.Mode == schema.Nullable && m.relax:
		have.Mode, m.changed = schema.Nullable, true
	default:
		return m.refuse("Field %s has changed mode from %s to %s", path, have.Mode, f.Mode)
	}
	if f.Type != schema.Struct {
		return nil
	}
	fields, err := m.fields(have.Fields, f.Fields, path)
	have.Fields = fields
	return err
}

// AddsRequired names the first REQUIRED column that a table does not have; "" where there is none. A job that asks for one is
// refused before it is made.
func AddsRequired(existing, asked *schema.Schema) string {
	if existing == nil || len(existing.Fields) == 0 {
		return ""
	}
	for _, f := range asked.Fields {
		if have := existing.Field(f.Name); have == nil && f.Mode == schema.Required {
			return f.Name
		} else if have != nil && f.Type == schema.Struct {
			if name := AddsRequired(&schema.Schema{Fields: have.Fields}, &schema.Schema{Fields: f.Fields}); name != "" {
				return f.Name + "." + name
			}
		}
	}
	return ""
}

// Names reports whether a schema has a column of a type, at any depth.
func Names(fields []*schema.Field, t schema.Type) bool {
	for _, f := range fields {
		if f.Type == t || Names(f.Fields, t) {
			return true
		}
	}
	return false
}

// sampled is how many rows autodetection looks at (BigQuery documentation, "Using schema auto-detection").
const sampled = 500

// detect guesses the columns of text files from the first rows.
func (j *job) detect(sources []Source) (s *schema.Schema, err error) {
	first := sources[0]
	f, err := first.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in, err := unpacked(f, first)
	if err != nil {
		return nil, failed(first, err)
	}
	if j.Format == JSON {
		s, err = detectJSON(in)
	} else {
		s, err = j.detectCSV(in)
	}
	if err != nil {
		return nil, failed(first, err)
	}
	if len(s.Fields) == 0 {
		return nil, refusal.New(refusal.Invalid, "Schema has no fields. Table: %s", strings.ReplaceAll(j.Table, "\n", " "))
	}
	return s, nil
}
