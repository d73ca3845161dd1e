package googlesql

import "strings"

// ParseStatement reads one statement.
func ParseStatement(source string) (Statement, error) {
	p, err := newParser(source)
	if err != nil {
		return nil, err
	}
	s, err := p.anyStatement()
	if err != nil {
		return nil, err
	}
	return s, p.finish()
}

// finish sees that the statement ends here.
func (p *parser) finish() error {
	semicolon := p.accept(";")
	t := p.peek()
	switch {
	case t.kind == end:
		return nil
	case semicolon:
		return t.pos.Unsupported("scripts of several statements")
	}
	return t.pos.syntax("Expected end of input but got %v", t)
}

func (p *parser) anyStatement() (Statement, error) {
	pos := p.peek().pos
	switch {
	case p.accept("CREATE"):
		return p.create(pos)
	case p.accept("DROP"):
		return p.drop(pos)
	case p.accept("ALTER", "TABLE"):
		return p.alterTable(pos)
	case p.accept("INSERT"):
		return p.insert(pos)
	case p.accept("UPDATE"):
		return p.update(pos)
	case p.accept("DELETE"):
		return p.delete(pos)
	case p.accept("MERGE"):
		return p.merge(pos)
	case p.accept("TRUNCATE", "TABLE"):
		path, err := p.tablePath()
		return &Truncate{Pos: pos, Table: path}, err
	}
	if err := p.statement(); err != nil {
		return nil, err
	}
	return p.query()
}

func (p *parser) create(pos Pos) (Statement, error) {
	replace := p.accept("OR", "REPLACE")
	switch {
	case p.accept("TABLE"):
		return p.createTable(&CreateTable{Pos: pos, Replace: replace})
	case p.accept("VIEW"):
		return p.createView(&CreateView{Pos: pos, Replace: replace})
	case p.accept("MATERIALIZED", "VIEW"):
		return p.createView(&CreateView{Pos: pos, Replace: replace, Materialized: true})
	case !replace && p.accept("SCHEMA"):
		return p.createSchema(&CreateSchema{Pos: pos})
	}
	return nil, pos.Unsupported("CREATE %s statements", strings.ToUpper(p.peek().text))
}

func (p *parser) createTable(c *CreateTable) (_ Statement, err error) {
	c.IfNotExists = p.accept("IF", "NOT", "EXISTS")
	if c.Table, err = p.tablePath(); err != nil {
		return nil, err
	}
	if p.accept("(") {
		if err := p.tableElements(c); err != nil {
			return nil, err
		}
	}
	if p.accept("LIKE") {
		if c.Like, err = p.tablePath(); err != nil {
			return nil, err
		}
	}
	if p.accept("PARTITION", "BY") {
		if c.PartitionBy, err = p.expr(); err != nil {
			return nil, err
		}
	}
	if p.accept("CLUSTER", "BY") {
		if c.ClusterBy, err = p.names(); err != nil {
			return nil, err
		}
	}
	if c.Options, err = p.options(); err != nil {
		return nil, err
	}
	if p.accept("AS") {
		c.Query, err = p.query()
	}
	return c, err
}

// tableElements reads the columns and the key of a table, behind the parenthesis.
func (p *parser) tableElements(c *CreateTable) error {
	_, err := list(p, func() (_ struct{}, err error) {
		switch {
		case p.is("PRIMARY", "KEY"):
			c.PrimaryKey, err = p.primaryKey()
		case p.is("FOREIGN", "KEY"), p.is("CONSTRAINT"):
			err = p.peek().pos.Unsupported("%s in CREATE TABLE", strings.ToUpper(p.peek().text))
		default:
			var column ColumnDef
			column, err = p.columnDef()
			c.Columns = append(c.Columns, column)
		}
		return struct{}{}, err
	})
	if err != nil {
		return err
	}
	return p.expect(")")
}

// primaryKey reads PRIMARY KEY (…) NOT ENFORCED.
func (p *parser) primaryKey() ([]Name, error) {
	if err := p.expect("PRIMARY", "KEY"); err != nil {
		return nil, err
	}
	names, err := parenthesised(p, p.names)
	if err != nil {
		return nil, err
	}
	return names, p.expect("NOT", "ENFORCED")
}

func (p *parser) columnDef() (c ColumnDef, err error) {
	if c.Name, err = p.name(); err != nil {
		return c, err
	}
	if c.Type, err = p.typeName(); err != nil {
		return c, err
	}
	for {
		switch {
		case p.accept("NOT", "NULL"):
			c.NotNull = true
		case p.accept("DEFAULT"):
			from := p.peek().from
			if _, err := p.expr(); err != nil {
				return c, err
			}
			c.Default = strings.TrimSpace(p.source[from:p.peek().from])
		case p.is("OPTIONS"):
			if c.Options, err = p.options(); err != nil {
				return c, err
			}
		case p.is("PRIMARY"), p.is("REFERENCES"), p.is("COLLATE"), p.is("CONSTRAINT"), p.is("GENERATED"):
			return c, p.peek().pos.Unsupported("%s in a column's definition", strings.ToUpper(p.peek().text))
		default:
			return c, nil
		}
	}
}

