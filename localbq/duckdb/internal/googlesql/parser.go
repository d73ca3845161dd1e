package googlesql

import (
	"strings"
)

// Parse reads one statement, which must be a query.
func Parse(source string) (*Query, error) {
	p, err := newParser(source)
	if err != nil {
		return nil, err
	}
	if err := p.statement(); err != nil {
		return nil, err
	}
	q, err := p.query()
	if err != nil {
		return nil, err
	}
	return q, p.finish()
}

// ParseExpression reads one expression, as in a row restriction or a column's default.
func ParseExpression(source string) (Expr, error) {
	p, err := newParser(source)
	if err != nil {
		return nil, err
	}
	x, err := p.expr()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != end {
		return nil, t.pos.syntax("Expected end of input but got %v", t)
	}
	return x, nil
}

// maxNesting bounds the depth of a statement, so that a hostile one cannot exhaust the stack.
const maxNesting = 200

type parser struct {
	source  string
	tokens  []token
	at      int
	params  int // ? seen so far
	nesting int
	closers []int // see closing
}

func newParser(source string) (*parser, error) {
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	return &parser{source: source, tokens: tokens}, nil
}

// statements are the first words of statements that are no queries.
var statements = wordSet(`ALTER ASSERT BEGIN BREAK CALL CLONE COMMIT CONTINUE CREATE DECLARE DEFINE DELETE DESCRIBE DROP EXECUTE
	EXPLAIN EXPORT GRANT IF INSERT ITERATE LEAVE LOAD LOOP MERGE RAISE RENAME REPEAT RETURN REVOKE ROLLBACK SET SHOW
	START TRUNCATE UNDROP UPDATE WHILE`)

func (p *parser) statement() error {
	t := p.peek()
	switch {
	case t.kind == word && statements[strings.ToUpper(t.text)]:
		return t.pos.Unsupported("%s statements", strings.ToUpper(t.text))
	case t.is("SELECT"), t.is("WITH"), t.is("("):
		return nil
	case t.is("FROM"):
		return t.pos.Unsupported("pipe syntax")
	}
	return p.unexpected()
}

func (p *parser) peek() token { return p.tokens[p.at] }

// ahead is the n-th token after the next one.
func (p *parser) ahead(n int) token { return p.tokens[min(p.at+n, len(p.tokens)-1)] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != end {
		p.at++
	}
	return t
}

// is reports whether the next tokens are these.
func (p *parser) is(texts ...string) bool {
	for i, text := range texts {
		if !p.ahead(i).is(text) {
			return false
		}
	}
	return true
}

// accept takes the tokens if they are next.
func (p *parser) accept(texts ...string) bool {
	if !p.is(texts...) {
		return false
	}
	p.at += len(texts)
	return true
}

func (p *parser) expect(texts ...string) error {
	for _, text := range texts {
		if p.accept(text) {
			continue
		}
		want := `"` + text + `"`
		if isLetter(text[0]) {
			want = "keyword " + text
		}
		return p.peek().pos.syntax("Expected %s but got %v", want, p.peek())
	}
	return nil
}

func (p *parser) unexpected() error { return p.peek().pos.syntax("Unexpected %v", p.peek()) }

// enter and leave bracket whatever can hold itself.
func (p *parser) enter() error {
	if p.nesting++; p.nesting > maxNesting {
		return p.peek().pos.Unsupported("statements nested more than %d levels deep", maxNesting)
	}
	return nil
}

func (p *parser) leave() { p.nesting-- }

// maxRow bounds what stands side by side and is one tree all the same: a + b + c is (a + b) + c. Much more is more than DuckDB takes.
const maxRow = 4000

// another counts what has been read of a row.
func (p *parser) another(n *int) error {
	if *n++; *n >= maxRow {
		return p.peek().pos.Unsupported("more than %d operators, joins or set operations in a row", maxRow)
	}
	return nil
}

// name reads an identifier.
func (p *parser) name() (Name, error) {
	t := p.peek()
	if !t.identifier() {
		return Name{}, p.unexpected()
	}
	p.at++
	return Name{t.text, t.pos}, nil
}

// fieldName reads the identifier after a dot, where keywords are names too.
func (p *parser) fieldName() (Name, error) {
	t := p.peek()
	if t.kind != word && t.kind != quoted {
		return Name{}, p.unexpected()
	}
	p.at++
	return Name{t.text, t.pos}, nil
}

// alias reads [AS] name; nil where there is none.
func (p *parser) alias() (*Name, error) {
	if p.accept("AS") {
		n, err := p.name()
		return &n, err
	}
	if p.peek().identifier() {
		n, err := p.name()
		return &n, err
	}
	return nil, nil
}

// list reads one or more items between commas.
func list[T any](p *parser, item func() (T, error)) ([]T, error) {
	var out []T
	for {
		x, err := item()
		if err != nil {
			return nil, err
		}
		out = append(out, x)
		if !p.accept(",") {
			return out, nil
		}
	}
}

// parenthesised reads ( what ).
func parenthesised[T any](p *parser, what func() (T, error)) (T, error) {
	var zero T
	if err := p.expect("("); err != nil {
		return zero, err
	}
	x, err := what()
	if err != nil {
		return zero, err
	}
	return x, p.expect(")")
}

func (p *parser) exprs() ([]Expr, error) { return list(p, p.expr) }
func (p *parser) names() ([]Name, error) { return list(p, p.name) }
