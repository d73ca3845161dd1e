package googlesql

import "strings"

// from reads the items of a FROM clause, with commas as cross joins.
func (p *parser) from() (From, error) {
	left, err := p.fromItem()
	if err != nil {
		return nil, err
	}
	for n := 0; ; {
		join, ok, err := p.joinKind()
		if err != nil || !ok {
			return left, err
		}
		if err := p.another(&n); err != nil {
			return nil, err
		}
		join.Left = left
		if join.Right, err = p.fromItem(); err != nil {
			return nil, err
		}
		if err := p.joinCondition(join); err != nil {
			return nil, err
		}
		left = join
	}
}

// joinKind reads a comma or the words up to JOIN; ok is false where no join follows.
func (p *parser) joinKind() (*Join, bool, error) {
	j := &Join{Pos: p.peek().pos, Kind: "INNER"}
	switch {
	case p.accept(","), p.accept("CROSS", "JOIN"):
		j.Kind = "CROSS"
		return j, true, nil
	case p.accept("JOIN"):
		return j, true, nil
	case p.is("NATURAL"), p.is("ASOF"):
		return nil, false, p.peek().pos.Unsupported("%s JOIN", strings.ToUpper(p.peek().text))
	case p.accept("INNER"):
	case p.accept("LEFT"):
		j.Kind = "LEFT"
	case p.accept("RIGHT"):
		j.Kind = "RIGHT"
	case p.accept("FULL"):
		j.Kind = "FULL"
	default:
		return nil, false, nil
	}
	if j.Kind != "INNER" {
		p.accept("OUTER")
	}
	return j, true, p.expect("JOIN")
}

func (p *parser) joinCondition(j *Join) (err error) {
	switch {
	case j.Kind == "CROSS":
	case p.accept("ON"):
		j.On, err = p.expr()
	case p.accept("USING"):
		j.Using, err = parenthesised(p, p.names)
	case !unnests(j.Right):
		return p.peek().pos.syntax("Expected keyword ON or keyword USING but got %v", p.peek())
	}
	return err
}

// unnests reports whether an item may be joined without a condition: an array of the row it is joined to.
func unnests(f From) bool {
	switch f := f.(type) {
	case *Unnest:
		return true
	case *Table:
		return len(f.Parts) > 1 // decided by name resolution: t.items may be an array
	}
	return false
}

func (p *parser) fromItem() (From, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	item, err := p.primaryItem()
	if err != nil {
		return nil, err
	}
	for _, word := range []string{"PIVOT", "UNPIVOT", "TABLESAMPLE", "MATCH_RECOGNIZE"} {
		if p.is(word) {
			return nil, p.peek().pos.Unsupported("%s", word)
		}
	}
	return item, nil
}

func (p *parser) primaryItem() (From, error) {
	t := p.peek()
	switch {
	case t.is("UNNEST"):
		return p.unnest()
	case t.is("LATERAL"):
		return nil, t.pos.Unsupported("LATERAL")
	case p.holdsQuery(0):
		return p.derived()
	case t.is("("):
		return parenthesised(p, p.from)
	case t.identifier():
		return p.table()
	}
	return nil, p.unexpected()
}

// holdsQuery reports whether the parenthesis n tokens ahead holds a query, and not an expression or a join of which a query
// is the first part: (SELECT …), ((SELECT …)), ((SELECT …) UNION ALL …).
func (p *parser) holdsQuery(n int) bool {
	if !p.ahead(n).is("(") {
		return false
	}
	switch inner := p.ahead(n + 1); {
	case inner.is("SELECT"), inner.is("WITH"):
		return true
	case !inner.is("("):
		return false
	}
	after := p.closing(n+1) + 1
	switch t := p.ahead(after); {
	case t.is("UNION"), t.is("INTERSECT"), t.is("EXCEPT"), t.is("ORDER"), t.is("LIMIT"), t.is(")"):
		return p.holdsQuery(n + 1)
	}
	return false
}

// closing is how far ahead the parenthesis that closes the one n tokens ahead is; beyond the end where none does.
func (p *parser) closing(n int) int {
	if p.closers == nil {
		p.closers = closers(p.tokens)
	}
	return p.closers[p.at+n] - p.at
}

