package compile

import (
	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// alterTable compiles ALTER TABLE. What its options and columns say is checked now, what the table says of them when the
// definition in force is edited.
func (c *compiler) alterTable(a *googlesql.AlterTable) (*Plan, error) {
	ref, err := c.target(a.Table, a.Pos)
	if err != nil {
		return nil, err
	}
	var edits []func(*schema.Definition) error
	for _, action := range a.Actions {
		edit, err := c.alteration(action, ref)
		if err != nil {
			return nil, err
		}
		edits = append(edits, edit)
	}
	alter := func(d *schema.Definition) error {
		for _, edit := range edits {
			if err := edit(d); err != nil {
				return err
			}
		}
		return nil
	}
	return &Plan{Change: &query.Change{Kind: "ALTER_TABLE", Target: ref, Exists: a.IfExists, Alter: alter}}, nil
}

func (c *compiler) alteration(a googlesql.AlterAction, ref query.Ref) (func(*schema.Definition) error, error) {
	switch a.Kind {
	case "ADD COLUMN":
		return addColumn(a, ref)
	case "ALTER COLUMN DROP NOT NULL":
		return onColumn(a, ref, func(f *schema.Field) error {
			if f.Mode == schema.Required {
				f.Mode = schema.Nullable
			}
			return nil
		}), nil
	case "ALTER COLUMN SET OPTIONS":
		return onColumn(a, ref, func(f *schema.Field) error { return columnOptions(a.Column.Options, f) }), columnOptions(a.Column.Options, &schema.Field{})
	case "SET OPTIONS":
		return func(d *schema.Definition) error { return c.tableOptions(a.Options, d) }, c.tableOptions(a.Options, &schema.Definition{})
	case "ADD PRIMARY KEY":
		return func(d *schema.Definition) error {
			if len(d.PrimaryKey) > 0 {
				return a.Pos.Errorf("Already Exists: primary key of table %s", ref)
			}
			for _, n := range a.Key {
				d.PrimaryKey = append(d.PrimaryKey, n.Text)
			}
			return nil
		}, nil
	}
	return func(d *schema.Definition) error {
		if len(d.PrimaryKey) == 0 && !a.Exists {
			return a.Pos.Errorf("Primary key not found in table %s", ref)
		}
		d.PrimaryKey = nil
		return nil
	}, nil
}

func addColumn(a googlesql.AlterAction, ref query.Ref) (func(*schema.Definition) error, error) {
	f, err := columnDef(a.Column)
	if err != nil {
		return nil, err
	}
	if f.Default != "" {
		return nil, a.Pos.Errorf("ALTER TABLE ADD COLUMN with a default value: add the column first, and set its default afterwards: column %s", f.Name)
	}
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
		d.Schema.Fields = append(d.Schema.Fields, f)
		return nil
	}, nil
}

func onColumn(a googlesql.AlterAction, ref query.Ref, edit func(*schema.Field) error) func(*schema.Definition) error {
	return func(d *schema.Definition) error {
		f := d.Schema.Field(a.Column.Name.Text)
		if f == nil {
			if a.Exists {
				return nil
			}
			return a.Column.Name.Pos.Errorf("Column not found: %s", a.Column.Name.Text)
		}
		return edit(f)
	}
}
