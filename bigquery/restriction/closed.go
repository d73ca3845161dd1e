package restriction

import "strings"

// closed reports whether quotes, comments and parentheses of a text close within it, so that nothing around it changes what it
// means and it changes nothing around it but for a comment that ends with the line (GoogleSQL, "Lexical structure").
func closed(s string) bool {
	depth := 0
	for s != "" {
		switch c := s[0]; {
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth < 0 {
				return false
			}
		case c == '\'' || c == '"' || c == '`':
			n := quoted(s)
			if n == 0 {
				return false
			}
			s = s[n:]
			continue
		case c == '#', strings.HasPrefix(s, "--"):
			_, s, _ = strings.Cut(s, "\n")
			continue
		case strings.HasPrefix(s, "/*"):
			_, rest, ended := strings.Cut(s[2:], "*/")
			if !ended {
				return false
			}
			s = rest
			continue
		case c == ';' || c == 0:
			return false
		}
		s = s[1:]
	}
	return depth == 0
}

// quoted is the length of the text or name that s begins with, 0 when it does not end. A backslash takes the next byte with it,
// in raw texts too.
func quoted(s string) int {
	end := s[:1]
	if triple := strings.Repeat(end, 3); end != "`" && strings.HasPrefix(s, triple) {
		end = triple
	}
	for i := len(end); i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case strings.HasPrefix(s[i:], end):
			return i + len(end)
		case s[i] == '\n' && len(end) == 1:
			return 0
		}
	}
	return 0
}
