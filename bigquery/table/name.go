package table

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// reservedPrefixes may not begin a column name, in any case (BigQuery documentation, "Column names").
var reservedPrefixes = []string{"_TABLE_", "_FILE_", "_PARTITION", "_ROW_TIMESTAMP", "__ROOT__", "_COLIDENTIFIER",
	"_CHANGE_SEQUENCE_NUMBER", "_CHANGE_TYPE", "_CHANGE_TIMESTAMP"}

// ReservedPrefix returns the reserved prefix that a column name begins with, "" when there is none.
func ReservedPrefix(name string) string {
	for _, p := range reservedPrefixes {
		if len(name) >= len(p) && strings.EqualFold(name[:len(p)], p) {
			return p
		}
	}
	return ""
}

// flexiblePunctuation is what flexible column names hold beside letters, marks, numbers, dashes and connectors (BigQuery
// documentation, "Flexible column names").
const flexiblePunctuation = " \t&%=+:'<>#|"

// CheckName reports why s cannot be a column's name, nil when it can.
func CheckName(s string) error {
	if s == "" {
		return errors.New("is empty")
	}
	if !utf8.ValidString(s) {
		return errors.New("is not valid UTF-8")
	}
	if n := utf8.RuneCountInString(s); n > MaxNameLength {
		return fmt.Errorf("has %d characters: expected at most %d", n, MaxNameLength)
	}
	if p := ReservedPrefix(s); p != "" {
		return fmt.Errorf("%q begins with %s, which BigQuery keeps for itself", s, p)
	}
	for _, r := range s {
		if !nameRune(r) {
			return fmt.Errorf("%q has the character %q, which BigQuery refuses", s, r)
		}
	}
	return nil
}

func nameRune(r rune) bool {
	if r < utf8.RuneSelf {
		return identifierRune(r) || r == '-' || strings.ContainsRune(flexiblePunctuation, r)
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Pc, unicode.Pd, unicode.Zs)
}

func identifierRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
}

// Identifier says whether a column name is [A-Za-z_][A-Za-z0-9_]*: one that every write method, file format and SQL
// statement takes as it is. Other names are called flexible.
func Identifier(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		if !identifierRune(rune(s[i])) {
			return false
		}
	}
	return true
}
