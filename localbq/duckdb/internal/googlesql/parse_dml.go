package googlesql

func (p *parser) insert(pos Pos) (_ Statement, err error) {
	i := &Insert{Pos: pos}
	p.accept("INTO")
	if i.Table, err = p.tablePath(); err != nil {
		return nil, err
	}
	if p.is("(") && !p.holdsQuery(0) {
		if i.Columns, err = parenthesised(p, p.names); err != nil {
			return nil, err
		}
	}
	if !p.accept("VALUES") {
		i.Query, err = p.query()
		return i, err
	}
	i.Rows, err = list(p, p.insertRow)
	return i, err
}

// insertRow reads one row of VALUES.
func (p *parser) insertRow() ([]Expr, error) {
	return parenthesised(p, func() ([]Expr, error) { return list(p, p.assignedValue) })
}

// assignedValue reads what a column is given.
func (p *parser) assignedValue() (Expr, error) {
	if pos := p.peek().pos; p.accept("DEFAULT") {
		return &Default{pos}, nil
	}
	return p.expr()
}

func (p *parser) update(pos Pos) (_ Statement, err error) {
	u := &Update{Pos: pos}
	if u.Table, err = p.tablePath(); err != nil {
		return nil, err
	}
	if u.Alias, err = p.dmlAlias("SET"); err != nil {
		return nil, err
	}
	if err := p.expect("SET"); err != nil {
		return nil, err
	}
	if u.Set, err = list(p, p.assignment); err != nil {
		return nil, err
	}
	if p.accept("FROM") {
		if u.From, err = p.from(); err != nil {
			return nil, err
		}
	}
	u.Where, err = p.dmlWhere("UPDATE")
	return u, err
}

func (p *parser) assignment() (a Assignment, err error) {
	first, err := p.name()
	if err != nil {
		return a, err
	}
	a.Path = []Name{first}
	for p.accept(".") {
		member, err := p.fieldName()
		if err != nil {
			return a, err
		}
		a.Path = append(a.Path, member)
	}
	if p.is("[") {
		return a, p.peek().pos.Unsupported("SET of an element of an array")
	}
	if err := p.expect("="); err != nil {
		return a, err
	}
	a.Value, err = p.assignedValue()
	return a, err
}

func (p *parser) delete(pos Pos) (_ Statement, err error) {
	d := &Delete{Pos: pos}
	p.accept("FROM")
	if d.Table, err = p.tablePath(); err != nil {
		return nil, err
	}
	if d.Alias, err = p.dmlAlias("WHERE"); err != nil {
		return nil, err
	}
	d.Where, err = p.dmlWhere("DELETE")
	return d, err
}

// dmlAlias reads [AS] name, minding the word that comes next.
func (p *parser) dmlAlias(next string) (*Name, error) {
	if p.is(next) {
		return nil, nil
	}
	return p.alias()
}

func (p *parser) dmlWhere(statement string) (Expr, error) {
	if !p.is("WHERE") {
		return nil, p.peek().pos.syntax("%s must have a WHERE clause", statement)
	}
	p.next()
	return p.expr()
}

func (p *parser) merge(pos Pos) (_ Statement, err error) {
	m := &Merge{Pos: pos}
	p.accept("INTO")
	if m.Table, err = p.tablePath(); err != nil {
		return nil, err
	}
	if m.Alias, err = p.dmlAlias("USING"); err != nil {
		return nil, err
	}
	if err := p.expect("USING"); err != nil {
		return nil, err
	}
	if m.Source, err = p.fromItem(); err != nil {
		return nil, err
	}
	if j, ok := m.Source.(*Join); ok {
		return nil, j.Pos.syntax("Unexpected join: the source of MERGE is a table or a subquery")
	}
	if err := p.expect("ON"); err != nil {
		return nil, err
	}
	if m.On, err = p.expr(); err != nil {
		return nil, err
	}
	for p.accept("WHEN") {
		w, err := p.when()
		if err != nil {
			return nil, err
		}
		m.Whens = append(m.Whens, w)
	}
	if m.Whens == nil {
		return nil, p.peek().pos.syntax("Expected keyword WHEN but got %v", p.peek())
	}
	return m, nil
}

// when reads a clause of MERGE, behind WHEN.
func (p *parser) when() (w MergeClause, err error) {
	w.Pos = p.peek().pos
	not := p.accept("NOT")
	if err := p.expect("MATCHED"); err != nil {
		return w, err
	}
	switch {
	case !not:
		w.Kind = Matched
	case p.accept("BY", "SOURCE"):
		w.Kind = NotBySource
	default:
		p.accept("BY", "TARGET")
		w.Kind = NotByTarget
	}
	if p.accept("AND") {
		if w.And, err = p.expr(); err != nil {
			return w, err
		}
	}
	if err := p.expect("THEN"); err != nil {
		return w, err
	}
	action := p.peek()
	switch {
	case p.accept("INSERT"):
		if err = p.mergeInsert(&w); err == nil && w.Kind != NotByTarget {
			err = action.pos.syntax("INSERT is allowed with WHEN NOT MATCHED [BY TARGET] only")
		}
	case w.Kind == NotByTarget:
		err = action.pos.syntax("Expected keyword INSERT but got %v", action)
	case p.accept("DELETE"):
		w.Action = "DELETE"
	case p.accept("UPDATE", "SET"):
		w.Action = "UPDATE"
		w.Set, err = list(p, p.assignment)
	default:
		err = p.unexpected()
	}
	return w, err
}

// mergeInsert reads INSERT [(columns)] ROW or VALUES (…).
func (p *parser) mergeInsert(w *MergeClause) (err error) {
	w.Action = "INSERT"
	if p.is("(") {
		if w.Columns, err = parenthesised(p, p.names); err != nil {
			return err
		}
	}
	if p.accept("ROW") {
		return nil
	}
	if err := p.expect("VALUES"); err != nil {
		return err
	}
	w.Values, err = p.insertRow()
	return err
}
