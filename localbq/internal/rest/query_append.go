package rest

import (
	"errors"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// The values of schemaUpdateOptions.
const (
	allowAddition   = "ALLOW_FIELD_ADDITION"
	allowRelaxation = "ALLOW_FIELD_RELAXATION"
)

func (c *queryConfig) checkSchemaUpdate() error {
	for _, o := range c.SchemaUpdateOptions {
		if o != allowAddition && o != allowRelaxation {
			return refusal.New(refusal.Invalid, "Invalid value for schemaUpdateOptions: %s is not a valid value", o)
		}
	}
	partition := c.DestinationTable != nil && strings.Contains(c.DestinationTable.TableId, "$")
	if len(c.SchemaUpdateOptions) > 0 && !oneOf(c.WriteDisposition, "WRITE_APPEND", "WRITE_TRUNCATE_DATA") && !(partition && c.WriteDisposition == "WRITE_TRUNCATE") {
		return refusal.New(refusal.Invalid, "Schema update options should only be specified with WRITE_APPEND disposition, or with WRITE_TRUNCATE disposition on a table partition.")
	}
	return nil
}

// addResult is WRITE_APPEND, WRITE_TRUNCATE_DATA and everything that writes a partition: rows meet the table's columns by name,
// and everything else about the table stays, but for what schemaUpdateOptions allow.
func (s *Server) addResult(j *job, to target, t *store.Table, r *query.Result, out *jobResult) error {
	return settled(func() error {
		info := t.Info()
		columns, err := j.config.widened(info.Schema, r.Schema)
		if err != nil {
			return err
		}
		w := store.Rows{
			Info: info, Truncate: strings.HasPrefix(j.config.WriteDisposition, "WRITE_TRUNCATE"),
			Empty: oneOf(j.config.WriteDisposition, "", "WRITE_EMPTY"),
		}
		if columns != nil {
			w.Definition, w.Since = info.Definition.Clone(), info
			w.Definition.Schema = columns
		} else {
			columns = info.Schema
		}
		if w.Batches, err = fit(r.Batches, r.Schema, columns, s.Clock.Now()); err != nil {
			return err
		}
		if err := to.place(t, &w); err != nil {
			return err
		}
		_, err = s.commit(j, t, w, out)
		if refusal.Is(err, refusal.BackendError) {
			return errors.Join(errMoved, err)
		}
		return err
	})
}

// widened is the schema that a table gets so that it takes a result; nil where it does already.
func (c *queryConfig) widened(have, result *schema.Schema) (*schema.Schema, error) {
	out, changed := have.Clone(), false
	for _, f := range result.Fields {
		old := out.Field(f.Name)
		switch {
		case old == nil && !slices.Contains(c.SchemaUpdateOptions, allowAddition):
			return nil, refusal.New(refusal.Invalid, "Invalid schema update. Cannot add fields (field: %s)", f.Name)
		case old == nil:
			out.Fields, changed = append(out.Fields, f), true
		default:
			if err := sameColumn(old, f); err != nil {
				return nil, err
			}
		}
	}
	for _, f := range out.Fields {
		if f.Mode != schema.Required {
			continue
		}
		if !slices.Contains(c.SchemaUpdateOptions, allowRelaxation) {
			return nil, refusal.New(refusal.Invalid, "Invalid schema update. Field %s has changed mode from REQUIRED to NULLABLE", f.Name)
		}
		f.Mode, changed = schema.Nullable, true
	}
	if !changed {
		return nil, nil
	}
	return out, nil
}

// sameColumn refuses a result's column of another type than the table's. Members have to stand in the table's order.
func sameColumn(have, want *schema.Field) error {
	if have.Type != want.Type || have.RangeElement != want.RangeElement || (have.Mode == schema.Repeated) != (want.Mode == schema.Repeated) {
		return refusal.New(refusal.Invalid, "Invalid schema update. Field %s has changed type from %s to %s", have.Name, typeText(have), typeText(want))
	}
	for i, m := range want.Fields {
		if len(have.Fields) != len(want.Fields) || !strings.EqualFold(have.Fields[i].Name, m.Name) {
			return refusal.New(refusal.NotImplemented, "local BigQuery does not implement appending a result to a STRUCT column with other members, or with members in another order: field %s", have.Name)
		}
		if err := sameColumn(have.Fields[i], m); err != nil {
			return err
		}
	}
	return nil
}

func typeText(f *schema.Field) string {
	if f.Mode == schema.Repeated {
		return "ARRAY<" + f.Type.String() + ">"
	}
	return f.Type.Legacy()
}
