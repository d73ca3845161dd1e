package compile

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// env has tables d.t, d.events and a view d.v, and parameters.
func env() Env {
	tables := map[string]*query.Table{
		"p:d.t": {Schema: &schema.Schema{Fields: []*schema.Field{
			{Name: "id", Type: schema.Int64}, {Name: "name", Type: schema.String}, {Name: "tags", Type: schema.String, Mode: schema.Repeated},
			{Name: "items", Type: schema.Struct, Mode: schema.Repeated, Fields: []*schema.Field{{Name: "sku", Type: schema.String}, {Name: "price", Type: schema.Float64}}},
			{Name: "j", Type: schema.JSON}, {Name: "created", Type: schema.Timestamp}, {Name: "n", Type: schema.Numeric},
			{Name: "s", Type: schema.Struct, Fields: []*schema.Field{{Name: "x", Type: schema.Int64}, {Name: "y", Type: schema.Struct, Fields: []*schema.Field{{Name: "z", Type: schema.Bytes}}}}},
			{Name: "p", Type: schema.Timestamp, TimestampPrecision: 12},
		}}},
		"p:d.v": {View: "SELECT id FROM t"},
		"p:d.w": {View: "SELECT * FROM w"},
	}
	id := int64(0)
	return Env{
		Project: "p", DefaultProject: "p", DefaultDataset: "d", Now: time.Unix(0, 0), User: "me",
		Parameters: []query.Parameter{{Name: "a", Type: &schema.Field{Type: schema.String}, Value: query.Value{Scalar: "'; DROP TABLE x; --"}}},
		Table: func(ref query.Ref, _ time.Time) (*query.Table, error) {
			if t := tables[ref.String()]; t != nil {
				copied := *t
				copied.Ref = ref
				return &copied, nil
			}
			return nil, errors.New("no such table")
		},
		Scan:    func(*query.Table) int64 { id++; return id },
		Instant: func(string) (time.Time, error) { return time.Unix(0, 0), nil },
	}
}

func TestReadColumns(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT COUNT(*) FROM t":                          "",
		"SELECT id FROM t WHERE s.y.z IS NULL":            "c0 c7_1_0",
		"SELECT s FROM t":                                 "c7",
		"SELECT s.y FROM t AS t ORDER BY name":            "c7_1 c1",
		"SELECT i.sku FROM t, UNNEST(items) AS i":         "c3",
		"SELECT a.id, b.name FROM t a JOIN t b USING(id)": "c0 c1",
		"SELECT * EXCEPT (p) FROM t":                      "refused",
		"SELECT id FROM v":                                "c0",
	} {
		plan, err := Statement(sql, env())
		if err != nil {
			if want != "refused" {
				t.Errorf("%s: %v", sql, err)
			}
			continue
		}
		var names []string
		for _, s := range plan.Scans[1] {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s reads %q, want %q\n%s", sql, got, want, plan.SQL)
		}
	}
}

func TestViewsThatNeverEnd(t *testing.T) {
	_, err := Statement("SELECT * FROM w", env())
	if err == nil || !strings.Contains(err.Error(), "circular reference of views") {
		t.Errorf("got %v", err)
	}
}

