package googlesql

// query reads [WITH …] body [ORDER BY …] [LIMIT … [OFFSET …]].
func (p *parser) query() (*Query, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	q := &Query{Pos: p.peek().pos}
	var err error
	if p.accept("WITH") {
		q.Recursive = p.accept("RECURSIVE")
		if q.With, err = list(p, p.cte); err != nil {
			return nil, err
		}
	}
	if q.Body, err = p.setOperations(); err != nil {
		return nil, err
	}
	if q.OrderBy, err = p.orderBy(); err != nil {
		return nil, err
	}
	if p.accept("LIMIT") {
		if q.Limit, err = p.expr(); err != nil {
			return nil, err
		}
		if p.accept("OFFSET") {
			if q.Offset, err = p.expr(); err != nil {
				return nil, err
			}
		}
	}
	if t := p.peek(); t.is("|>") {
		return nil, t.pos.Unsupported("pipe syntax")
	}
	return q, nil
}

func (p *parser) cte() (CTE, error) {
	name, err := p.name()
	if err != nil {
		return CTE{}, err
	}
	if err := p.expect("AS"); err != nil {
		return CTE{}, err
	}
	q, err := parenthesised(p, p.query)
	return CTE{name, q}, err
}

// setOperations reads bodies joined by one set operator; mixing operators takes parentheses.
func (p *parser) setOperations() (Body, error) {
	left, err := p.body()
	if err != nil {
		return nil, err
	}
	var first *SetOperation
	for n := 0; ; {
		op := &SetOperation{Pos: p.peek().pos, Left: left}
		switch {
		case p.accept("UNION"):
			op.Op = "UNION"
		case p.accept("INTERSECT"):
			op.Op = "INTERSECT"
		case p.accept("EXCEPT"):
			op.Op = "EXCEPT"
		default:
			return left, nil
		}
		if err := p.another(&n); err != nil {
			return nil, err
		}
		if err := p.setQuantifier(op); err != nil {
			return nil, err
		}
		if first == nil {
			first = op
		} else if first.Op != op.Op || first.All != op.All {
			return nil, op.Pos.syntax("Different set operations cannot be used in the same query without using parentheses for grouping")
		}
		if op.Right, err = p.body(); err != nil {
			return nil, err
		}
		left = op
	}
}

func (p *parser) setQuantifier(op *SetOperation) error {
	switch {
	case p.accept("ALL"):
		op.All = true
		if op.Op != "UNION" {
			return op.Pos.syntax("%s ALL is not supported", op.Op)
		}
	case !p.accept("DISTINCT"):
		return p.peek().pos.syntax("Expected keyword ALL or keyword DISTINCT but got %v", p.peek())
	}
	if t := p.peek(); t.is("BY") || t.is("CORRESPONDING") || t.is("STRICT") {
		return t.pos.Unsupported("set operations by name")
	}
	return nil
}

func (p *parser) body() (Body, error) {
	if p.is("(") {
		q, err := parenthesised(p, p.query)
		return q, err
	}
	return p.selection()
}

func (p *parser) selection() (*Select, error) {
	s := &Select{Pos: p.peek().pos}
	if err := p.expect("SELECT"); err != nil {
		return nil, err
	}
	if t := p.peek(); t.is("WITH") {
		return nil, t.pos.Unsupported("SELECT WITH")
	}
	if !p.accept("ALL") {
		s.Distinct = p.accept("DISTINCT")
	}
	switch {
	case p.accept("AS", "STRUCT"):
		s.As = "STRUCT"
	case p.accept("AS", "VALUE"):
		s.As = "VALUE"
	}
	var err error
	if s.Items, err = p.items(); err != nil {
		return nil, err
	}
	return s, p.clauses(s)
}

