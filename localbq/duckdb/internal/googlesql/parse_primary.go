package googlesql

import "strings"

func (p *parser) primary() (Expr, error) {
	t := p.peek()
	switch t.kind {
	case integer, float, str, bytes:
		p.next()
		return p.literalOf(t)
	case param:
		p.next()
		if t.text == "" {
			p.params++
		}
		return &Param{Pos: t.pos, Name: t.text, Index: p.params - 1}, nil
	case system:
		return nil, t.pos.Unsupported("system variable @@%s", t.text)
	case punct:
		switch t.text {
		case "(":
			return p.group()
		case "[":
			return p.array(&Array{Pos: t.pos})
		}
		return nil, p.unexpected()
	case quoted:
		return p.path()
	case word:
		return p.wordExpr(t)
	}
	return nil, p.unexpected()
}

var literalKinds = map[kind]LiteralKind{integer: Integer, float: Float, str: String, bytes: Bytes}

func (p *parser) literalOf(t token) (Expr, error) {
	switch n := p.peek(); {
	case t.kind == str && n.kind == str:
		return nil, p.unexpected()
	case n.kind == word && n.from == t.until && (t.kind == integer || t.kind == float):
		return nil, t.pos.syntax("Missing whitespace between literal and alias")
	}
	return &Literal{Pos: t.pos, Kind: literalKinds[t.kind], Text: t.text}, nil
}

// wordExpr reads an expression that begins with a word: a keyword of its own, a function call or a path.
func (p *parser) wordExpr(t token) (Expr, error) {
	switch strings.ToUpper(t.text) {
	case "NULL":
		p.next()
		return &Literal{Pos: t.pos, Kind: Null}, nil
	case "TRUE", "FALSE":
		p.next()
		return &Literal{Pos: t.pos, Kind: Bool, Text: strings.ToUpper(t.text)}, nil
	case "CASE":
		return p.caseExpr()
	case "CAST", "SAFE_CAST":
		if p.ahead(1).is("(") {
			return p.cast()
		}
	case "EXTRACT":
		return p.extract()
	case "EXISTS":
		p.next()
		q, err := parenthesised(p, p.query)
		return &Subquery{Pos: t.pos, Kind: "EXISTS", Query: q}, err
	case "ARRAY":
		return p.arrayWord()
	case "STRUCT":
		return p.structWord()
	case "INTERVAL":
		return p.interval()
	case "RANGE":
		return p.rangeWord()
	case "NEW", "WITH":
		return nil, t.pos.Unsupported("%s expressions", strings.ToUpper(t.text))
	}
	if x := p.typedLiteral(t); x != nil {
		return x, nil
	}
	if p.ahead(1).is("(") && (t.identifier() || t.is("IF") || t.is("LEFT") || t.is("RIGHT") || t.is("GROUPING")) {
		p.next()
		return p.call(&Call{Pos: t.pos, Name: strings.ToUpper(t.text)})
	}
	if !t.identifier() {
		return nil, p.unexpected()
	}
	return p.path()
}

var literalTypes = wordSet(`DATE DATETIME TIMESTAMP TIME NUMERIC DECIMAL BIGNUMERIC BIGDECIMAL JSON`)

// typedLiteral reads DATE '…' and the like; nil where it is none.
func (p *parser) typedLiteral(t token) Expr {
	name := strings.ToUpper(t.text)
	if !literalTypes[name] || p.ahead(1).kind != str {
		return nil
	}
	p.next()
	return &TypedLiteral{Pos: t.pos, Type: name, Text: p.next().text}
}

// path reads a.b.c, or a call of a function with a dotted name.
func (p *parser) path() (Expr, error) {
	first, err := p.name()
	if err != nil {
		return nil, err
	}
	path := &Path{Pos: first.Pos, Names: []Name{first}}
	for p.is(".") && !p.ahead(1).is("*") {
		p.next()
		name, err := p.fieldName()
		if err != nil {
			return nil, err
		}
		path.Names = append(path.Names, name)
	}
	if !p.is("(") || len(path.Names) == 1 {
		return path, nil
	}
	c := &Call{Pos: path.Pos, Name: strings.ToUpper(joinNames(path.Names))}
	if rest, ok := strings.CutPrefix(c.Name, "SAFE."); ok {
		c.Safe, c.Name = true, rest
	}
	return p.call(c)
}

// group reads what begins with a parenthesis: a scalar subquery, an expression, or a struct of several.
func (p *parser) group() (Expr, error) {
	pos := p.peek().pos
	if p.holdsQuery(0) {
		q, err := parenthesised(p, p.query)
		return &Subquery{Pos: pos, Query: q}, err
	}
	xs, err := parenthesised(p, p.exprs)
	if err != nil {
		return nil, err
	}
	if len(xs) == 1 {
		return xs[0], nil
	}
	return &Struct{Pos: pos, Fields: xs, Names: make([]*Name, len(xs))}, nil
}