// closers are, by the place of a parenthesis, the place of the one that closes it: found for all at once, because those that are
// nested are asked for again and again.
func closers(tokens []token) []int {
	out := make([]int, len(tokens))
	var open []int
	for i, t := range tokens {
		out[i] = len(tokens)
		switch {
		case t.is("("):
			open = append(open, i)
		case t.is(")") && len(open) > 0:
			out[open[len(open)-1]] = i
			open = open[:len(open)-1]
		}
	}
	return out
}

func (p *parser) derived() (From, error) {
	d := &Derived{Pos: p.peek().pos}
	var err error
	if d.Query, err = parenthesised(p, p.query); err != nil {
		return nil, err
	}
	d.Alias, err = p.itemAlias()
	return d, err
}

// itemAlias reads an alias, minding the words that follow an item without being reserved.
func (p *parser) itemAlias() (*Name, error) {
	for _, word := range []string{"PIVOT", "UNPIVOT", "MATCH_RECOGNIZE"} {
		if p.is(word, "(") {
			return nil, nil
		}
	}
	return p.alias()
}

func (p *parser) unnest() (From, error) {
	u := &Unnest{Pos: p.peek().pos}
	p.next()
	var err error
	if u.X, err = parenthesised(p, p.expr); err != nil {
		return nil, err
	}
	if u.Alias, err = p.itemAlias(); err != nil {
		return nil, err
	}
	u.WithOffset, u.OffsetAlias, err = p.withOffset()
	return u, err
}

func (p *parser) withOffset() (bool, *Name, error) {
	if !p.accept("WITH", "OFFSET") {
		return false, nil, nil
	}
	alias, err := p.itemAlias()
	return true, alias, err
}

func (p *parser) table() (From, error) {
	t := &Table{Pos: p.peek().pos}
	var err error
	if t.Parts, err = p.tablePath(); err != nil {
		return nil, err
	}
	if p.is("(") {
		return nil, t.Pos.Unsupported("table function %s", joinNames(t.Parts))
	}
	if p.accept("FOR", "SYSTEM_TIME", "AS", "OF") || p.accept("FOR", "SYSTEM", "TIME", "AS", "OF") {
		if t.AsOf, err = p.expr(); err != nil {
			return nil, err
		}
	}
	if t.Alias, err = p.itemAlias(); err != nil {
		return nil, err
	}
	if t.AsOf == nil && p.accept("FOR", "SYSTEM_TIME", "AS", "OF") {
		if t.AsOf, err = p.expr(); err != nil {
			return nil, err
		}
	}
	t.WithOffset, t.OffsetAlias, err = p.withOffset()
	return t, err
}

// tablePath reads a path whose first component may contain dashes and whose others may begin with digits, which tokens
// cannot tell: it is cut from the source.
func (p *parser) tablePath() ([]Name, error) {
	var parts []Name
	for {
		part, err := p.pathPart(len(parts) == 0)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
		if !p.is(".") {
			return parts, nil
		}
		p.next()
	}
}

func (p *parser) pathPart(first bool) (Name, error) {
	t := p.peek()
	if t.kind == quoted {
		return p.name()
	}
	if t.kind != word && (first || t.kind != integer && t.kind != float) {
		return Name{}, p.unexpected()
	}
	n := t.from
	for n < len(p.source) && (isLetter(p.source[n]) || isDigit(p.source[n]) || p.source[n] == '-') {
		n++
	}
	text := strings.TrimRight(p.source[t.from:n], "-")
	if strings.Contains(text, "--") {
		text = text[:strings.Index(text, "--")]
	}
	return Name{text, t.pos}, p.skipTo(t.from + len(text))
}

// skipTo passes the tokens before a byte offset. Where a number reaches beyond it (the "1.2" of p-1.2d), the rest is cut
// into tokens again from there.
func (p *parser) skipTo(offset int) error {
	for p.peek().kind != end && p.peek().until <= offset {
		p.at++
	}
	t := p.peek()
	if t.from >= offset {
		return nil
	}
	rest, err := lexFrom(p.source, offset, Pos{t.pos.Line, t.pos.Column + offset - t.from})
	p.tokens, p.at = rest, 0
	return err
}

func joinNames(names []Name) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = n.Text
	}
	return strings.Join(texts, ".")
}
