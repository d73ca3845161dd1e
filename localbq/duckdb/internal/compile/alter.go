package compile

import (
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// alter compiles ALTER. What its options and columns say is checked now, what the table says of them when the definition in force
// is edited.
func (c *compiler) alter(a *googlesql.Alter) (*Plan, error) {
	if a.Kind == "SCHEMA" {
		return c.alterSchema(a)
	}
	ref, err := c.target(a.Name, a.Pos)
	if err != nil {
		return nil, err
	}
	change := &query.Change{Kind: "ALTER_" + strings.ReplaceAll(a.Kind, " ", "_"), Target: ref, Exists: a.IfExists}
	if len(a.Actions) == 1 && a.Actions[0].Kind == "RENAME TO" {
		change.Rename = a.Actions[0].To.Text
		return &Plan{Change: change}, nil
	}
	alteration := alteration{c, ref, a.Kind}
	var edits []func(*schema.Definition) error
	for _, action := range a.Actions {
		edit, err := alteration.edit(action)
		if err != nil {
			return nil, err
		}
		edits = append(edits, edit)
	}
	change.Alter = func(d *schema.Definition) error {
		for _, edit := range edits {
			if err := edit(d); err != nil {
				return err
			}
		}
		return nil
	}
	return &Plan{Change: change}, nil
}

func (c *compiler) alterSchema(a *googlesql.Alter) (*Plan, error) {
	ref, err := c.dataset(a.Name)
	if err != nil {
		return nil, err
	}
	options := a.Actions[0].Options
	if err := schemaOptions(options, &query.DatasetOptions{}); err != nil {
		return nil, err
	}
	change := &query.Change{Kind: "ALTER_SCHEMA", Target: ref, Exists: a.IfExists}
	change.AlterDataset = func(o *query.DatasetOptions) error { return schemaOptions(options, o) }
	return &Plan{Change: change}, nil
}

// alteration is an ALTER of a table or a view.
type alteration struct {
	*compiler
	ref  query.Ref
	kind string
}

func (x alteration) edit(a googlesql.AlterAction) (func(*schema.Definition) error, error) {
	switch a.Kind {
	case "ADD COLUMN":
		return addColumn(a)
	case "DROP COLUMN":
		return onColumn(a, func(d *schema.Definition, f *schema.Field) error { return dropColumn(a, d, f) }), nil
	case "RENAME COLUMN":
		return onColumn(a, func(d *schema.Definition, f *schema.Field) error { return renameColumn(a, d, f) }), nil
	case "ALTER COLUMN DROP NOT NULL":
		return onColumn(a, func(_ *schema.Definition, f *schema.Field) error {
			if f.Mode == schema.Required {
				f.Mode = schema.Nullable
			}
			return nil
		}), nil
	case "ALTER COLUMN SET DEFAULT":
		return onColumn(a, func(_ *schema.Definition, f *schema.Field) error {
			f.Default = a.Column.Default
			_, err := x.standard(f, a.Pos)
			return err
		}), nil
	case "ALTER COLUMN SET DATA TYPE":
		return setType(a)
	case "ALTER COLUMN SET OPTIONS":
		edit := onColumn(a, func(_ *schema.Definition, f *schema.Field) error { return columnOptions(a.Column.Options, f) })
		return edit, columnOptions(a.Column.Options, &schema.Field{})
	case "SET OPTIONS":
		trial := &schema.Definition{}
		if x.kind == "MATERIALIZED VIEW" {
			trial.View = &schema.View{Materialized: true}
		}
		return func(d *schema.Definition) error { return x.tableOptions(a.Options, d) }, x.tableOptions(a.Options, trial)
	case "RENAME TO":
		return nil, a.Pos.Errorf("ALTER TABLE RENAME TO cannot be combined with other actions")
	}
	return x.key(a)
}

func addColumn(a googlesql.AlterAction) (func(*schema.Definition) error, error) {
	f, err := columnDef(a.Column)
	if err != nil {
		return nil, err
	}
	if f.Default != "" {
		return nil, a.Pos.Errorf("ALTER TABLE ADD COLUMN with a default value: add the column first, and set its default afterwards: column %s", f.Name)
	}
	f.LeaveModeUnsaid()
	return func(d *schema.Definition) error {
		if d.Schema.Field(f.Name) != nil {
			if a.Exists {
				return nil
			}
			return a.Pos.Errorf("Column already exists: %s", f.Name)
		}
		if d.Schema == nil {
			d.Schema = &schema.Schema{}
		}
		f.Renew()
		d.Schema.Fields = append(d.Schema.Fields, f)
		return nil
	}, nil
}

func dropColumn(a googlesql.AlterAction, d *schema.Definition, f *schema.Field) error {
	if use := usedBy(d, f.Name); use != "" {
		return a.Pos.Errorf("Column %s cannot be dropped: it is used by %s", f.Name, use)
	}
	if len(d.Schema.Fields) == 1 {
		return a.Pos.Errorf("Column %s cannot be dropped: a table has at least one column", f.Name)
	}
	d.Schema.Fields = slices.DeleteFunc(d.Schema.Fields, func(g *schema.Field) bool { return g == f })
	return nil
}

func renameColumn(a googlesql.AlterAction, d *schema.Definition, f *schema.Field) error {
	if use := usedBy(d, f.Name); use != "" {
		return a.Pos.Errorf("Column %s cannot be renamed: it is used by %s", f.Name, use)
	}
	if other := d.Schema.Field(a.To.Text); other != nil && other != f {
		return a.To.Pos.Errorf("Column already exists: %s", a.To.Text)
	}
	f.Rename(a.To.Text)
	return nil
}

// usedBy is what of a table goes by a column, which can then be neither dropped nor renamed (BigQuery documentation, "ALTER TABLE
// DROP COLUMN statement", "ALTER TABLE RENAME COLUMN statement").
func usedBy(d *schema.Definition, column string) string {
	named := func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, column) })
	}
	switch {
	case d.Partition != nil && strings.EqualFold(d.Partition.Field, column), d.Ranges != nil && strings.EqualFold(d.Ranges.Field, column):
		return "partitioning"
	case named(d.Clustering):
		return "clustering"
	case named(d.PrimaryKey):
		return "the primary key"
	case slices.ContainsFunc(d.ForeignKeys, func(k schema.ForeignKey) bool { return named(k.Columns) }):
		return "a foreign key"
	}
	return ""
}

