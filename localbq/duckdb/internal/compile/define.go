package compile

import (
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// createTable compiles CREATE TABLE.
func (c *compiler) createTable(t *googlesql.CreateTable) (*Plan, error) {
	ref, err := c.target(t.Table, t.Pos)
	if err != nil {
		return nil, err
	}
	d := &schema.Definition{}
	plan := &Plan{}
	switch {
	case t.Like != nil:
		d, err = c.likeTable(t)
	case t.Columns != nil:
		d.Schema, err = columnDefs(t.Columns)
	}
	if err != nil {
		return nil, err
	}
	kind := "CREATE_TABLE"
	if t.Query != nil {
		kind = "CREATE_TABLE_AS_SELECT"
		if plan, err = c.createdRows(t, d); err != nil {
			return nil, err
		}
	}
	if err := c.tableKeys(t, d, ref); err != nil {
		return nil, err
	}
	for _, n := range t.ClusterBy {
		d.Clustering = append(d.Clustering, n.Text)
	}
	if t.PartitionBy != nil {
		if err := partition(t.PartitionBy, d); err != nil {
			return nil, err
		}
	}
	if err := c.tableOptions(t.Options, d); err != nil {
		return nil, err
	}
	d.Schema.LeaveModesUnsaid()
	plan.Change = &query.Change{Kind: kind, Target: ref, Exists: t.IfNotExists, Replace: t.Replace, Definition: d}
	return plan, nil
}

// likeTable is the definition of the table that LIKE names.
func (c *compiler) likeTable(t *googlesql.CreateTable) (*schema.Definition, error) {
	if t.Query != nil || t.Columns != nil || t.PartitionBy != nil || t.ClusterBy != nil {
		return nil, t.Pos.Unsupported("LIKE together with columns, PARTITION BY, CLUSTER BY or AS")
	}
	ref, err := c.target(t.Like, t.Pos)
	if err != nil {
		return nil, err
	}
	opened, err := c.env.Table(ref, noInstant)
	if err != nil {
		return nil, err
	}
	if opened.Definition == nil || opened.View != "" {
		return nil, t.Pos.Errorf("CREATE TABLE LIKE needs a table: %s is none", ref)
	}
	d := opened.Definition.Clone()
	d.ExpirationMs = 0
	return d, nil
}

// createdRows compiles the query of CREATE TABLE AS, which makes the columns where none are given.
func (c *compiler) createdRows(t *googlesql.CreateTable, d *schema.Definition) (*Plan, error) {
	r, err := c.rows(t.Query)
	if err != nil {
		return nil, err
	}
	if d.Schema != nil {
		if len(d.Schema.Fields) != len(r.columns) {
			return nil, t.Query.Pos.Errorf("The number of columns in the column definition list does not match the number of columns produced by the query: %d, %d",
				len(d.Schema.Fields), len(r.columns))
		}
		if r, err = c.fit(r, d.Schema.Fields, t.Query.Pos); err != nil {
			return nil, err
		}
	}
	plan := c.plan(r)
	if d.Schema == nil {
		d.Schema = plan.Schema()
	}
	return plan, nil
}

// columnDefs are columns as CREATE TABLE writes them.
func columnDefs(defs []googlesql.ColumnDef) (*schema.Schema, error) {
	s := &schema.Schema{}
	for _, def := range defs {
		f, err := columnDef(def)
		if err != nil {
			return nil, err
		}
		if s.Field(f.Name) != nil {
			return nil, def.Name.Pos.Errorf("Duplicate column name %s in CREATE TABLE", f.Name)
		}
		s.Fields = append(s.Fields, f)
	}
	return s, nil
}

func columnDef(def googlesql.ColumnDef) (*schema.Field, error) {
	f, err := fieldOf(def.Name.Text, def.Type)
	if err != nil {
		return nil, err
	}
	if def.NotNull {
		if f.Mode == schema.Repeated {
			return nil, def.Name.Pos.Errorf("NOT NULL cannot be specified on ARRAY column %s", f.Name)
		}
		f.Mode = schema.Required
	}
	f.Default = def.Default
	return f, columnOptions(def.Options, f)
}

// fieldOf is a type, parameters and all, as a column.
func fieldOf(name string, t *googlesql.Type) (*schema.Field, error) {
	switch t.Name {
	case "ARRAY":
		f, err := fieldOf(name, t.Element)
		if err == nil && f.Mode == schema.Repeated {
			err = t.Pos.Errorf("Arrays of arrays are not supported")
		}
		if err != nil {
			return nil, err
		}
		f.Mode = schema.Repeated
		return f, nil
	case "STRUCT":
		f := &schema.Field{Name: name, Type: schema.Struct}
		for _, m := range t.Fields {
			if m.Name == nil {
				return nil, t.Pos.Errorf("STRUCT members of column %s need names", name)
			}
			member, err := fieldOf(m.Name.Text, m.Type)
			if err != nil {
				return nil, err
			}
			f.Fields = append(f.Fields, member)
		}
		return f, nil
	}
	bare := *t
	bare.Params = nil
	typ, err := typeOf(&bare)
	if err != nil {
		return nil, err
	}
	f := typ.Column(name)
	return f, parameters(f, t)
}

// parameters reads STRING(10) and NUMERIC(5, 2).
func parameters(f *schema.Field, t *googlesql.Type) error {
	numbers := make([]int64, len(t.Params))
	for i, p := range t.Params {
		n, err := strconv.ParseInt(p, 10, 64)
		if err != nil {
			return t.Pos.Errorf("Invalid parameter of type %s: %s", t.Name, p)
		}
		numbers[i] = n
	}
	switch n := len(numbers); {
	case n == 0:
	case n == 1 && (f.Type == schema.String || f.Type == schema.Bytes):
		f.MaxLength = numbers[0]
	case n <= 2 && (f.Type == schema.Numeric || f.Type == schema.BigNumeric):
		f.Precision = numbers[0]
		if n == 2 {
			f.Scale = numbers[1]
		}
	case n == 1 && f.Type == schema.Timestamp:
		f.TimestampPrecision = numbers[0]
	default:
		return t.Pos.Errorf("%s does not support type parameters", t.Name)
	}
	return nil
}

// partition reads PARTITION BY.
func partition(x googlesql.Expr, d *schema.Definition) error {
	switch x := x.(type) {
	case *googlesql.Path:
		return partitionColumn(x, "DAY", d)
	case *googlesql.Call:
		switch {
		case x.Name == "DATE" && len(x.Args) == 1:
			return partitionColumn(x.Args[0], "DAY", d)
		case strings.HasSuffix(x.Name, "_TRUNC") && len(x.Args) == 2:
			unit, ok := x.Args[1].(*googlesql.Path)
			if !ok || len(unit.Names) != 1 {
				break
			}
			return partitionColumn(x.Args[0], strings.ToUpper(unit.Names[0].Text), d)
		case x.Name == "RANGE_BUCKET" && len(x.Args) == 2:
			return partitionRange(x, d)
		}
	}
	return x.At().Errorf("PARTITION BY expression must be DATE(<timestamp_column>), DATE(<datetime_column>), DATETIME_TRUNC(<datetime_column>, " +
		"DAY/HOUR/MONTH/YEAR), a DATE column, TIMESTAMP_TRUNC(<timestamp_column>, DAY/HOUR/MONTH/YEAR), DATE_TRUNC(<date_column>, MONTH/YEAR), or " +
		"RANGE_BUCKET(<int64_column>, GENERATE_ARRAY(<int64_value>, <int64_value>[, <int64_value>]))")
}

func partitionColumn(x googlesql.Expr, unit string, d *schema.Definition) error {
	path, ok := x.(*googlesql.Path)
	if !ok || len(path.Names) != 1 {
		return x.At().Errorf("PARTITION BY expects a top-level column")
	}
	name := path.Names[0].Text
	if n := strings.ToUpper(name); n == "_PARTITIONDATE" || n == "_PARTITIONTIME" {
		name = ""
	}
	d.Partition = &schema.TimePartition{Type: unit, Field: name}
	return nil
}

// partitionRange reads RANGE_BUCKET(column, GENERATE_ARRAY(start, end, interval)).
func partitionRange(x *googlesql.Call, d *schema.Definition) error {
	path, ok := x.Args[0].(*googlesql.Path)
	array, isCall := x.Args[1].(*googlesql.Call)
	if !ok || len(path.Names) != 1 || !isCall || array.Name != "GENERATE_ARRAY" || len(array.Args) < 2 || len(array.Args) > 3 {
		return x.Pos.Errorf("RANGE_BUCKET in PARTITION BY expects a column and GENERATE_ARRAY(start, end, interval)")
	}
	numbers := []int64{0, 0, 1}
	for i, a := range array.Args {
		n, err := optionInteger(a)
		if err != nil {
			return err
		}
		numbers[i] = n
	}
	d.Ranges = &schema.RangePartition{Field: path.Names[0].Text, Start: numbers[0], End: numbers[1], Interval: numbers[2]}
	return nil
}

// createView compiles CREATE VIEW.
func (c *compiler) createView(v *googlesql.CreateView) (*Plan, error) {
	ref, err := c.target(v.View, v.Pos)
	if err != nil {
		return nil, err
	}
	r, err := c.rows(v.Query)
	if err != nil {
		return nil, err
	}
	kind := "CREATE_VIEW"
	if v.Materialized {
		kind = "CREATE_MATERIALIZED_VIEW"
	}
	d := &schema.Definition{Schema: c.plan(r).Schema(), View: &schema.View{Query: v.Text, Materialized: v.Materialized, Refresh: v.Materialized}}
	if err := c.tableOptions(v.Options, d); err != nil {
		return nil, err
	}
	return &Plan{Change: &query.Change{Kind: kind, Target: ref, Exists: v.IfNotExists, Replace: v.Replace, Definition: d}}, nil
}

// dataset is a path of one or two parts.
func (c *compiler) dataset(path []googlesql.Name) (query.Ref, error) {
	parts := strings.Split(joined(path), ".")
	switch n := len(parts); {
	case n == 1 && parts[0] != "":
		return query.Ref{Project: c.env.Project, Dataset: parts[0]}, nil
	case n >= 2 && parts[n-1] != "":
		return query.Ref{Project: strings.Join(parts[:n-1], "."), Dataset: parts[n-1]}, nil
	}
	return query.Ref{}, path[0].Pos.Errorf("Invalid schema name: `%s`", joined(path))
}

func (c *compiler) createSchema(s *googlesql.CreateSchema) (*Plan, error) {
	ref, err := c.dataset(s.Schema)
	if err != nil {
		return nil, err
	}
	var options query.DatasetOptions
	if err := schemaOptions(s.Options, &options); err != nil {
		return nil, err
	}
	return &Plan{Change: &query.Change{Kind: "CREATE_SCHEMA", Target: ref, Exists: s.IfNotExists, Dataset: options}}, nil
}

func (c *compiler) drop(d *googlesql.Drop) (*Plan, error) {
	ref, err := c.target(d.Name, d.Pos)
	if d.Kind == "SCHEMA" {
		ref, err = c.dataset(d.Name)
	}
	if err != nil {
		return nil, err
	}
	kind := "DROP_" + strings.ReplaceAll(d.Kind, " ", "_")
	return &Plan{Change: &query.Change{Kind: kind, Target: ref, Exists: d.IfExists, Cascade: d.Cascade}}, nil
}
