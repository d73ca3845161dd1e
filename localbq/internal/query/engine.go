package query

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// Engine runs statements. Implementations are safe for concurrent use, and every error that is the statement's fault is an
// *Error or a refusal that the Catalog answered.
type Engine interface {
	// Run plans a statement, reads the tables it names from c, and runs it. It stops early, with ctx's cause, when ctx ends.
	Run(ctx context.Context, s Statement, c Catalog) (*Result, error)

	// Restrict compiles the row restriction of a read session: a boolean expression over one row of these columns, without
	// subqueries and aggregates.
	Restrict(expression string, columns *schema.Schema) (Restriction, error)

	// Close frees what the engine holds. Nothing may be running.
	Close() error
}

// Restriction picks rows. It is safe for concurrent use.
type Restriction interface {
	// Rows answers the indices of the rows of batch that match, in ascending order. The batch has the columns that the
	// restriction was compiled for, in the layout of schema.Schema.Arrow.
	Rows(ctx context.Context, batch arrow.RecordBatch) ([]int32, error)

	// Uses reports whether the restriction looks at a column, named without regard to case.
	Uses(column string) bool
}

// Statement is one statement and what it means by the names it leaves short.
type Statement struct {
	SQL        string
	Parameters []Parameter
	// Project completes dataset.table.
	Project string
	// DefaultProject and DefaultDataset complete a bare table name; empty where the request set no default dataset.
	DefaultProject, DefaultDataset string
	// Now is the instant of CURRENT_TIMESTAMP and its like.
	Now time.Time
	// User is SESSION_USER().
	User string
	// DryRun plans and checks, and answers a Result without rows.
	DryRun bool
}

// Parameter is a named or, with an empty name, a positional parameter.
type Parameter struct {
	Name string
	// Type is the parameter's type; its name means nothing and Repeated makes it an array.
	Type  *schema.Field
	Value Value
}

// Value is a parameter's value: a scalar as text in the form of the REST API, the elements of an array, or the members of a
// struct in the order of its type.
type Value struct {
	Null   bool
	Scalar string
	List   []Value
}

// Ref names a table.
type Ref struct{ Project, Dataset, Table string }

// String is the spelling of messages: p:d.t.
func (r Ref) String() string { return r.Project + ":" + r.Dataset + "." + r.Table }

// Catalog finds tables.
type Catalog interface {
	// Table opens the snapshot of a table at asOf, or now where asOf is zero. Its refusals (no such table, no permission,
	// an instant outside of time travel) reach the client as they are.
	Table(ctx context.Context, ref Ref, asOf time.Time) (*Table, error)
}

// Table is one snapshot of a table, or a view.
type Table struct {
	Ref    Ref
	Schema *schema.Schema
	// Definition is the table's; nobody changes it. nil where the catalog has none.
	Definition *schema.Definition
	// Pseudo are columns that only their names find; * does not.
	Pseudo []*schema.Field
	// Rows is the number of rows, for the planner; 0 for a view.
	Rows int64
	// Batches answers the rows in the layout of Schema.Arrow, with the columns of Pseudo behind the others. They stay valid
	// until the statement ends. It is nil for a view.
	Batches func() ([]arrow.RecordBatch, error)
	// RowIDs answers the same table with the column RowID at the end of Pseudo, for statements that change rows; it is nil for a
	// view.
	RowIDs func() *Table
	// View is a view's text; "" for a table. Bare names in it belong to the view's own dataset.
	View string
	// PartitionColumn is the column that a statement has to filter by; "" where none is required.
	PartitionColumn string
}

// RowID is the name of the column of row ids, which no column of a user can have.
const RowID = "\x00row"

// Action is the name of the column that says what MERGE does about a row: one of the numbers below.
const Action = "\x00action"

// What MERGE does about a row. Rows that are inserted have no id.
const (
	Deletes = iota
	Updates
	Inserts
)

// Result is what a statement answered. The batches belong to the caller.
type Result struct {
	// Change is what the statement asks for beside its rows; nil for a query. Schema and Batches are then the rows to write,
	// with the names and types of the columns that they go to.
	Change  *Change
	Schema  *schema.Schema
	Batches []arrow.RecordBatch
	Rows    int64
	// Tables are the tables that were read, views resolved, each once.
	Tables []Ref
	// BytesProcessed is the logical size of the columns that were read.
	BytesProcessed int64
	// Volatile is set where the same statement over the same tables may answer something else.
	Volatile bool
}