// setType gives a column another type that its values can be converted to, or one with more room.
func setType(a googlesql.AlterAction) (func(*schema.Definition) error, error) {
	next, err := fieldOf(a.Column.Name.Text, a.Column.Type)
	if err != nil {
		return nil, err
	}
	next.LeaveModeUnsaid()
	return onColumn(a, func(d *schema.Definition, f *schema.Field) error {
		if use := usedBy(d, f.Name); use != "" && f.Type != next.Type {
			return a.Pos.Errorf("The type of column %s cannot be changed: it is used by %s", f.Name, use)
		}
		return retype(f, next, a)
	}), nil
}

func retype(f, next *schema.Field, a googlesql.AlterAction) error {
	if f.Type != next.Type && !schema.Converts(f.Type, next.Type) || (f.Mode == schema.Repeated) != (next.Mode == schema.Repeated) {
		return a.Pos.Errorf("ALTER COLUMN SET DATA TYPE requires that the existing column type (%s) is assignable to the new type (%s)", TypeOf(f), TypeOf(next))
	}
	f.Type, f.RangeElement = next.Type, next.RangeElement
	f.MaxLength, f.Precision, f.Scale, f.TimestampPrecision = next.MaxLength, next.Precision, next.Scale, next.TimestampPrecision
	members := make([]*schema.Field, len(next.Fields))
	for i, m := range next.Fields {
		if members[i] = m; f.Field(m.Name) != nil {
			members[i] = f.Field(m.Name)
			if err := retype(members[i], m, a); err != nil {
				return err
			}
		}
	}
	f.Fields = members
	return nil
}

func onColumn(a googlesql.AlterAction, edit func(*schema.Definition, *schema.Field) error) func(*schema.Definition) error {
	return func(d *schema.Definition) error {
		f := d.Schema.Field(a.Column.Name.Text)
		if f == nil {
			if a.Exists {
				return nil
			}
			return a.Column.Name.Pos.Errorf("Column not found: %s", a.Column.Name.Text)
		}
		return edit(d, f)
	}
}
