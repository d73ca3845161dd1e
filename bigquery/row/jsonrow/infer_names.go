package jsonrow

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// columnName is what a key's column is called. why is "" when it is called like the key.
type columnName struct {
	name     string
	decision Decision
	why      string
}

// nameColumns names the columns of sibling keys. Names are [A-Za-z_][A-Za-z0-9_]*, so that every write method and file
// format takes them, and differ in more than case. They depend on the set of keys alone: keys that can be names keep
// theirs, lower-case ones first; all others are numbered in the order of their bytes. reserved is a name none may have.
func nameColumns(keys []string, reserved string) map[string]columnName {
	taken := map[string]string{} // folded → name
	if reserved != "" {
		taken[table.FoldName(reserved)] = reserved
	}
	out := make(map[string]columnName, len(keys))
	order := slices.Clone(keys)
	slices.SortFunc(order, func(a, b string) int {
		return cmp.Or(cmp.Compare(nameRank(a), nameRank(b)), cmp.Compare(a, b))
	})
	var again []string // keys whose name is another's
	for _, key := range order {
		if !plainName(key) {
			again = append(again, key)
			continue
		}
		if fold := table.FoldName(key); taken[fold] == "" {
			taken[fold] = key
			out[key] = columnName{name: key}
			continue
		}
		again = append(again, key)
	}
	next := map[string]int{} // base → the number to try next
	for _, key := range again {
		out[key] = rename(key, taken, next)
	}
	return out
}

// plainName says whether a key can be a column's name.
func plainName(key string) bool {
	return table.Identifier(key) && len(key) <= table.MaxNameLength && table.ReservedPrefix(key) == ""
}

func nameRank(key string) int {
	switch {
	case !plainName(key):
		return 2
	case key != strings.ToLower(key):
		return 1
	}
	return 0
}

func rename(key string, taken map[string]string, next map[string]int) columnName {
	c := columnName{decision: Renamed, why: refusal(key)}
	base := key
	if plainName(key) {
		base = taken[table.FoldName(key)]
		c.decision, c.why = SameName, fmt.Sprintf("BigQuery takes it for the same name as %q", base)
	} else {
		base = readable(key)
	}
	c.name = base
	for n := max(2, next[base]); taken[table.FoldName(c.name)] != ""; n++ {
		suffix := "_" + strconv.Itoa(n)
		c.name = base[:min(len(base), table.MaxNameLength-len(suffix))] + suffix
		next[base] = n + 1
	}
	taken[table.FoldName(c.name)] = c.name
	return c
}

// refusal says why a key cannot be a column's name.
func refusal(key string) string {
	switch p := table.ReservedPrefix(key); {
	case key == "":
		return "the key is empty"
	case p != "":
		return "BigQuery keeps names that begin with " + p + " for itself"
	case len(key) > table.MaxNameLength:
		return fmt.Sprintf("the key is longer than %d characters", table.MaxNameLength)
	}
	return "column names are letters, digits and underscores"
}

// readable makes a name of a key that is none.
func readable(key string) string {
	if key == "" {
		return "empty"
	}
	var b strings.Builder
	rest := key
	if len(key) > 1 && (key[0] == '+' || key[0] == '-') && alphanumeric(rune(key[1])) {
		b.WriteString(map[byte]string{'+': "plus_", '-': "minus_"}[key[0]])
		rest = key[1:]
	}
	letters := strings.ContainsFunc(rest, alphanumeric)
	for i, r := range rest {
		switch {
		case alphanumeric(r):
			if i == 0 && b.Len() == 0 && r <= '9' {
				b.WriteByte('_')
			}
			b.WriteRune(r)
		case !letters && r >= utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsNumber(r)):
			fmt.Fprintf(&b, "u%04x", r) // nothing of the key would be left otherwise
		default:
			b.WriteByte('_')
		}
	}
	name := b.String()
	if table.ReservedPrefix(name) != "" {
		name = "key" + name
	}
	return name[:min(len(name), table.MaxNameLength)]
}

func alphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// keyPrefix begins the description of a column whose key is not its name, so that a reader of the table, and DescribedKeys,
// find the key.
const keyPrefix = "JSON key "

func describeKey(key string) string { return keyPrefix + string(row.AppendQuoted(nil, key)) }

// DescribedKeys finds the JSON keys of the columns of a table that was made from an inferred schema: where a column's name
// is not its key, its description tells the key. It answers nil when all are the same.
func DescribedKeys(s *table.Schema) *Keys {
	k, differs := describedKeys(s.Fields)
	if !differs {
		return nil
	}
	return k
}

func describedKeys(fields []table.Field) (k *Keys, differs bool) {
	k = &Keys{}
	for i := range fields {
		f := &fields[i]
		key := f.Name
		if quoted, ok := strings.CutPrefix(f.Description, keyPrefix); ok {
			s := scanner{data: []byte(quoted)}
			if sp, ok := s.quoted(); ok {
				key = string(unescape(nil, s.data[sp.start:sp.end]))
				differs = true
			}
		}
		var members *Keys
		if f.Type == table.Struct {
			var inner bool
			members, inner = describedKeys(f.Fields)
			differs = differs || inner
		}
		k.add(key, members)
	}
	return k, differs
}

// quoted reads a string that is all there is.
func (s *scanner) quoted() (span, bool) {
	if s.peek() != '"' {
		return span{}, false
	}
	sp, ok := s.str()
	return sp, ok && s.pos == len(s.data)
}
