package googlesql

import (
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/localbq/internal/query"
)

// Pos is a place in a statement: line and column from 1, in characters.
type Pos struct{ Line, Column int }

// Errorf is a fault of the statement at p.
func (p Pos) Errorf(format string, args ...any) error {
	return &query.Error{Message: fmt.Sprintf(format, args...), Line: p.Line, Column: p.Column}
}

// Unsupported refuses at p something that BigQuery can do and this service cannot.
func (p Pos) Unsupported(format string, args ...any) error {
	return p.Errorf(query.NotSupported+format, args...)
}

func (p Pos) syntax(format string, args ...any) error {
	return p.Errorf("Syntax error: "+format, args...)
}

type kind uint8

const (
	end    kind = iota
	word        // identifier or keyword, unquoted
	quoted      // identifier in back-quotes
	integer
	float
	str
	bytes
	param  // @name, or ? with empty text
	system // @@name
	punct
)

// token is one token. text is its meaning: an identifier or literal without quotes and escapes, a number or punctuation as
// written.
type token struct {
	kind  kind
	text  string
	pos   Pos
	from  int // byte offsets into the source
	until int
}

// reserved are the words that are never identifiers unless quoted (GoogleSQL reference, "Reserved keywords").
var reserved = wordSet(`ALL AND ANY ARRAY AS ASC ASSERT_ROWS_MODIFIED AT BETWEEN BY CASE CAST COLLATE CONTAINS CREATE CROSS
	CUBE CURRENT DEFAULT DEFINE DESC DISTINCT ELSE END ENUM ESCAPE EXCEPT EXCLUDE EXISTS EXTRACT FALSE FETCH FOLLOWING FOR
	FROM FULL GROUP GROUPING GROUPS HASH HAVING IF IGNORE IN INNER INTERSECT INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT
	LOOKUP MERGE NATURAL NEW NO NOT NULL NULLS OF ON OR ORDER OUTER OVER PARTITION PRECEDING PROTO QUALIFY RANGE RECURSIVE
	RESPECT RIGHT ROLLUP ROWS SELECT SET SOME STRUCT TABLESAMPLE THEN TO TREAT TRUE UNBOUNDED UNION UNNEST USING WHEN WHERE
	WINDOW WITH WITHIN`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// is reports whether the token is that keyword, or that punctuation.
func (t token) is(text string) bool {
	return t.kind == word && strings.EqualFold(t.text, text) || t.kind == punct && t.text == text
}

// reserved reports whether the token is a reserved word.
func (t token) reserved() bool { return t.kind == word && reserved[strings.ToUpper(t.text)] }

// identifier reports whether the token can name something.
func (t token) identifier() bool { return t.kind == quoted || t.kind == word && !t.reserved() }

// String describes the token the way BigQuery's syntax errors do.
func (t token) String() string {
	switch t.kind {
	case end:
		return "end of script"
	case word:
		if t.reserved() {
			return "keyword " + strings.ToUpper(t.text)
		}
		return fmt.Sprintf("identifier %q", t.text)
	case quoted:
		return "identifier `" + t.text + "`"
	case integer:
		return fmt.Sprintf("integer literal %q", t.text)
	case float:
		return fmt.Sprintf("floating point literal %q", t.text)
	case str:
		return fmt.Sprintf("string literal %q", t.text)
	case bytes:
		return fmt.Sprintf("bytes literal %q", t.text)
	case param:
		if t.text == "" {
			return `"?"`
		}
		return `"@"`
	case system:
		return `"@@"`
	}
	return fmt.Sprintf("%q", t.text)
}
