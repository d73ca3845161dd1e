package googlesql

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// literalPrefix is the length of the letters before the quote of a raw or bytes literal (r”, B"", rb”', …); 0 where none
// follows.
func literalPrefix(s string) int {
	for n := 1; n <= 2 && n < len(s); n++ {
		if s[n] != '\'' && s[n] != '"' {
			continue
		}
		switch strings.ToLower(s[:n]) {
		case "r", "b", "rb", "br":
			return n
		}
	}
	return 0
}

// literal reads a string or bytes literal of any of the quoting styles.
func (l *lexer) literal(t *token) error {
	prefix := strings.ToLower(l.take(literalPrefix(l.rest())))
	t.kind = str
	what := "string literal"
	if strings.Contains(prefix, "b") {
		t.kind, what = bytes, "bytes literal"
	}
	quote := l.rest()[:1]
	if strings.HasPrefix(l.rest(), strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
		what = "triple-quoted " + what
	}
	l.at += len(quote)
	body, ok := l.until(quote)
	if !ok {
		return t.pos.syntax("Unclosed %s", what)
	}
	if strings.Contains(prefix, "r") {
		t.text = body
		return nil
	}
	var err error
	t.text, err = unescape(body, t.kind == bytes, t.pos)
	return err
}

// quoted reads an identifier in back-quotes.
func (l *lexer) quoted(t *token) error {
	l.at++
	body, ok := l.until("`")
	if !ok {
		return t.pos.syntax("Unclosed identifier literal")
	}
	if body == "" {
		return t.pos.syntax("Invalid empty identifier")
	}
	t.kind = quoted
	var err error
	t.text, err = unescape(body, false, t.pos)
	return err
}

// until takes everything up to the closing quote, and the quote. A literal in single quotes ends with its line.
func (l *lexer) until(quote string) (string, bool) {
	rest := l.rest()
	for i := 0; i < len(rest); i++ {
		switch {
		case rest[i] == '\\':
			i++
		case rest[i] == '\n' && len(quote) == 1:
			return "", false
		case strings.HasPrefix(rest[i:], quote):
			l.at += i + len(quote)
			return rest[:i], true
		}
	}
	return "", false
}

var simpleEscapes = map[byte]string{
	'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\\': `\`, '?': "?", '"': `"`, '\'': "'",
	'`': "`", '\n': "\n",
}

// unescape resolves the escape sequences of a literal. In a string \x and octal escapes are code points, in bytes they are
// bytes and \u is not allowed.
func unescape(s string, raw bool, pos Pos) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for len(s) > 0 {
		if s[0] != '\\' {
			n := strings.IndexByte(s, '\\')
			if n < 0 {
				n = len(s)
			}
			b.WriteString(s[:n])
			s = s[n:]
			continue
		}
		n, text := escape(s, raw)
		if n == 0 {
			return "", pos.syntax("Illegal escape sequence: %s", firstRunes(s, 2))
		}
		b.WriteString(text)
		s = s[n:]
	}
	return b.String(), nil
}

// escape is the length and the meaning of the escape sequence at the start of s; the length is 0 where it has none.
func escape(s string, raw bool) (int, string) {
	if len(s) < 2 {
		return 0, ""
	}
	if text, ok := simpleEscapes[s[1]]; ok {
		return 2, text
	}
	switch c := s[1]; {
	case c == 'x' || c == 'X':
		return numericEscape(s, 2, 2, 16, raw)
	case c >= '0' && c <= '3':
		return numericEscape(s, 1, 3, 8, raw)
	case c == 'u' && !raw:
		return numericEscape(s, 2, 4, 16, raw)
	case c == 'U' && !raw:
		return numericEscape(s, 2, 8, 16, raw)
	}
	return 0, ""
}

func numericEscape(s string, skip, digits, base int, raw bool) (int, string) {
	n := skip + digits
	if len(s) < n {
		return 0, ""
	}
	v, err := strconv.ParseUint(s[skip:n], base, 32)
	switch {
	case err != nil, s[skip] == '+', s[skip] == '_':
		return 0, ""
	case raw:
		return n, string([]byte{byte(v)})
	case !utf8.ValidRune(rune(v)):
		return 0, ""
	}
	return n, string(rune(v))
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
