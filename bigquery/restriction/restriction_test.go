package restriction_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/bigquery/restriction"
	"github.com/millrace-dev/millrace/bigquery/table"
)

var columns = &table.Schema{Fields: []table.Field{
	{Name: "a", Type: table.Int64}, {Name: "c", Type: table.Int64}, {Name: "s", Type: table.String}, {Name: "y", Type: table.Bytes},
	{Name: "f", Type: table.Float64}, {Name: "ok", Type: table.Bool}, {Name: "n", Type: table.Numeric}, {Name: "bn", Type: table.BigNumeric},
	{Name: "day", Type: table.Date}, {Name: "ti", Type: table.Time}, {Name: "dt", Type: table.DateTime}, {Name: "ts", Type: table.Timestamp},
	{Name: "j", Type: table.JSON}, {Name: "g", Type: table.Geography}, {Name: "r", Type: table.Struct}, {Name: "tags", Type: table.String, Mode: table.Repeated},
	{Name: "a`b\\c", Type: table.Int64},
}}

type condition = restriction.Condition

func equal(column string, v restriction.Literal) condition {
	return restriction.Compare(column, restriction.Equal, v)
}

func TestWrite(t *testing.T) {
	t.Parallel()
	one, two := equal("a", restriction.Int(1)), equal("c", restriction.Int(2))
	f := restriction.Unknown()
	is := func(name, want string, all ...condition) {
		t.Run(name, func(t *testing.T) {
			if got := restriction.Write(columns, "", all...); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	is("SRC-91 a conjunction without what cannot be written", "((`a` = 1) AND (`c` = 2))", one, f, two)
	is("SRC-91 a disjunction that cannot be written", "", restriction.Any(one, f))
	is("a disjunction", "(((`a` = 1) OR (`c` = 2)))", restriction.Any(one, two))
	is("part of a conjunction in a disjunction", "((((`a` = 1)) OR (`c` = 2)))", restriction.Any(restriction.All(one, f), two))
	is("nothing", "")
	is("nothing of nothing", "", restriction.All(), restriction.Any(), restriction.All(f))
	for name, c := range map[string]struct {
		c    condition
		want string
	}{
		"a text":            {equal("s", restriction.String("O'Brien\\\n\x01\x7f\u0085😀\x00")), "((`s` = 'O\\'Brien\\\\\\n\\u0001\\u007f\u0085😀\\u0000'))"},
		"not UTF-8":         {equal("s", restriction.String("\xff")), ""},
		"texts in order":    {restriction.Compare("s", restriction.Less, restriction.String("x")), ""},
		"bytes":             {restriction.Compare("y", restriction.Less, restriction.Bytes([]byte("\x00\xffA"))), "((`y` < b'\\x00\\xff\\x41'))"},
		"no bytes":          {equal("y", restriction.Bytes(nil)), "((`y` = b''))"},
		"a float":           {restriction.Compare("f", restriction.AtLeast, restriction.Float(1e6)), "((`f` >= 1e+06))"},
		"a whole float":     {equal("f", restriction.Float(3)), "((`f` = 3.0))"},
		"negative zero":     {equal("f", restriction.Float(math.Copysign(0, -1))), "((`f` = -0.0))"},
		"infinity":          {equal("f", restriction.Float(math.Inf(1))), ""},
		"NaN":               {equal("f", restriction.Float(math.NaN())), ""},
		"a bool":            {restriction.Compare("ok", restriction.NotEqual, restriction.Bool(true)), "((`ok` <> TRUE))"},
		"bools in order":    {restriction.Compare("ok", restriction.Less, restriction.Bool(true)), ""},
		"a decimal":         {restriction.Compare("n", restriction.More, restriction.Decimal("-0.01")), "((`n` > BIGNUMERIC '-0.01'))"},
		"no decimal":        {equal("bn", restriction.Decimal("1'; --")), ""},
		"a date":            {equal("day", restriction.Date("2026-08-12")), "((`day` = DATE '2026-08-12'))"},
		"no date":           {equal("day", restriction.Date("2026-08-1'")), ""},
		"a time":            {equal("ti", restriction.Time("12:34:56.789000")), "((`ti` = TIME '12:34:56.789000'))"},
		"a datetime":        {equal("dt", restriction.DateTime("2026-08-12 10:00:00.000000")), "((`dt` = DATETIME '2026-08-12 10:00:00.000000'))"},
		"a timestamp":       {equal("ts", restriction.Timestamp("2026-08-12 10:00:00.000000Z")), "((`ts` = TIMESTAMP '2026-08-12 10:00:00.000000Z'))"},
		"of another type":   {equal("a", restriction.String("1")), ""},
		"a name":            {equal("a`b\\c", restriction.Int(1)), "((`a\\`b\\\\c` = 1))"},
		"another case":      {equal("A", restriction.Int(1)), ""},
		"no such column":    {equal("none", restriction.Int(1)), ""},
		"NULL":              {restriction.IsNull("s"), "((`s` IS NULL))"},
		"not NULL":          {restriction.IsNotNull("day"), "((`day` IS NOT NULL))"},
		"JSON":              {restriction.IsNull("j"), ""},
		"a struct":          {restriction.IsNull("r"), ""},
		"a list":            {restriction.IsNull("tags"), ""},
		"no operator":       {restriction.Compare("a", 0, restriction.Int(1)), ""},
		"an integer and n":  {equal("n", restriction.Int(1)), "((`n` = 1))"},
		"the zero literal":  {equal("a", restriction.Literal{}), ""},
		"a geography value": {restriction.IsNotNull("g"), ""},
	} {
		is(name, c.want, c.c)
	}
}

func TestWriteOwn(t *testing.T) {
	t.Parallel()
	one := equal("a", restriction.Int(7))
	for _, c := range []struct{ name, own, want string }{
		{"SRC-91 both", "x > 0", "(\nx > 0\n)\nAND\n(\n((`a` = 7))\n)"},
		{"a comment at the end", "t = 'a' -- ours", "(\nt = 'a' -- ours\n)\nAND\n(\n((`a` = 7))\n)"},
		{"parentheses in text", `t = ')' AND u = "('" AND v = '''it's)'''`, "(\nt = ')' AND u = \"('\" AND v = '''it's)'''\n)\nAND\n(\n((`a` = 7))\n)"},
		{"a parenthesis that is not open", "x > 0) OR (TRUE", "x > 0) OR (TRUE"},
		{"a parenthesis that stays open", "(x > 0", "(x > 0"},
		{"a text that stays open", "x = 'a\\'", "x = 'a\\'"},
		{"a text over two lines", "x = 'a\n'", "x = 'a\n'"},
		{"a name that stays open", "`x", "`x"},
		{"a comment that stays open", "x = 1 /*", "x = 1 /*"},
		{"a parenthesis in a comment", "x = 1 /* ) */ # )", "(\nx = 1 /* ) */ # )\n)\nAND\n(\n((`a` = 7))\n)"},
		{"two statements", "x = 1; SELECT 2", "x = 1; SELECT 2"},
		{"NUL", "x\x00", "x\x00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := restriction.Write(columns, c.own, one); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got := restriction.Write(columns, c.own); got != c.own {
				t.Errorf("alone: %s", got)
			}
		})
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	text := func(n int) condition { return equal("s", restriction.String(strings.Repeat("x", n))) }
	seven := equal("a", restriction.Int(7))
	for _, c := range []struct {
		name  string
		own   string
		all   []condition
		bytes int
		used  string
	}{
		{"SRC-92 the first part is too long", "", []condition{text(1_000_001), seven}, 11, "[false true]"},
		{"SRC-92 the first of a conjunction is too long", "", []condition{restriction.All(text(1_000_001), seven)}, 13, "[true]"},
		{"the longest text", "", []condition{text(999_988)}, 1_000_000, "[true]"},
		{"a byte more", "", []condition{text(999_989)}, 0, "[false]"},
		{"the longest text behind somebody's own", "x", []condition{text(999_988 - 14)}, 1_000_000, "[true]"},
		{"four texts", "", []condition{text(200_000), text(200_000), text(200_000), text(200_000)}, 800_057, "[true true true true]"},
		{"four texts of five", "", []condition{text(200_000), text(200_000), text(200_000), text(200_000), text(200_000)}, 800_057, "[true true true true false]"},
		{"a disjunction leaves its bytes", "", []condition{restriction.Any(text(300_000), text(300_000), text(300_000), text(300_000)), text(999_988)}, 1_000_000, "[false true]"},
		{"zeros", "", []condition{equal("y", restriction.Bytes(make([]byte, 249_996)))}, 999_997, "[true]"},
		{"one more", "", []condition{equal("y", restriction.Bytes(make([]byte, 249_997)))}, 0, "[false]"},
		{"somebody's own is all", strings.Repeat("x", 1_000_000), []condition{seven}, 1_000_000, "[false]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, used := restriction.WriteUsed(columns, c.own, c.all...)
			if len(got) != c.bytes || fmt.Sprint(used) != c.used {
				t.Errorf("%d bytes of %v, want %d of %s", len(got), used, c.bytes, c.used)
			}
		})
	}
	t.Run("deep", func(t *testing.T) {
		deep := seven
		for i := range 65_536 {
			if i%2 == 0 {
				deep = restriction.All(deep)
			} else {
				deep = restriction.Any(deep)
			}
		}
		if got := restriction.Write(columns, "", deep); len(got) != 2*65_536+11 {
			t.Errorf("%d bytes", len(got))
		}
	})
}

func TestPartitions(t *testing.T) {
	t.Parallel()
	by := func(k table.PartitionType) table.Partition { return table.Partition{Type: k, Field: "c", Interval: 10} }
	for _, c := range []struct {
		name string
		by   table.Partition
		ids  []string
		want string // in the error when it begins with !
	}{
		{"SRC-93 the last month of a year", by(table.PartitionMonth), []string{"202612"}, "((`c` >= '2026-12-01' AND `c` < '2027-01-01'))"},
		{"SRC-93 a month", by(table.PartitionMonth), []string{"202602"}, "((`c` >= '2026-02-01' AND `c` < '2026-03-01'))"},
		{"SRC-93 NULL", by(table.PartitionDay), []string{"__NULL__"}, "((`c` IS NULL))"},
		{"days", by(table.PartitionDay), []string{"20260228", "20260301"},
			"(((`c` >= '2026-02-28' AND `c` < '2026-03-01') OR (`c` >= '2026-03-01' AND `c` < '2026-03-02')))"},
		{"an hour", by(table.PartitionHour), []string{"2026123123"}, "((`c` >= '2026-12-31 23:00:00' AND `c` < '2027-01-01 00:00:00'))"},
		{"a year", by(table.PartitionYear), []string{"2026"}, "((`c` >= '2026-01-01' AND `c` < '2027-01-01'))"},
		{"the last year", by(table.PartitionYear), []string{"9999"}, "((`c` >= '9999-01-01'))"},
		{"by arrival", table.Partition{Type: table.PartitionDay}, []string{"20260228"}, "((`_PARTITIONTIME` >= '2026-02-28' AND `_PARTITIONTIME` < '2026-03-01'))"},
		{"a range", by(table.PartitionRange), []string{"20"}, "((`c` >= 20 AND `c` < 30))"},
		{"a range below zero", by(table.PartitionRange), []string{"-10"}, "((`c` >= -10 AND `c` < 0))"},
		{"the last range", by(table.PartitionRange), []string{"9223372036854775800"}, "((`c` >= 9223372036854775800))"},
		{"a hostile column", table.Partition{Type: table.PartitionRange, Field: "a` OR TRUE --", Interval: 1}, []string{"1"}, "((`a\\` OR TRUE --` >= 1 AND `a\\` OR TRUE --` < 2))"},
		{"rows not sorted yet", by(table.PartitionDay), []string{"__UNPARTITIONED__"}, "!no condition finds"},
		{"of another unit", by(table.PartitionDay), []string{"202602", "2026022800"}, "!\"202602\" is no partition of the table: expected such as 20260812"},
		{"no day", by(table.PartitionDay), []string{"20260230"}, "!no partition"},
		{"no number", by(table.PartitionRange), []string{"1 OR TRUE"}, "!no partition"},
		{"a number spelt otherwise", by(table.PartitionRange), []string{"+1"}, "!no partition"},
		{"not partitioned", table.Partition{}, []string{"1"}, "!not partitioned"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := restriction.Partitions(c.by, c.ids...)
			if want, fails := strings.CutPrefix(c.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v", err)
				}
				return
			}
			if text := restriction.Write(columns, "", got); err != nil || text != c.want {
				t.Errorf("got  %s: %v\nwant %s", text, err, c.want)
			}
		})
	}
}

func TestQuoteName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a": "`a`", "größe": "`größe`", "a`; DROP TABLE x; --": "`a\\`; DROP TABLE x; --`", `a\`: "`a\\\\`", `\` + "`": "`\\\\\\``",
		"a\nb\r": "`a\\nb\\r`", "a\x00b\x7f": "`a\\u0000b\\u007f`", "/* a */": "`/* a */`", "'\"": "`'\"`",
	} {
		if got := restriction.QuoteName(name); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}

func Example() {
	schema := &table.Schema{Fields: []table.Field{{Name: "day", Type: table.Date}, {Name: "name", Type: table.String}}}
	fmt.Println(restriction.Write(schema, "",
		restriction.Compare("day", restriction.AtLeast, restriction.Date("2026-08-12")),
		restriction.Unknown(),
		restriction.Any(restriction.IsNull("name"), restriction.Compare("name", restriction.Equal, restriction.String("O'Brien")))))
	// Output: ((`day` >= DATE '2026-08-12') AND ((`name` IS NULL) OR (`name` = 'O\'Brien')))
}
