package compile

import (
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
)

// jsonPart is a path into a JSON value, so that a.b.c takes the value apart once.
type jsonPart struct{ base, path string }

// jsonStep is the member of that key of a JSON value.
func (v value) jsonStep(key string) value {
	if strings.ContainsAny(key, `"\`) {
		// A JSON pointer has an escape for everything that means something in it.
		pointer := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		return expr(v.pos, jsonType, []value{v}, "CAST(json_extract(%s, %s) AS VARCHAR)", v.sql, quote(pointer))
	}
	return v.jsonPath(`."` + key + `"`)
}

// jsonIndex is the element at an index of a JSON value.
func (v value) jsonIndex(i int64) value { return v.jsonPath("[" + strconv.FormatInt(i, 10) + "]") }

func (v value) jsonPath(step string) value {
	part := jsonPart{v.sql, "$"}
	if v.json != nil {
		part = *v.json
	}
	part.path += step
	out := expr(v.pos, jsonType, []value{v}, "CAST(json_extract(%s, %s) AS VARCHAR)", part.base, quote(part.path))
	out.json = &part
	return out
}

// duckPath turns a JSONPath of GoogleSQL into one of DuckDB's: $, .key, ."key", ['key'] and [index]. Lax mode and
// wildcards are refused.
func duckPath(path string, pos googlesql.Pos) (string, error) {
	rest, ok := strings.CutPrefix(path, "$")
	if !ok {
		return "", pos.Errorf("JSONPath must start with '$'")
	}
	var out strings.Builder
	out.WriteByte('$')
	for rest != "" {
		step, n := jsonStep(rest)
		if n == 0 {
			return "", pos.Errorf("Unsupported operator in JSONPath: %s", path)
		}
		out.WriteString(step)
		rest = rest[n:]
	}
	return out.String(), nil
}

// jsonStep is the first step of a JSONPath in DuckDB's form and its length; 0 where there is none.
func jsonStep(s string) (string, int) {
	switch {
	case strings.HasPrefix(s, "['"), strings.HasPrefix(s, `["`):
		end := strings.Index(s, s[1:2]+"]")
		if end <= 2 || strings.ContainsAny(s[2:end], `"\`) {
			return "", 0
		}
		return `."` + s[2:end] + `"`, end + 2
	case strings.HasPrefix(s, "["):
		end := strings.IndexByte(s, ']')
		if end < 2 {
			return "", 0
		}
		if _, err := strconv.ParseUint(s[1:end], 10, 31); err != nil {
			return "", 0
		}
		return s[:end+1], end + 1
	case strings.HasPrefix(s, `."`):
		end := strings.IndexByte(s[2:], '"')
		if end < 0 || strings.Contains(s[2:2+end], `\`) {
			return "", 0
		}
		return s[:end+3], end + 3
	case strings.HasPrefix(s, "."):
		end := 1
		for end < len(s) && !strings.ContainsRune(`.[`, rune(s[end])) {
			end++
		}
		if end == 1 || strings.ContainsAny(s[1:end], `"\*'`) {
			return "", 0
		}
		return `."` + s[1:end] + `"`, end
	}
	return "", 0
}