func TestHostileDepth(t *testing.T) {
	nested := "SELECT 1"
	for range 60 {
		nested = "SELECT COUNT(*), (" + nested + ") FROM t HAVING COUNT(*) > 0 ORDER BY 1"
		nested = strings.Replace(nested, "SELECT COUNT(*), (", "SELECT MAX(id) + (", 1)
	}
	for name, sql := range map[string]string{
		"subscripts": "SELECT " + strings.Repeat("j[INT64(", 80) + "j" + strings.Repeat(")]", 80) + " FROM t",
		"subqueries": nested,
	} {
		_, err := Statement(sql, env())
		if err == nil || !strings.Contains(err.Error(), "too complex") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRestriction(t *testing.T) {
	columns := &schema.Schema{Fields: []*schema.Field{{Name: "a", Type: schema.Int64}, {Name: "b", Type: schema.Struct, Fields: []*schema.Field{{Name: "c", Type: schema.String}}}}}
	for text, want := range map[string]string{
		"a > 1":                       "ok",
		"b.c LIKE 'x%' AND a IS NULL": "ok",
		"TRUE":                        "ok",
		"a":                           "A row restriction should return type BOOL, but returns INT64 at [1:1]",
		"x > 1":                       "Unrecognized name: x at [1:1]",
		"a > ":                        "Syntax error: Unexpected end of script at [1:5]",
		"a > 1; DROP TABLE t":         `Syntax error: Expected end of input but got ";" at [1:6]`,
		"COUNT(*) > 1":                "Aggregate function COUNT not allowed in a row restriction at [1:1]",
		"a IN (SELECT 1)":             "Subqueries are not allowed in a row restriction at [1:7]",
		"ROW_NUMBER() OVER () = 1":    "Analytic function not allowed in a row restriction at [1:1]",
		"EXISTS (SELECT 1)":           "Subqueries are not allowed in a row restriction at [1:9]",
		"a = @p":                      "Query parameter 'p' not found at [1:5]",
	} {
		_, _, err := Restriction(text, columns, Env{})
		got := "ok"
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// words that may stand in a plan outside of text literals: DuckDB's grammar, and what the templates of this package hold.
func allowed() map[string]bool {
	out := words(`SELECT AS FROM WHERE GROUP BY HAVING QUALIFY ORDER LIMIT OFFSET WITH RECURSIVE UNION ALL INTERSECT EXCEPT
		DISTINCT JOIN CROSS INNER LEFT RIGHT FULL ON LATERAL AND OR NOT IN IS NULL TRUE FALSE UNKNOWN LIKE ESCAPE CASE WHEN THEN
		ELSE END CAST EXISTS ARRAY ASC DESC NULLS FIRST LAST OVER PARTITION ROWS RANGE BETWEEN UNBOUNDED PRECEDING FOLLOWING CURRENT
		ROW ROLLUP CUBE GROUPING SETS FILTER IGNORE RESPECT TRY COALESCE lambda x BIGINT DOUBLE BOOLEAN VARCHAR BLOB DATE TIME
		TIMESTAMP INTERVAL STRUCT DECIMAL DISTINCT FROM bq_scan json_extract json_extract_string json_value json_valid
		struct_extract struct_pack list_extract list_slice list_transform make_timestamp unnest generate_subscripts list
		flatten array_to_string count quantile_disc len bq_json_elements bq_json_strings bq_offset bq_ordinal bq_safe_offset
		bq_safe_ordinal bq_interval bq_interval_text bq_bignumeric bq_bignumeric_float64 bq_format bq_to_json bq_interval_parts chr replace`)
	tables := []map[string][]signature{signatures, aggregates, analytics}
	for _, table := range tables {
		for _, forms := range table {
			for _, s := range forms {
				for _, w := range word.FindAllString(stripped.ReplaceAllString(s.template, " "), -1) {
					out[w], out[strings.Replace(w, "bq_", "bqs_", 1)] = true, true
				}
			}
		}
	}
	for _, template := range casts {
		for _, w := range word.FindAllString(template, -1) {
			out[w], out[strings.Replace(w, "bq_", "bqs_", 1)] = true, true
		}
	}
	return out
}

var (
	word     = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	stripped = regexp.MustCompile(`'(?:[^']|'')*'`)
	ours     = regexp.MustCompile(`^(t\d+|c\d+(_\d+)*|_\d*)$`)
)

// FuzzQuery holds that nothing of a statement's text reaches a plan but as a text literal: outside of those a plan is words
// of this package's own.
func FuzzQuery(f *testing.F) {
	files, err := filepath.Glob("../../testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal("no statements", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for block := range strings.SplitSeq(string(raw), "\n\n") {
			sql, _, _ := strings.Cut(block, "\n----")
			f.Add(sql)
		}
	}
	for _, sql := range []string{
		"SELECT 1 AS `x\"; DROP TABLE t; --`", "SELECT `id` AS `a b`, `name` FROM `p`.`d`.`t` AS `a\"b`", "SELECT @a", "SELECT 'it''s', '\\x00', \"'\"",
		"SELECT STRUCT(1 AS `c0\"`).`c0\"`", "SELECT j.`a\"b`, j['c\\'d'], JSON_VALUE(j, '$.a\\'b') FROM t", "WITH `t1` AS (SELECT 1 AS `c9`) SELECT `c9` FROM `t1`",
	} {
		f.Add(sql)
	}
	known := allowed()
	f.Fuzz(func(t *testing.T, sql string) {
		var plan *Plan
		var err error
		hostile.Proportional(t, len(sql), 64<<10, 8<<20, func() { plan, err = Statement(sql, env()) })
		if err != nil {
			return
		}
		bare := stripped.ReplaceAllString(plan.SQL, " ")
		if strings.ContainsAny(bare, "'\";\x00") || strings.Contains(bare, "--") || strings.Contains(bare, "/*") {
			t.Fatalf("%q\nis planned as %s", sql, plan.SQL)
		}
		for _, w := range word.FindAllString(bare, -1) {
			if !known[w] && !ours.MatchString(w) {
				t.Fatalf("%q\nis planned with %q: %s", sql, w, plan.SQL)
			}
		}
	})
}

// FuzzRestriction holds the same of row restrictions, and that one costs what its text is long.
func FuzzRestriction(f *testing.F) {
	for _, text := range []string{
		"id > 100 AND name = 'x'", "s.x IN (1, 2, NULL) OR s.y.z IS NOT NULL", "created >= TIMESTAMP '2024-01-01' AND n < 1.5", "'it''s\\'' = name", "name LIKE '%\\\\%'",
		"JSON_VALUE(j, '$.a') = \"b\"", "EXISTS(SELECT 1)", "COUNT(*) > 1", "((((id))))", "tags[OFFSET(0)] = 'a'", "`id` = 1 -- x", "id = 1; DROP TABLE t", "CASE WHEN id = 1 THEN TRUE END",
	} {
		f.Add(text)
	}
	columns := &schema.Schema{Fields: []*schema.Field{
		{Name: "id", Type: schema.Int64}, {Name: "name", Type: schema.String}, {Name: "tags", Type: schema.String, Mode: schema.Repeated},
		{Name: "j", Type: schema.JSON}, {Name: "created", Type: schema.Timestamp}, {Name: "n", Type: schema.Numeric}, {Name: `quo"ted`, Type: schema.Date},
		{Name: "s", Type: schema.Struct, Fields: []*schema.Field{{Name: "x", Type: schema.Int64}, {Name: "y", Type: schema.Struct, Fields: []*schema.Field{{Name: "z", Type: schema.Bytes}}}}},
	}}
	known := allowed()
	f.Fuzz(func(t *testing.T, text string) {
		hostile.Proportional(t, len(text), 16<<10, 4<<20, func() {
			sql, _, err := Restriction(text, columns, env())
			if err != nil {
				return
			}
			bare := stripped.ReplaceAllString(sql, " ")
			if strings.ContainsAny(bare, "'\";\x00") || strings.Contains(bare, "--") || strings.Contains(bare, "/*") {
				t.Fatalf("%q\nis %s", text, sql)
			}
			for _, w := range word.FindAllString(bare, -1) {
				if !known[w] && !ours.MatchString(w) {
					t.Fatalf("%q\nis made with %q: %s", text, w, sql)
				}
			}
		})
	})
}
