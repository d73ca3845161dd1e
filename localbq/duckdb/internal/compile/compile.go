package compile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/googlesql"
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Env is what a statement is compiled in.
type Env struct {
	// Project completes dataset.table; DefaultProject and DefaultDataset complete a bare table.
	Project, DefaultProject, DefaultDataset string
	Parameters                              []query.Parameter
	Now                                     time.Time
	User                                    string
	// Table opens a table.
	Table func(query.Ref, time.Time) (*query.Table, error)
	// Scan makes a table readable as bq_scan(id), with columns c0, c1, … .
	Scan func(*query.Table) (id int64, err error)
	// Instant runs a statement that answers one DATETIME or TIMESTAMP, for FOR SYSTEM_TIME AS OF.
	Instant func(sql string) (time.Time, error)
}

// Plan is a compiled query.
type Plan struct {
	SQL     string
	Columns []Column
	// Tables are the tables it reads, each once.
	Tables []query.Ref
	// Used are the columns that are read of each scan.
	Used map[int64][]int
	// Volatile is set where running it again may answer something else.
	Volatile bool
}

// Column is a column of the result.
type Column struct {
	Name string
	Type Type
}

// Schema is the result's.
func (p *Plan) Schema() *schema.Schema {
	s := &schema.Schema{}
	for _, c := range p.Columns {
		s.Fields = append(s.Fields, c.Type.Column(c.Name))
	}
	return s
}

// Query compiles a statement.
func Query(sql string, env Env) (*Plan, error) {
	tree, err := googlesql.Parse(sql)
	if err != nil {
		return nil, err
	}
	c := &compiler{env: env, tables: map[string]*table{}}
	r, err := c.query(tree, nil)
	if err != nil {
		return nil, err
	}
	r = r.unfold(c)
	if err := r.unique(tree.Pos); err != nil {
		return nil, err
	}
	plan := &Plan{SQL: r.sql, Volatile: c.volatile, Tables: c.refs, Used: map[int64][]int{}}
	for _, read := range c.reads {
		plan.use(read)
	}
	for _, col := range r.columns {
		plan.Columns = append(plan.Columns, Column{col.name, col.typ})
	}
	return plan, nil
}

// read is one use of a scan in the text: its columns are name.c0, name.c1, … .
type read struct {
	id      int64
	name    string
	columns int
}

// use adds the columns that the text names.
func (p *Plan) use(r read) {
	for i := range r.columns {
		if uses(p.SQL, fmt.Sprintf("%s.c%d", r.name, i)) && !slices.Contains(p.Used[r.id], i) {
			p.Used[r.id] = append(p.Used[r.id], i)
		}
	}
}

// Restriction compiles a row restriction over columns c0, c1, … of table t0. It also answers which columns it uses.
func Restriction(text string, columns *schema.Schema, env Env) (sql string, used []int, err error) {
	tree, err := googlesql.ParseExpression(text)
	if err != nil {
		return "", nil, err
	}
	src := &source{}
	for i, f := range columns.Fields {
		src.columns = append(src.columns, column{f.Name, TypeOf(f), fmt.Sprintf("t0.c%d", i)})
	}
	c := &compiler{env: env, tables: map[string]*table{}, alone: true, clause: "a row restriction"}
	v, err := c.expr(tree, &scope{sources: []*source{src}})
	if err != nil {
		return "", nil, err
	}
	v, ok := coerce(v, boolean)
	if !ok {
		return "", nil, v.pos.Errorf("A row restriction should return type BOOL, but returns %s", v.typ)
	}
	for i, col := range src.columns {
		if uses(v.sql, col.sql) {
			used = append(used, i)
		}
	}
	return v.sql, used, nil
}

// uses reports whether SQL text names a column: t1.c1 is neither in t1.c12 nor in t11.c1.
func uses(sql, column string) bool {
	for at := 0; ; {
		i := strings.Index(sql[at:], column)
		if i < 0 {
			return false
		}
		at += i + len(column)
		if at == len(sql) || sql[at] < '0' || sql[at] > '9' {
			return true
		}
	}
}

// compiler compiles one statement.
type compiler struct {
	env      Env
	named    int               // tables named so far
	ctes     []cte             // visible, innermost last
	tables   map[string]*table // by reference and instant
	refs     []query.Ref
	reads    []read
	volatile bool
	views    int // views being expanded
	// alone means that there are no tables: subqueries are refused.
	alone bool
	// clause names where aggregates and analytic functions are not allowed; "" where they are.
	clause string
	// windows are the definitions of the WINDOW clause in force.
	windows []googlesql.NamedWindow
}

// table is a table that has been opened.
type table struct {
	*query.Table
	id int64
}

// cte is a table of a WITH clause.
type cte struct {
	name    string
	sql     string // its name in DuckDB
	columns []column
	element bool // SELECT AS STRUCT or AS VALUE
}

// newName is a name for a table that nothing else has.
func (c *compiler) newName() string {
	c.named++
	return fmt.Sprintf("t%d", c.named)
}

// within compiles something where aggregates are not allowed.
func (c *compiler) within(clause string, what func() error) error {
	before := c.clause
	c.clause = clause
	defer func() { c.clause = before }()
	return what()
}

// condition compiles a BOOL expression of a clause.
func (c *compiler) condition(e googlesql.Expr, s *scope, clause string) (value, error) {
	v, err := c.expr(e, s)
	if err != nil {
		return v, err
	}
	b, ok := coerce(v, boolean)
	if !ok {
		return v, v.pos.Errorf("%s should return type BOOL, but returns %s", clause, v.typ)
	}
	return b, nil
}