func (p *parser) array(a *Array) (Expr, error) {
	if err := p.expect("["); err != nil {
		return nil, err
	}
	if p.accept("]") {
		return a, nil
	}
	var err error
	if a.Elements, err = p.exprs(); err != nil {
		return nil, err
	}
	return a, p.expect("]")
}

// arrayWord reads ARRAY[…], ARRAY<T>[…] or ARRAY(SELECT …).
func (p *parser) arrayWord() (Expr, error) {
	t := p.next()
	a := &Array{Pos: t.pos}
	switch {
	case p.is("("):
		q, err := parenthesised(p, p.query)
		return &Subquery{Pos: t.pos, Kind: "ARRAY", Query: q}, err
	case p.is("<"):
		var err error
		if a.Element, err = p.angled(); err != nil {
			return nil, err
		}
	}
	return p.array(a)
}

// structWord reads STRUCT(…) or STRUCT<…>(…).
func (p *parser) structWord() (Expr, error) {
	s := &Struct{Pos: p.peek().pos}
	var err error
	if p.ahead(1).is("<") || p.ahead(1).is("<>") {
		if s.Type, err = p.typeName(); err != nil {
			return nil, err
		}
	} else {
		p.next()
	}
	if p.accept("(", ")") {
		return s, nil
	}
	items, err := parenthesised(p, func() ([]SelectItem, error) { return list(p, p.structItem) })
	for _, item := range items {
		s.Fields = append(s.Fields, item.X)
		s.Names = append(s.Names, item.Alias)
	}
	return s, err
}

func (p *parser) structItem() (SelectItem, error) {
	x, err := p.expr()
	if err != nil || !p.accept("AS") {
		return SelectItem{X: x}, err
	}
	name, err := p.name()
	return SelectItem{X: x, Alias: &name}, err
}

func (p *parser) rangeWord() (Expr, error) {
	t := p.next()
	if p.is("(") {
		return p.call(&Call{Pos: t.pos, Name: "RANGE"})
	}
	element, err := p.angled()
	if err != nil {
		return nil, err
	}
	if p.peek().kind != str {
		return nil, p.unexpected()
	}
	return &TypedLiteral{Pos: t.pos, Type: "RANGE", Element: element, Text: p.next().text}, nil
}

func (p *parser) interval() (Expr, error) {
	i := &Interval{Pos: p.next().pos}
	var err error
	if i.Value, err = p.unary(); err != nil {
		return nil, err
	}
	part, err := p.name()
	if err != nil {
		return nil, err
	}
	i.From = strings.ToUpper(part.Text)
	if p.accept("TO") {
		if part, err = p.name(); err != nil {
			return nil, err
		}
		i.To = strings.ToUpper(part.Text)
	}
	return i, nil
}

func (p *parser) caseExpr() (Expr, error) {
	c := &Case{Pos: p.next().pos}
	var err error
	if !p.is("WHEN") {
		if c.Operand, err = p.expr(); err != nil {
			return nil, err
		}
	}
	for p.accept("WHEN") {
		var w When
		if w.If, err = p.expr(); err != nil {
			return nil, err
		}
		if err := p.expect("THEN"); err != nil {
			return nil, err
		}
		if w.Then, err = p.expr(); err != nil {
			return nil, err
		}
		c.Whens = append(c.Whens, w)
	}
	if len(c.Whens) == 0 {
		return nil, p.expect("WHEN")
	}
	if p.accept("ELSE") {
		if c.Else, err = p.expr(); err != nil {
			return nil, err
		}
	}
	return c, p.expect("END")
}

func (p *parser) cast() (_ Expr, err error) {
	t := p.next()
	c := &Cast{Pos: t.pos, Safe: strings.EqualFold(t.text, "SAFE_CAST")}
	p.next()
	if c.X, err = p.expr(); err != nil {
		return nil, err
	}
	if err := p.expect("AS"); err != nil {
		return nil, err
	}
	if c.Type, err = p.typeName(); err != nil {
		return nil, err
	}
	if p.accept("FORMAT") {
		if c.Format, err = p.expr(); err != nil {
			return nil, err
		}
		if c.Zone, err = p.atTimeZone(); err != nil {
			return nil, err
		}
	}
	return c, p.expect(")")
}

func (p *parser) atTimeZone() (Expr, error) {
	if !p.accept("AT", "TIME", "ZONE") {
		return nil, nil
	}
	return p.expr()
}

func (p *parser) extract() (_ Expr, err error) {
	e := &Extract{Pos: p.next().pos}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	if e.Part, err = p.primary(); err != nil {
		return nil, err
	}
	if err := p.expect("FROM"); err != nil {
		return nil, err
	}
	if e.X, err = p.expr(); err != nil {
		return nil, err
	}
	if e.Zone, err = p.atTimeZone(); err != nil {
		return nil, err
	}
	return e, p.expect(")")
}
