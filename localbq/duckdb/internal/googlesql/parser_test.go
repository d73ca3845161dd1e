package googlesql

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
	"github.com/millrace-dev/millrace/localbq/internal/query"
)

// accepted are forms that newcomers type, one statement a line.
const accepted = `SELECT 1
SELECT 1;
SELECT a, b AS c, t.d e, t.* EXCEPT (x, y) REPLACE (1 AS z), * FROM t
SELECT DISTINCT a FROM p-1.d.t, ` + "`my-project.d`.t2, `p.d.t3` AS u" + `
SELECT * FROM my-project-123.dataset.2024_table
SELECT * FROM d.t FOR SYSTEM_TIME AS OF TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 1 HOUR) AS x
SELECT x FROM t, UNNEST(t.items) AS i WITH OFFSET AS o, t.tags tag WITH OFFSET
SELECT * FROM t LEFT JOIN UNNEST(items) JOIN u USING (a, b) FULL OUTER JOIN (SELECT 1 AS a) ON t.a = u.a CROSS JOIN v
SELECT * FROM ((SELECT 1 AS a) AS x JOIN y ON x.a = y.a)
SELECT * FROM (((SELECT 1) UNION ALL (SELECT 2)) LIMIT 1) AS t
WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b ORDER BY 1 DESC NULLS LAST, x LIMIT 10 OFFSET 5
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r
SELECT 1 UNION ALL SELECT 2 UNION ALL (SELECT 3 ORDER BY 1)
SELECT (SELECT 1), ((SELECT 1) + 1), EXISTS(SELECT 1), ARRAY(SELECT x FROM t), x IN (SELECT 1), x NOT IN ((SELECT 1), 2), x IN UNNEST([1, 2])
SELECT a + b * -c / d || e, NOT a AND b OR c IS NOT NULL, a IS DISTINCT FROM b, a BETWEEN 1 AND 2 AND c, a NOT LIKE '%x' , a LIKE ANY ('x', 'y')
SELECT a[0], a[OFFSET(1)].b.c[SAFE_ORDINAL(2)], f(x).y, (a).b, @p[0], j['k'].l
SELECT CASE WHEN a THEN 1 ELSE 2 END, CASE x WHEN 1 THEN 'a' WHEN 2 THEN 'b' END, IF(a, b, c), LEFT('abc', 2)
SELECT CAST(a AS STRING), SAFE_CAST(a AS ARRAY<STRUCT<x INT64, y ARRAY<STRING>>>), CAST(a AS NUMERIC(10, 2)), CAST(a AS STRING FORMAT 'YYYY')
SELECT EXTRACT(DAY FROM x AT TIME ZONE 'UTC'), EXTRACT(WEEK(MONDAY) FROM d), DATE_TRUNC(d, MONTH), INTERVAL '1-2' YEAR TO MONTH
SELECT [1, 2], ARRAY<INT64>[], ARRAY[1], STRUCT(1 AS a, b), STRUCT<a INT64, STRING>(1, 'x'), (1, 2), STRUCT()
SELECT DATE '2020-01-01', TIMESTAMP "2020-01-01 00:00:00+00", NUMERIC '1.5', JSON '{"a": 1}', RANGE<DATE> '[2020-01-01, UNBOUNDED)'
SELECT r'a\b', b'\x00', rb"x", '''a''', """it's""", 'it\'s', 0xFF, 1e3, .5, 1., -9223372036854775808
SELECT COUNT(*), COUNT(DISTINCT a), ARRAY_AGG(x IGNORE NULLS ORDER BY y DESC LIMIT 3), ANY_VALUE(x HAVING MAX y), STRING_AGG(DISTINCT a, ',' ORDER BY a)
SELECT SUM(x) OVER (PARTITION BY a ORDER BY b ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING), RANK() OVER w, LAG(x) OVER (w) FROM t WINDOW w AS (ORDER BY a)
SELECT a FROM t WHERE a > 1 GROUP BY a, ROLLUP(b, c), GROUPING SETS ((a, b), a, ()) HAVING COUNT(*) > 1 QUALIFY ROW_NUMBER() OVER (ORDER BY a) = 1
SELECT a FROM t GROUP BY ALL
SELECT AS STRUCT a, b FROM t
SELECT SAFE.PARSE_JSON('x'), NET.HOST(u), TO_JSON(x, stringify_wide_numbers => TRUE), ?, @p
SELECT a, FROM t -- trailing comma
SELECT /* c */ 1 # comment
SELECT t.select, t.from FROM t
SELECT DATE FROM t`

