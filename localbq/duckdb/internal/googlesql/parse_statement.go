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
	case p.accept("ALTER"):
		return p.alter(pos)
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
			var key ForeignKey
			key, err = p.foreignKey()
			c.ForeignKeys = append(c.ForeignKeys, key)
		default:
			err = p.tableColumn(c)
		}
		return struct{}{}, err
	})
	if err != nil {
		return err
	}
	return p.expect(")")
}

// tableColumn reads a column, with the keys that stand behind it.
func (p *parser) tableColumn(c *CreateTable) error {
	column, err := p.columnDef()
	if err != nil {
		return err
	}
	c.Columns = append(c.Columns, column)
	for {
		switch pos := p.peek().pos; {
		case p.accept("PRIMARY", "KEY"):
			if c.PrimaryKey != nil {
				return pos.Errorf("Multiple primary keys are not allowed")
			}
			c.PrimaryKey = []Name{column.Name}
			err = p.expect("NOT", "ENFORCED")
		case p.is("REFERENCES"), p.is("CONSTRAINT"):
			key := ForeignKey{Pos: pos, Columns: []Name{column.Name}}
			if key.Name, _, err = p.constraintName(); err == nil {
				key, err = p.references(key)
			}
			c.ForeignKeys = append(c.ForeignKeys, key)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// foreignKey reads [CONSTRAINT name] FOREIGN KEY (…) REFERENCES table (…) NOT ENFORCED.
func (p *parser) foreignKey() (key ForeignKey, err error) {
	key.Pos = p.peek().pos
	if key.Name, key.Exists, err = p.constraintName(); err != nil {
		return key, err
	}
	if err := p.expect("FOREIGN", "KEY"); err != nil {
		return key, err
	}
	if key.Columns, err = parenthesised(p, p.names); err != nil {
		return key, err
	}
	return p.references(key)
}

// constraintName reads CONSTRAINT [IF NOT EXISTS] name where it comes next.
func (p *parser) constraintName() (name *Name, exists bool, err error) {
	if !p.accept("CONSTRAINT") {
		return nil, false, nil
	}
	exists = p.accept("IF", "NOT", "EXISTS")
	n, err := p.name()
	return &n, exists, err
}

func (p *parser) references(key ForeignKey) (_ ForeignKey, err error) {
	if err := p.expect("REFERENCES"); err != nil {
		return key, err
	}
	if key.Table, err = p.tablePath(); err != nil {
		return key, err
	}
	if key.References, err = parenthesised(p, p.names); err != nil {
		return key, err
	}
	return key, p.expect("NOT", "ENFORCED")
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
			if c.Default, err = p.exprText(); err != nil {
				return c, err
			}
		case p.is("OPTIONS"):
			if c.Options, err = p.options(); err != nil {
				return c, err
			}
		case p.is("COLLATE"), p.is("GENERATED"):
			return c, p.peek().pos.Unsupported("%s in a column's definition", strings.ToUpper(p.peek().text))
		default:
			return c, nil
		}
	}
}

// exprText reads an expression and answers it as written.
func (p *parser) exprText() (string, error) {
	from := p.peek().from
	if _, err := p.expr(); err != nil {
		return "", err
	}
	return strings.TrimSpace(p.source[from:p.peek().from]), nil
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
