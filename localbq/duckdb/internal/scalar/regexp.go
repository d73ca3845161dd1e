package scalar

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// patterns are compiled expressions. GoogleSQL and Go both mean RE2.
var patterns struct {
	sync.Mutex
	compiled map[string]*regexp.Regexp
}

const maxPatterns = 256

func pattern(text string) (*regexp.Regexp, error) {
	patterns.Lock()
	defer patterns.Unlock()
	if p := patterns.compiled[text]; p != nil {
		return p, nil
	}
	p, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("Cannot parse regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if len(patterns.compiled) >= maxPatterns || patterns.compiled == nil {
		patterns.compiled = map[string]*regexp.Regexp{}
	}
	patterns.compiled[strings.Clone(text)] = p
	return p, nil
}

func RegexpContains(s, expression string) (bool, error) {
	p, err := pattern(expression)
	if err != nil {
		return false, err
	}
	return p.MatchString(s), nil
}

// RegexpExtract is the n-th match from a position on, or its group where the expression has one; false where there is none.
func RegexpExtract(s, expression string, position, n int64) (string, bool, error) {
	p, err := pattern(expression)
	switch {
	case err != nil:
		return "", false, err
	case p.NumSubexp() > 1:
		return "", false, fmt.Errorf("Regular expression passed to REGEXP_EXTRACT must not have more than 1 capturing group")
	case position < 1:
		return "", false, fmt.Errorf("Position must be positive: %d", position)
	case n < 1:
		return "", false, fmt.Errorf("Occurrence must be positive: %d", n)
	case position > int64(utf8.RuneCountInString(s))+1:
		return "", false, nil
	}
	s = s[runeOffset(s, position-1):]
	matches := p.FindAllStringSubmatchIndex(s, int(min(n, int64(len(s))+1)))
	if int64(len(matches)) < n {
		return "", false, nil
	}
	text, ok := group(s, matches[n-1])
	return text, ok, nil
}

// group is the capturing group of a match, or the whole of it.
func group(s string, match []int) (string, bool) {
	from, to := match[0], match[1]
	if len(match) > 2 {
		from, to = match[2], match[3]
	}
	if from < 0 {
		return "", false
	}
	return s[from:to], true
}

func RegexpExtractAll(s, expression string) ([]string, error) {
	p, err := pattern(expression)
	if err != nil {
		return nil, err
	}
	if p.NumSubexp() > 1 {
		return nil, fmt.Errorf("Regular expression passed to REGEXP_EXTRACT_ALL must not have more than 1 capturing group")
	}
	out := []string{}
	for _, m := range p.FindAllStringSubmatchIndex(s, -1) {
		text, _ := group(s, m)
		out = append(out, text)
	}
	return out, nil
}

// RegexpReplace replaces all matches; \1 to \9 are groups, \0 the match, \\ a backslash.
func RegexpReplace(s, expression, with string) (string, error) {
	p, err := pattern(expression)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	at := 0
	for _, m := range p.FindAllStringSubmatchIndex(s, -1) {
		out.WriteString(s[at:m[0]])
		if err := rewrite(&out, s, m, with); err != nil {
			return "", err
		}
		at = m[1]
	}
	out.WriteString(s[at:])
	return out.String(), nil
}

func rewrite(out *strings.Builder, s string, m []int, with string) error {
	for i := 0; i < len(with); i++ {
		if with[i] != '\\' {
			out.WriteByte(with[i])
			continue
		}
		i++
		switch {
		case i < len(with) && with[i] == '\\':
			out.WriteByte('\\')
		case i < len(with) && with[i] >= '0' && with[i] <= '9' && 2*int(with[i]-'0') < len(m):
			if k := 2 * int(with[i]-'0'); m[k] >= 0 {
				out.WriteString(s[m[k]:m[k+1]])
			}
		default:
			return fmt.Errorf("Invalid REGEXP_REPLACE pattern: %s", with)
		}
	}
	return nil
}
