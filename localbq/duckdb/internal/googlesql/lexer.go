package googlesql

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// lexer cuts a statement into tokens.
type lexer struct {
	source  string
	at      int // byte offset
	line    int
	counted int // byte offset up to which columns are counted
	column  int // column of counted
	last    token
}

// lex answers the statement's tokens; the last one is the end.
func lex(source string) ([]token, error) {
	if !utf8.ValidString(source) {
		return nil, Pos{1, 1}.syntax("The query is not valid UTF-8")
	}
	l := &lexer{source: source, line: 1, column: 1}
	return l.all()
}

// lexFrom is lex for what begins at a byte offset, whose place is pos, right behind a name.
func lexFrom(source string, offset int, pos Pos) ([]token, error) {
	l := &lexer{source: source, at: offset, counted: offset, line: pos.Line, column: pos.Column}
	l.last = token{kind: word, until: offset}
	return l.all()
}

func (l *lexer) all() ([]token, error) {
	var tokens []token
	for {
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
		l.last = t
		if t.kind == end {
			return tokens, nil
		}
	}
}

// pos is the place of the lexer, counted on from the last call.
func (l *lexer) pos() Pos {
	for _, r := range l.source[l.counted:l.at] {
		if r == '\n' {
			l.line++
			l.column = 1
		} else {
			l.column++
		}
	}
	l.counted = l.at
	return Pos{l.line, l.column}
}

func (l *lexer) rest() string { return l.source[l.at:] }

func (l *lexer) next() (token, error) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	t := token{pos: l.pos(), from: l.at}
	err := l.read(&t)
	t.until = l.at
	return t, err
}

// skip passes white space and comments.
func (l *lexer) skip() error {
	for l.at < len(l.source) {
		rest := l.rest()
		switch {
		case rest[0] == '#', strings.HasPrefix(rest, "--"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			l.at += n
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return l.pos().syntax("Unclosed comment")
			}
			l.at += n + 4
		default:
			r, n := utf8.DecodeRuneInString(rest)
			if !unicode.IsSpace(r) {
				return nil
			}
			l.at += n
		}
	}
	return nil
}

func (l *lexer) read(t *token) error {
	rest := l.rest()
	if rest == "" {
		return nil // the zero kind is the end
	}
	switch c := rest[0]; {
	case c == '`':
		return l.quoted(t)
	case c == '\'' || c == '"' || literalPrefix(rest) > 0:
		return l.literal(t)
	case isDigit(c), c == '.' && len(rest) > 1 && isDigit(rest[1]) && !l.afterName():
		return l.number(t)
	case isLetter(c):
		t.kind, t.text = word, l.take(wordLength(rest))
		return nil
	case c == '@':
		return l.parameter(t)
	case c == '?':
		t.kind = param
		l.at++
		return nil
	}
	return l.punctuation(t)
}

// afterName reports whether the lexer is right behind a name, so that a dot goes on with a path: d.2024_events.
func (l *lexer) afterName() bool {
	return l.last.until == l.at && (l.last.kind == word || l.last.kind == quoted || l.last.kind == integer)
}

func (l *lexer) take(n int) string {
	s := l.source[l.at : l.at+n]
	l.at += n
	return s
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func wordLength(s string) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || isDigit(s[n])) {
		n++
	}
	return n
}

func (l *lexer) parameter(t *token) error {
	t.kind = param
	if strings.HasPrefix(l.rest(), "@@") {
		t.kind = system
		l.at++
	}
	l.at++
	if strings.HasPrefix(l.rest(), "`") {
		k := t.kind
		err := l.quoted(t)
		t.kind = k
		return err
	}
	t.text = l.take(wordLength(l.rest()))
	if t.text == "" || isDigit(t.text[0]) {
		return t.pos.syntax(`Unexpected "@"`)
	}
	return nil
}

var longPunctuation = []string{"<=", ">=", "<>", "!=", "||", "<<", ">>", "=>", "|>"}

func (l *lexer) punctuation(t *token) error {
	t.kind = punct
	for _, p := range longPunctuation {
		if strings.HasPrefix(l.rest(), p) {
			t.text = l.take(2)
			return nil
		}
	}
	r, n := utf8.DecodeRuneInString(l.rest())
	if !strings.ContainsRune("()[]{},.;:=<>+-*/&|^~", r) {
		return t.pos.syntax("Illegal input character %q", r)
	}
	t.text = l.take(n)
	return nil
}

// number reads an integer in decimal or hexadecimal, or a floating point number.
func (l *lexer) number(t *token) error {
	rest := l.rest()
	if n := hexLength(rest); n > 0 {
		t.kind, t.text = integer, l.take(n)
		return nil
	}
	n := digits(rest)
	t.kind = integer
	if n < len(rest) && rest[n] == '.' {
		t.kind = float
		n += 1 + digits(rest[n+1:])
	}
	if e := exponentLength(rest[n:]); e > 0 {
		t.kind = float
		n += e
	}
	t.text = l.take(n)
	return nil
}

func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

func hexLength(s string) int {
	if len(s) < 3 || s[0] != '0' || s[1] != 'x' && s[1] != 'X' {
		return 0
	}
	n := 2
	for n < len(s) && (isDigit(s[n]) || s[n]|0x20 >= 'a' && s[n]|0x20 <= 'f') {
		n++
	}
	if n == 2 {
		return 0
	}
	return n
}

func exponentLength(s string) int {
	if s == "" || s[0] != 'e' && s[0] != 'E' {
		return 0
	}
	n := 1
	if n < len(s) && (s[n] == '+' || s[n] == '-') {
		n++
	}
	d := digits(s[n:])
	if d == 0 {
		return 0
	}
	return n + d
}
