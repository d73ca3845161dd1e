package googlesql

import "strings"

// alter reads ALTER of a table, a view or a schema.
func (p *parser) alter(pos Pos) (_ Statement, err error) {
	a := &Alter{Pos: pos}
	switch {
	case p.accept("TABLE"):
		a.Kind = "TABLE"
	case p.accept("VIEW"):
		a.Kind = "VIEW"
	case p.accept("MATERIALIZED", "VIEW"):
		a.Kind = "MATERIALIZED VIEW"
	case p.accept("SCHEMA"):
		a.Kind = "SCHEMA"
	default:
		return nil, pos.Unsupported("ALTER %s statements", strings.ToUpper(p.peek().text))
	}
	a.IfExists = p.accept("IF", "EXISTS")
	if a.Name, err = p.tablePath(); err != nil {
		return nil, err
	}
	if a.Kind != "TABLE" && !p.is("SET", "OPTIONS") {
		return nil, p.peek().pos.Unsupported("ALTER %s %s", a.Kind, strings.ToUpper(p.peek().text+" "+p.ahead(1).text))
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
	case p.is("ADD", "FOREIGN", "KEY"), p.is("ADD", "CONSTRAINT"):
		p.next()
		a.Kind = "ADD FOREIGN KEY"
		a.ForeignKey, err = p.foreignKey()
	case p.accept("DROP", "PRIMARY", "KEY"):
		a.Kind, a.Exists = "DROP PRIMARY KEY", p.accept("IF", "EXISTS")
	case p.accept("DROP", "CONSTRAINT"):
		a.Kind, a.Exists = "DROP CONSTRAINT", p.accept("IF", "EXISTS")
		a.Column.Name, err = p.name()
	case p.accept("DROP", "COLUMN"):
		a.Kind, a.Exists = "DROP COLUMN", p.accept("IF", "EXISTS")
		a.Column.Name, err = p.columnName()
	case p.accept("RENAME", "COLUMN"):
		return p.renameColumn(a)
	case p.accept("RENAME", "TO"):
		a.Kind = "RENAME TO"
		a.To, err = p.name()
	case p.is("SET", "OPTIONS"):
		p.next()
		a.Kind = "SET OPTIONS"
		a.Options, err = p.options()
	case p.accept("ALTER", "COLUMN"):
		return p.alterColumn(a)
	default:
		err = a.Pos.Unsupported("ALTER TABLE %s", strings.ToUpper(p.peek().text+" "+p.ahead(1).text))
	}
	return a, err
}

// columnName reads the name of a column. Members of columns cannot be dropped, renamed or altered.
func (p *parser) columnName() (Name, error) {
	n, err := p.name()
	if err == nil && p.is(".") {
		err = n.Pos.Errorf("Members of columns cannot be altered: %s", n.Text)
	}
	return n, err
}

func (p *parser) renameColumn(a AlterAction) (_ AlterAction, err error) {
	a.Kind, a.Exists = "RENAME COLUMN", p.accept("IF", "EXISTS")
	if a.Column.Name, err = p.columnName(); err != nil {
		return a, err
	}
	if err := p.expect("TO"); err != nil {
		return a, err
	}
	a.To, err = p.name()
	return a, err
}

func (p *parser) alterColumn(a AlterAction) (_ AlterAction, err error) {
	a.Exists = p.accept("IF", "EXISTS")
	if a.Column.Name, err = p.columnName(); err != nil {
		return a, err
	}
	switch {
	case p.accept("DROP", "NOT", "NULL"):
		a.Kind = "ALTER COLUMN DROP NOT NULL"
	case p.accept("DROP", "DEFAULT"):
		a.Kind = "ALTER COLUMN SET DEFAULT"
	case p.accept("SET", "DEFAULT"):
		a.Kind = "ALTER COLUMN SET DEFAULT"
		a.Column.Default, err = p.exprText()
	case p.accept("SET", "DATA", "TYPE"):
		a.Kind = "ALTER COLUMN SET DATA TYPE"
		a.Column.Type, err = p.typeName()
	case p.is("SET", "OPTIONS"):
		p.next()
		a.Kind = "ALTER COLUMN SET OPTIONS"
		a.Column.Options, err = p.options()
	default:
		err = a.Pos.Unsupported("ALTER COLUMN %s", strings.ToUpper(p.peek().text+" "+p.ahead(1).text))
	}
	return a, err
}
