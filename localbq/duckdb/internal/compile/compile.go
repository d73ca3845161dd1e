package compile

import (
	"fmt"
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
	// Scan makes a table readable as bq_scan(id), with the columns that the plan says it reads of it.
	Scan func(*query.Table) (id int64)
	// Instant runs a statement that answers one DATETIME or TIMESTAMP, for FOR SYSTEM_TIME AS OF.
	Instant func(sql string) (time.Time, error)
}

// Plan is a compiled statement.
type Plan struct {
	SQL     string
	Columns []Column
	// Tables are the tables it reads, each once.
	Tables []query.Ref
	// Scans are the tables that are read, by the id that Env.Scan gave, with the columns that are read of each.
	Scans map[int64][]Stored
	// Volatile is set where running it again may answer something else.
	Volatile bool
	// Change is set for a statement that is no query; SQL is then "" where it has no rows.
	Change *query.Change
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

// Restriction compiles a row restriction over the columns of t0. It also answers which columns it reads.
func Restriction(text string, columns *schema.Schema, env Env) (sql string, read []Stored, err error) {
	tree, err := googlesql.ParseExpression(text)
	if err != nil {
		return "", nil, err
	}
	src := &source{columns: storedColumns(columns.Fields, len(columns.Fields), "t0")}
	c := &compiler{env: env, tables: map[string]*table{}, alone: true, clause: "a row restriction"}
	c.reads = map[string]scanned{"t0": {fields: columns.Fields}}
	v, err := c.expr(tree, &scope{sources: []*source{src}})
	if err != nil {
		return "", nil, err
	}
	v, ok := coerce(v, boolean)
	if !ok {
		return "", nil, v.pos.Errorf("A row restriction should return type BOOL, but returns %s", v.typ)
	}
	return v.sql, c.readColumns(v.sql)[0], nil
}

// compiler compiles one statement.
type compiler struct {
	env      Env
	steps    int               // expressions compiled so far
	named    int               // tables named so far
	ctes     []cte             // visible, innermost last
	tables   map[string]*table // by reference and instant
	refs     []query.Ref
	reads    map[string]scanned // by the name the scan has in the text
	volatile bool
	views    int // views being expanded
	// alone means that there are no tables: subqueries are refused.
	alone bool
	// filters are the columns that a statement has to filter by and has not yet; filtered counts the WHERE clauses of the
	// queries around, any of which may filter too.
	filters  []filter
	filtered int
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
