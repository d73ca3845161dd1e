package compile

import (
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// key compiles what ALTER TABLE does to keys.
func (x alteration) key(a googlesql.AlterAction) (func(*schema.Definition) error, error) {
	switch a.Kind {
	case "ADD PRIMARY KEY":
		return func(d *schema.Definition) error {
			if len(d.PrimaryKey) > 0 {
				return a.Pos.Errorf("Already Exists: primary key of table %s", x.ref)
			}
			d.PrimaryKey = texts(a.Key)
			return nil
		}, nil
	case "ADD FOREIGN KEY":
		key, err := x.foreignKey(a.ForeignKey, x.ref, nil)
		if err != nil {
			return nil, err
		}
		return func(d *schema.Definition) error {
			if key.Name != "" && foreignKey(d, key.Name) >= 0 {
				if a.ForeignKey.Exists {
					return nil
				}
				return a.ForeignKey.Name.Pos.Errorf("Already Exists: constraint %s of table %s", key.Name, x.ref)
			}
			d.ForeignKeys = append(d.ForeignKeys, key)
			return nil
		}, nil
	case "DROP CONSTRAINT":
		return func(d *schema.Definition) error { return dropConstraint(a, d, x.ref) }, nil
	}
	return func(d *schema.Definition) error { return dropPrimaryKey(a, d, x.ref) }, nil
}

func dropPrimaryKey(a googlesql.AlterAction, d *schema.Definition, ref query.Ref) error {
	if len(d.PrimaryKey) == 0 && !a.Exists {
		return a.Pos.Errorf("Primary key not found in table %s", ref)
	}
	d.PrimaryKey = nil
	return nil
}

// dropConstraint drops a key by its name, with or without that of the table before it.
func dropConstraint(a googlesql.AlterAction, d *schema.Definition, ref query.Ref) error {
	name := strings.TrimPrefix(a.Column.Name.Text, ref.Table+".")
	if name == schema.PrimaryKeyName {
		return dropPrimaryKey(a, d, ref)
	}
	at := foreignKey(d, name)
	switch {
	case at >= 0:
		d.ForeignKeys = slices.Delete(d.ForeignKeys, at, at+1)
	case !a.Exists:
		return a.Column.Name.Pos.Errorf("Constraint %s not found in table %s", name, ref)
	}
	return nil
}

// foreignKey is where a definition has the foreign key of that name; -1 where it has none.
func foreignKey(d *schema.Definition, name string) int {
	for i := range d.ForeignKeys {
		if strings.EqualFold(d.ForeignKeyName(i), name) {
			return i
		}
	}
	return -1
}

// foreignKey reads a foreign key of the table ref. What it refers to has to be the primary key of its table: that of ref itself
// is own, as long as ref is not there.
func (c *compiler) foreignKey(k googlesql.ForeignKey, ref query.Ref, own []string) (schema.ForeignKey, error) {
	other, err := c.target(k.Table, k.Pos)
	if err != nil {
		return schema.ForeignKey{}, err
	}
	out := schema.ForeignKey{
		Project: other.Project, Dataset: other.Dataset, Table: other.Table, Columns: texts(k.Columns), References: texts(k.References),
	}
	if k.Name != nil {
		out.Name = k.Name.Text
	}
	if len(out.Columns) != len(out.References) {
		return out, k.Pos.Errorf("A foreign key of %d columns cannot refer to %d columns", len(out.Columns), len(out.References))
	}
	primary := own
	if other != ref || own == nil {
		opened, err := c.env.Table(other, noInstant)
		if err != nil {
			return out, err
		}
		if opened.Definition != nil {
			primary = opened.Definition.PrimaryKey
		}
	}
	if !slices.EqualFunc(primary, out.References, strings.EqualFold) {
		return out, k.Pos.Errorf("Foreign key refers to columns that are not the primary key of table %s: %s", other, strings.Join(out.References, ", "))
	}
	return out, nil
}

// tableKeys gives the table of a CREATE TABLE its keys.
func (c *compiler) tableKeys(t *googlesql.CreateTable, d *schema.Definition, ref query.Ref) error {
	d.PrimaryKey = append(d.PrimaryKey, texts(t.PrimaryKey)...)
	own := append([]string{}, d.PrimaryKey...)
	for _, k := range t.ForeignKeys {
		key, err := c.foreignKey(k, ref, own)
		if err != nil {
			return err
		}
		if key.Name != "" && foreignKey(d, key.Name) >= 0 {
			return k.Name.Pos.Errorf("Duplicate constraint name %s", key.Name)
		}
		d.ForeignKeys = append(d.ForeignKeys, key)
	}
	return nil
}

func texts(names []googlesql.Name) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = n.Text
	}
	return out
}
