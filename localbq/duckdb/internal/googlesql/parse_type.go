package googlesql

import "strings"

// typeName reads a type: a name with parameters, ARRAY<T>, STRUCT<…> or RANGE<T>.
func (p *parser) typeName() (*Type, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	t := p.peek()
	typ := &Type{Pos: t.pos, Name: strings.ToUpper(t.text)}
	switch {
	case t.is("STRUCT"):
		p.next()
		return typ, p.members(typ)
	case t.is("ARRAY"), t.is("RANGE"):
		p.next()
		var err error
		typ.Element, err = p.angled()
		return typ, err
	case t.identifier(), t.is("INTERVAL"):
		p.next()
		return typ, p.typeParams(typ)
	}
	return nil, p.unexpected()
}

func (p *parser) typeParams(t *Type) error {
	if !p.accept("(") {
		return nil
	}
	var err error
	t.Params, err = list(p, func() (string, error) {
		if p.peek().kind != integer && !p.is("MAX") {
			return "", p.unexpected()
		}
		return strings.ToUpper(p.next().text), nil
	})
	if err != nil {
		return err
	}
	return p.expect(")")
}

// angled reads < type >.
func (p *parser) angled() (*Type, error) {
	if err := p.expect("<"); err != nil {
		return nil, err
	}
	t, err := p.typeName()
	if err != nil {
		return nil, err
	}
	return t, p.closeAngle()
}

// closeAngle takes one >, also the first half of >>.
func (p *parser) closeAngle() error {
	if t := &p.tokens[p.at]; t.is(">>") {
		*t = token{kind: punct, text: ">", pos: Pos{t.pos.Line, t.pos.Column + 1}, from: t.from + 1, until: t.until}
		return nil
	}
	return p.expect(">")
}

func (p *parser) members(t *Type) error {
	if p.accept("<>") {
		return nil
	}
	if err := p.expect("<"); err != nil {
		return err
	}
	if p.accept(">") {
		return nil
	}
	var err error
	if t.Fields, err = list(p, p.member); err != nil {
		return err
	}
	return p.closeAngle()
}

func (p *parser) member() (TypeField, error) {
	var f TypeField
	// A name is there if a type follows it: not a separator, an angle or a parenthesis.
	if next := p.ahead(1); p.peek().identifier() && (next.kind == word || next.kind == quoted) {
		name, err := p.fieldName()
		if err != nil {
			return f, err
		}
		f.Name = &name
	}
	var err error
	f.Type, err = p.typeName()
	return f, err
}