// clauses reads everything after the SELECT list.
func (p *parser) clauses(s *Select) (err error) {
	if p.accept("FROM") {
		if s.From, err = p.from(); err != nil {
			return err
		}
	}
	if p.accept("WHERE") {
		if s.Where, err = p.expr(); err != nil {
			return err
		}
	}
	if p.is("GROUP", "BY") {
		if s.GroupBy, err = p.groupBy(); err != nil {
			return err
		}
	}
	if p.accept("HAVING") {
		if s.Having, err = p.expr(); err != nil {
			return err
		}
	}
	if p.accept("QUALIFY") {
		if s.Qualify, err = p.expr(); err != nil {
			return err
		}
	}
	if p.accept("WINDOW") {
		s.Windows, err = list(p, p.namedWindow)
	}
	return err
}

// items reads the SELECT list, which may end in a comma.
func (p *parser) items() ([]SelectItem, error) {
	var out []SelectItem
	for {
		item, err := p.item()
		if err != nil {
			return nil, err
		}
		out = append(out, item)
		if !p.accept(",") || p.is("FROM") || p.peek().kind == end || p.is(")") {
			return out, nil
		}
	}
}

func (p *parser) item() (SelectItem, error) {
	s := SelectItem{Pos: p.peek().pos}
	var err error
	if p.accept("*") {
		s.Star, err = p.star()
		return s, err
	}
	if s.X, err = p.expr(); err != nil {
		return s, err
	}
	if p.accept(".", "*") {
		s.Star, err = p.star()
		return s, err
	}
	s.Alias, err = p.alias()
	return s, err
}

// star reads the modifiers of a star.
func (p *parser) star() (*Star, error) {
	s := &Star{}
	var err error
	if p.is("EXCEPT", "(") {
		p.next()
		if s.Except, err = parenthesised(p, p.names); err != nil {
			return nil, err
		}
	}
	if p.accept("REPLACE") {
		s.Replace, err = parenthesised(p, func() ([]SelectItem, error) { return list(p, p.replacement) })
	}
	return s, err
}

func (p *parser) replacement() (SelectItem, error) {
	s := SelectItem{Pos: p.peek().pos}
	var err error
	if s.X, err = p.expr(); err != nil {
		return s, err
	}
	if err := p.expect("AS"); err != nil {
		return s, err
	}
	name, err := p.name()
	s.Alias = &name
	return s, err
}

func (p *parser) groupBy() (*GroupBy, error) {
	g := &GroupBy{Pos: p.peek().pos}
	if err := p.expect("GROUP", "BY"); err != nil {
		return nil, err
	}
	if p.accept("ALL") {
		g.All = true
		return g, nil
	}
	var err error
	g.Keys, err = list(p, p.groupKey)
	return g, err
}

func (p *parser) groupKey() (GroupKey, error) {
	var k GroupKey
	var err error
	switch {
	case p.accept("ROLLUP"):
		k.Kind = "ROLLUP"
	case p.accept("CUBE"):
		k.Kind = "CUBE"
	case p.accept("GROUPING", "SETS"):
		k.Kind = "GROUPING SETS"
	default:
		k.X, err = p.expr()
		return k, err
	}
	k.Sets, err = parenthesised(p, func() ([][]Expr, error) { return list(p, p.groupSet) })
	return k, err
}

// groupSet is x, () or (x, y).
func (p *parser) groupSet() ([]Expr, error) {
	if p.accept("(", ")") {
		return nil, nil
	}
	x, err := p.expr()
	if s, ok := x.(*Struct); ok && s.Type == nil {
		return s.Fields, err
	}
	return []Expr{x}, err
}

func (p *parser) orderBy() ([]OrderItem, error) {
	if !p.accept("ORDER", "BY") {
		return nil, nil
	}
	return list(p, p.orderItem)
}

func (p *parser) orderItem() (OrderItem, error) {
	var o OrderItem
	var err error
	if o.X, err = p.expr(); err != nil {
		return o, err
	}
	if t := p.peek(); t.is("COLLATE") {
		return o, t.pos.Unsupported("COLLATE")
	}
	if !p.accept("ASC") {
		o.Desc = p.accept("DESC")
	}
	switch {
	case p.accept("NULLS", "FIRST"):
		o.Nulls = "FIRST"
	case p.accept("NULLS", "LAST"):
		o.Nulls = "LAST"
	}
	return o, nil
}