func TestParseAccepts(t *testing.T) {
	for _, sql := range strings.Split(accepted, "\n") {
		if _, err := Parse(sql); err != nil {
			t.Errorf("%s\n\t%v", sql, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"", "Syntax error: Unexpected end of script at [1:1]"},
		{"SELCT 1", `Syntax error: Unexpected identifier "SELCT" at [1:1]`},
		{"SELECT", "Syntax error: Unexpected end of script at [1:7]"},
		{"SELECT FROM t", "Syntax error: Unexpected keyword FROM at [1:8]"},
		{"SELECT 1 +\n  FROM t", "Syntax error: Unexpected keyword FROM at [2:3]"},
		{"SELECT (1", `Syntax error: Expected ")" but got end of script at [1:10]`},
		{"SELECT 1 FORM t", `Syntax error: Expected end of input but got identifier "t" at [1:15]`},
		{"SELECT 'abc", "Syntax error: Unclosed string literal at [1:8]"},
		{"SELECT 'a\nb'", "Syntax error: Unclosed string literal at [1:8]"},
		{`SELECT """a`, "Syntax error: Unclosed triple-quoted string literal at [1:8]"},
		{"SELECT `a", "Syntax error: Unclosed identifier literal at [1:8]"},
		{`SELECT 'é', '\q'`, `Syntax error: Illegal escape sequence: \q at [1:13]`},
		{"SELECT 1 /* x", "Syntax error: Unclosed comment at [1:10]"},
		{"SELECT 1a", "Syntax error: Missing whitespace between literal and alias at [1:8]"},
		{"SELECT 1 UNION SELECT 2", "Syntax error: Expected keyword ALL or keyword DISTINCT but got keyword SELECT at [1:16]"},
		{"SELECT 1 UNION ALL SELECT 2 EXCEPT DISTINCT SELECT 3", "Syntax error: Different set operations cannot be used in the same query without using parentheses for grouping at [1:29]"},
		{"SELECT * FROM a JOIN b", "Syntax error: Expected keyword ON or keyword USING but got end of script at [1:23]"},
		{"SELECT CASE 1 END", "Syntax error: Expected keyword WHEN but got keyword END at [1:15]"},
		{"SELECT $1", "Syntax error: Illegal input character '$' at [1:8]"},
		{"CALL f()", "Not supported by local BigQuery: CALL statements at [1:1]"},
		{"merge t using u on true", "Not supported by local BigQuery: MERGE statements at [1:1]"},
		{"SELECT 1; SELECT 2", "Not supported by local BigQuery: scripts of several statements at [1:11]"},
		{"FROM t |> WHERE x", "Not supported by local BigQuery: pipe syntax at [1:1]"},
		{"SELECT 1 |> LIMIT 1", "Not supported by local BigQuery: pipe syntax at [1:10]"},
		{"SELECT * FROM t PIVOT(SUM(x) FOR y IN (1))", "Not supported by local BigQuery: PIVOT at [1:17]"},
		{"SELECT * FROM t TABLESAMPLE SYSTEM (10 PERCENT)", "Not supported by local BigQuery: TABLESAMPLE at [1:17]"},
		{"SELECT * FROM read_csv('/etc/passwd')", "Not supported by local BigQuery: table function read_csv at [1:15]"},
		{"SELECT * FROM '/etc/passwd'", `Syntax error: Unexpected string literal "/etc/passwd" at [1:15]`},
		{"SELECT @@time_zone", "Not supported by local BigQuery: system variable @@time_zone at [1:8]"},
		{"SELECT " + strings.Repeat("(", 300) + "1", "Not supported by local BigQuery: statements nested more than 200 levels deep at [1:207]"},
	} {
		_, err := Parse(c.sql)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\n\t got %v\n\twant %s", c.sql, err, c.want)
		}
	}
}

func TestTablePath(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"SELECT * FROM my-project.d.t", "my-project|d|t"},
		{"SELECT * FROM p-1.d.t", "p-1|d|t"},
		{"SELECT * FROM p-1.2d.3t JOIN x USING (a)", "p-1|2d|3t"},
		{"SELECT * FROM `a-b.c.d`", "a-b.c.d"},
		{"SELECT * FROM d.events-2024 AS e", "d|events-2024"},
		{"SELECT * FROM `p`.d.`t t`", "p|d|t t"},
	} {
		q, err := Parse(c.sql)
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		from := q.Body.(*Select).From
		if j, ok := from.(*Join); ok {
			from = j.Left
		}
		var parts []string
		for _, n := range from.(*Table).Parts {
			parts = append(parts, n.Text)
		}
		if got := strings.Join(parts, "|"); got != c.want {
			t.Errorf("%s: got %s, want %s", c.sql, got, c.want)
		}
	}
}

func TestLiteralText(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{`'a\n\x41\u00e9\U0001F600\101\''`, "a\nA\u00e9\U0001F600A'"},
		{`r'a\n\''`, `a\n\'`},
		{`b'\xff\101'`, "\xffA"},
		{"'''a\n'b''c'''", "a\n'b''c"},
	} {
		x, err := ParseExpression(c.sql)
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		if got := x.(*Literal).Text; got != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, sql := range strings.Split(accepted, "\n") {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		var err error
		hostile.Proportional(t, len(sql), 4096, 1<<20, func() { _, err = Parse(sql) })
		if err == nil {
			return
		}
		fault, ok := errors.AsType[*query.Error](err)
		if !ok || fault.Line < 1 || fault.Column < 1 {
			t.Errorf("%q: error without a place: %v", sql, err)
		}
	})
}