// options reads OPTIONS (…) where it comes next.
func (p *parser) options() ([]Option, error) {
	if !p.accept("OPTIONS", "(") {
		return nil, nil
	}
	if p.accept(")") {
		return nil, nil
	}
	out, err := list(p, func() (o Option, err error) {
		if o.Name, err = p.fieldName(); err != nil {
			return o, err
		}
		if err := p.expect("="); err != nil {
			return o, err
		}
		o.Value, err = p.expr()
		return o, err
	})
	if err != nil {
		return nil, err
	}
	return out, p.expect(")")
}

func (p *parser) createView(c *CreateView) (_ Statement, err error) {
	c.IfNotExists = p.accept("IF", "NOT", "EXISTS")
	if c.View, err = p.tablePath(); err != nil {
		return nil, err
	}
	for _, word := range []string{"(", "PARTITION", "CLUSTER"} {
		if p.is(word) {
			return nil, p.peek().pos.Unsupported("%s in CREATE VIEW", strings.ToUpper(p.peek().text))
		}
	}
	if c.Options, err = p.options(); err != nil {
		return nil, err
	}
	if err := p.expect("AS"); err != nil {
		return nil, err
	}
	from := p.peek().from
	if c.Query, err = p.query(); err != nil {
		return nil, err
	}
	c.Text = strings.TrimSpace(p.source[from:p.peek().from])
	return c, nil
}

func (p *parser) createSchema(c *CreateSchema) (_ Statement, err error) {
	c.IfNotExists = p.accept("IF", "NOT", "EXISTS")
	if c.Schema, err = p.tablePath(); err != nil {
		return nil, err
	}
	c.Options, err = p.options()
	return c, err
}

func (p *parser) drop(pos Pos) (_ Statement, err error) {
	d := &Drop{Pos: pos}
	switch {
	case p.accept("TABLE"):
		d.Kind = "TABLE"
	case p.accept("VIEW"):
		d.Kind = "VIEW"
	case p.accept("MATERIALIZED", "VIEW"):
		d.Kind = "MATERIALIZED VIEW"
	case p.accept("SCHEMA"):
		d.Kind = "SCHEMA"
	default:
		return nil, pos.Unsupported("DROP %s statements", strings.ToUpper(p.peek().text))
	}
	d.IfExists = p.accept("IF", "EXISTS")
	if d.Name, err = p.tablePath(); err != nil {
		return nil, err
	}
	if d.Kind == "SCHEMA" && !p.accept("RESTRICT") {
		d.Cascade = p.accept("CASCADE")
	}
	return d, nil
}

func (p *parser) alterTable(pos Pos) (_ Statement, err error) {
	a := &AlterTable{Pos: pos, IfExists: p.accept("IF", "EXISTS")}
	if a.Table, err = p.tablePath(); err != nil {
		return nil, err
	}
	a.Actions, err = list(p, p.alterAction)
	return a, err
}

func (p *parser) alterAction() (a AlterAction, err error) {
	a.Pos = p.peek().pos
	switch {
	case p.accept("ADD", "COLUMN"):
		a.Kind, a.Exists = "ADD COLUMN", p.accept("IF", "NOT", "EXISTS")
		a.Column, err = p.columnDef()
	case p.is("ADD", "PRIMARY", "KEY"):
		p.next()
		a.Kind = "ADD PRIMARY KEY"
		a.Key, err = p.primaryKey()
	case p.accept("DROP", "PRIMARY", "KEY"):
		a.Kind, a.Exists = "DROP PRIMARY KEY", p.accept("IF", "EXISTS")
	case p.is("SET", "OPTIONS"):
		p.next()
		a.Kind = "SET OPTIONS"
		a.Options, err = p.options()
	case p.accept("ALTER", "COLUMN"):
		return p.alterColumn(a)
	default:
		err = a.Pos.Unsupported("ALTER TABLE %s %s", strings.ToUpper(p.peek().text), strings.ToUpper(p.ahead(1).text))
	}
	return a, err
}

func (p *parser) alterColumn(a AlterAction) (_ AlterAction, err error) {
	a.Exists = p.accept("IF", "EXISTS")
	if a.Column.Name, err = p.name(); err != nil {
		return a, err
	}
	switch {
	case p.accept("DROP", "NOT", "NULL"):
		a.Kind = "ALTER COLUMN DROP NOT NULL"
	case p.is("SET", "OPTIONS"):
		p.next()
		a.Kind = "ALTER COLUMN SET OPTIONS"
		a.Column.Options, err = p.options()
	default:
		err = a.Pos.Unsupported("ALTER COLUMN %s %s", strings.ToUpper(p.peek().text), strings.ToUpper(p.ahead(1).text))
	}
	return a, err
}
