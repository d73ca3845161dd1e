package googlesql

// call reads the arguments of a function, and what may stand among and behind them.
func (p *parser) call(c *Call) (Expr, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	if p.is("*") {
		p.next()
		c.Star = true
	} else if err := p.arguments(c); err != nil {
		return nil, err
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	if !p.accept("OVER") {
		return c, nil
	}
	var err error
	c.Over, err = p.over()
	return c, err
}

func (p *parser) arguments(c *Call) (err error) {
	if p.is(")") {
		return nil
	}
	c.Distinct = p.accept("DISTINCT")
	for {
		if err := p.argument(c); err != nil {
			return err
		}
		if !p.accept(",") {
			break
		}
	}
	switch {
	case p.accept("IGNORE", "NULLS"):
		c.Nulls = "IGNORE"
	case p.accept("RESPECT", "NULLS"):
		c.Nulls = "RESPECT"
	}
	if p.accept("HAVING") {
		if c.Having, err = p.havingModifier(); err != nil {
			return err
		}
	}
	if c.OrderBy, err = p.orderBy(); err != nil {
		return err
	}
	if p.accept("LIMIT") {
		c.Limit, err = p.expr()
	}
	return err
}

func (p *parser) argument(c *Call) error {
	if p.ahead(1).is("=>") {
		name, err := p.name()
		if err != nil {
			return err
		}
		p.next()
		value, err := p.expr()
		c.Named = append(c.Named, NamedArg{name, value})
		return err
	}
	if len(c.Named) > 0 {
		return p.peek().pos.syntax("Positional arguments must come before named ones")
	}
	x, err := p.argumentExpr()
	c.Args = append(c.Args, x)
	return err
}

// argumentExpr is an expression, or a query without parentheses of its own, which GoogleSQL refuses too.
func (p *parser) argumentExpr() (Expr, error) {
	if p.is("SELECT") || p.is("WITH") && p.ahead(2).is("AS") {
		return nil, p.unexpected()
	}
	return p.expr()
}

func (p *parser) havingModifier() (*HavingModifier, error) {
	h := &HavingModifier{Max: p.accept("MAX")}
	if !h.Max && !p.accept("MIN") {
		return nil, p.unexpected()
	}
	var err error
	h.X, err = p.expr()
	return h, err
}

func (p *parser) namedWindow() (NamedWindow, error) {
	name, err := p.name()
	if err != nil {
		return NamedWindow{}, err
	}
	if err := p.expect("AS"); err != nil {
		return NamedWindow{}, err
	}
	w, err := p.over()
	return NamedWindow{name, w}, err
}

// over reads a window: a name, or a specification in parentheses.
func (p *parser) over() (*Window, error) {
	w := &Window{Pos: p.peek().pos}
	if !p.is("(") {
		name, err := p.name()
		w.Base = &name
		return w, err
	}
	return parenthesised(p, func() (*Window, error) { return w, p.window(w) })
}

func (p *parser) window(w *Window) (err error) {
	if p.peek().identifier() {
		name, err := p.name()
		if err != nil {
			return err
		}
		w.Base = &name
	}
	if p.accept("PARTITION", "BY") {
		if w.Partition, err = p.exprs(); err != nil {
			return err
		}
	}
	if w.OrderBy, err = p.orderBy(); err != nil {
		return err
	}
	if p.is("ROWS") || p.is("RANGE") {
		w.Frame, err = p.frame()
	}
	return err
}

func (p *parser) frame() (_ *Frame, err error) {
	f := &Frame{Unit: "ROWS"}
	if p.next().is("RANGE") {
		f.Unit = "RANGE"
	}
	if !p.accept("BETWEEN") {
		f.Start, err = p.bound()
		return f, err
	}
	if f.Start, err = p.bound(); err != nil {
		return nil, err
	}
	if err := p.expect("AND"); err != nil {
		return nil, err
	}
	f.End, err = p.bound()
	return f, err
}

func (p *parser) bound() (_ *Bound, err error) {
	b := &Bound{}
	switch {
	case p.accept("CURRENT", "ROW"):
		b.Kind = "CURRENT ROW"
		return b, nil
	case p.accept("UNBOUNDED"):
		b.Kind = "UNBOUNDED "
	default:
		if b.Offset, err = p.expr(); err != nil {
			return nil, err
		}
	}
	switch {
	case p.accept("PRECEDING"):
		b.Kind += "PRECEDING"
	case p.accept("FOLLOWING"):
		b.Kind += "FOLLOWING"
	default:
		return nil, p.unexpected()
	}
	return b, nil
}
