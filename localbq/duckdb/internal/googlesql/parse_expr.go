package googlesql

import "strings"

// Expressions by precedence, from the loosest (GoogleSQL reference, "Operators").

func (p *parser) expr() (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	return p.binary(p.and, "OR")
}

func (p *parser) and() (Expr, error) { return p.binary(p.not, "AND") }

// binary reads operands joined by any of the operators, from left to right.
func (p *parser) binary(operand func() (Expr, error), ops ...string) (Expr, error) {
	x, err := operand()
	if err != nil {
		return nil, err
	}
	for n := 0; ; {
		t := p.peek()
		op := ""
		for _, o := range ops {
			if t.is(o) {
				op = o
			}
		}
		if op == "" {
			return x, nil
		}
		if err := p.another(&n); err != nil {
			return nil, err
		}
		p.next()
		y, err := operand()
		if err != nil {
			return nil, err
		}
		x = &Binary{Pos: t.pos, Op: op, X: x, Y: y}
	}
}

func (p *parser) not() (Expr, error) {
	t := p.peek()
	if !t.is("NOT") {
		return p.comparison()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.next()
	x, err := p.not()
	return &Unary{Pos: t.pos, Op: "NOT", X: x}, err
}

// comparison reads one comparison. They do not chain in GoogleSQL, except by IS.
func (p *parser) comparison() (Expr, error) {
	x, err := p.bitOr()
	if err != nil {
		return nil, err
	}
	for n := 0; ; {
		y, err := p.comparisonOf(x)
		if err != nil || y == nil {
			return x, err
		}
		if err := p.another(&n); err != nil {
			return nil, err
		}
		x = y
	}
}

// comparisonOf reads the operator and the rest of a comparison that begins with x; nil where none follows.
func (p *parser) comparisonOf(x Expr) (Expr, error) {
	t := p.peek()
	for _, op := range []string{"=", "<>", "!=", "<=", ">=", "<", ">"} {
		if p.accept(op) {
			y, err := p.bitOr()
			if op == "!=" {
				op = "<>"
			}
			return &Binary{Pos: t.pos, Op: op, X: x, Y: y}, err
		}
	}
	if p.accept("IS") {
		return p.isExpr(x, t.pos)
	}
	not := p.is("NOT") && (p.ahead(1).is("LIKE") || p.ahead(1).is("BETWEEN") || p.ahead(1).is("IN"))
	if not {
		p.next()
	}
	switch {
	case p.accept("LIKE"):
		return p.like(&Like{Pos: t.pos, X: x, Not: not})
	case p.accept("BETWEEN"):
		return p.between(&Between{Pos: t.pos, X: x, Not: not})
	case p.accept("IN"):
		return p.in(&In{Pos: t.pos, X: x, Not: not})
	}
	return nil, nil
}

func (p *parser) isExpr(x Expr, pos Pos) (Expr, error) {
	not := p.accept("NOT")
	if p.accept("DISTINCT", "FROM") {
		op := "IS DISTINCT FROM"
		if not {
			op = "IS NOT DISTINCT FROM"
		}
		y, err := p.bitOr()
		return &Binary{Pos: pos, Op: op, X: x, Y: y}, err
	}
	for _, what := range []string{"NULL", "TRUE", "FALSE", "UNKNOWN"} {
		if p.accept(what) {
			return &Is{Pos: pos, X: x, Not: not, What: what}, nil
		}
	}
	return nil, p.unexpected()
}

func (p *parser) like(l *Like) (Expr, error) {
	for _, q := range []string{"ANY", "SOME", "ALL"} {
		if p.accept(q) {
			l.Quantifier = q
			if p.is("UNNEST") {
				return nil, p.peek().pos.Unsupported("LIKE %s UNNEST", q)
			}
			var err error
			l.Patterns, err = parenthesised(p, p.exprs)
			return l, err
		}
	}
	pattern, err := p.bitOr()
	l.Patterns = []Expr{pattern}
	return l, err
}

func (p *parser) between(b *Between) (_ Expr, err error) {
	if b.Low, err = p.bitOr(); err != nil {
		return nil, err
	}
	if err := p.expect("AND"); err != nil {
		return nil, err
	}
	b.High, err = p.bitOr()
	return b, err
}

func (p *parser) in(i *In) (_ Expr, err error) {
	switch {
	case p.accept("UNNEST"):
		i.Unnest, err = parenthesised(p, p.expr)
	case p.holdsQuery(0):
		i.Query, err = parenthesised(p, p.query)
	default:
		i.List, err = parenthesised(p, p.exprs)
	}
	return i, err
}

func (p *parser) bitOr() (Expr, error)  { return p.binary(p.bitXor, "|") }
func (p *parser) bitXor() (Expr, error) { return p.binary(p.bitAnd, "^") }
func (p *parser) bitAnd() (Expr, error) { return p.binary(p.shift, "&") }
func (p *parser) shift() (Expr, error)  { return p.binary(p.sum, "<<", ">>") }
func (p *parser) sum() (Expr, error)    { return p.binary(p.product, "+", "-") }
func (p *parser) product() (Expr, error) {
	return p.binary(p.unary, "*", "/", "||")
}

func (p *parser) unary() (Expr, error) {
	t := p.peek()
	if !t.is("-") && !t.is("+") && !t.is("~") {
		return p.postfix()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.next()
	x, err := p.unary()
	if err != nil {
		return nil, err
	}
	if l, ok := x.(*Literal); ok && t.text == "-" && (l.Kind == Integer || l.Kind == Float) && !strings.HasPrefix(l.Text, "-") {
		return &Literal{Pos: t.pos, Kind: l.Kind, Text: "-" + l.Text}, nil // -9223372036854775808 has no positive form
	}
	return &Unary{Pos: t.pos, Op: t.text, X: x}, nil
}

// postfix reads a primary expression and the fields and subscripts behind it.
func (p *parser) postfix() (Expr, error) {
	x, err := p.primary()
	if err != nil {
		return nil, err
	}
	for n := 0; ; {
		t := p.peek()
		if t.is(".") || t.is("[") {
			if err := p.another(&n); err != nil {
				return nil, err
			}
		}
		switch {
		case t.is(".") && !p.ahead(1).is("*"):
			p.next()
			name, err := p.fieldName()
			if err != nil {
				return nil, err
			}
			x = &Field{Pos: t.pos, X: x, Name: name}
		case t.is("["):
			if x, err = p.subscript(x); err != nil {
				return nil, err
			}
		default:
			return x, nil
		}
	}
}

func (p *parser) subscript(x Expr) (Expr, error) {
	s := &Subscript{Pos: p.next().pos, X: x}
	for _, kind := range []string{"OFFSET", "ORDINAL", "SAFE_OFFSET", "SAFE_ORDINAL"} {
		if p.is(kind, "(") {
			s.Kind = kind
			p.next()
		}
	}
	var err error
	if s.Index, err = p.expr(); err != nil {
		return nil, err
	}
	return s, p.expect("]")
}
