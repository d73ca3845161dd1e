package googlesql

// Statement is what a request asks for: a *Query or one of the types below.
type Statement interface{ At() Pos }

type (
	// CreateTable is CREATE [OR REPLACE] TABLE. At most one of Like and Query is set.
	CreateTable struct {
		Pos
		Replace, IfNotExists bool
		Table                []Name
		Columns              []ColumnDef
		PrimaryKey           []Name
		ForeignKeys          []ForeignKey
		Like                 []Name
		PartitionBy          Expr
		ClusterBy            []Name
		Options              []Option
		Query                *Query
	}
	// CreateView is CREATE [OR REPLACE] [MATERIALIZED] VIEW; Text is its query as written.
	CreateView struct {
		Pos
		Replace, IfNotExists, Materialized bool
		View                               []Name
		Options                            []Option
		Query                              *Query
		Text                               string
	}
	// CreateSchema is CREATE SCHEMA.
	CreateSchema struct {
		Pos
		IfNotExists bool
		Schema      []Name
		Options     []Option
	}
	// Drop is DROP of a TABLE, VIEW, MATERIALIZED VIEW or SCHEMA.
	Drop struct {
		Pos
		Kind              string
		IfExists, Cascade bool
		Name              []Name
	}
	// Alter is ALTER of a TABLE, VIEW, MATERIALIZED VIEW or SCHEMA with the actions that it lists.
	Alter struct {
		Pos
		Kind     string
		IfExists bool
		Name     []Name
		Actions  []AlterAction
	}
	// Insert is INSERT: Rows or Query.
	Insert struct {
		Pos
		Table   []Name
		Columns []Name // nil for all
		Rows    [][]Expr
		Query   *Query
	}
	// Update is UPDATE; From is nil where there is none.
	Update struct {
		Pos
		Table []Name
		Alias *Name
		Set   []Assignment
		From  From
		Where Expr
	}
	// Delete is DELETE.
	Delete struct {
		Pos
		Table []Name
		Alias *Name
		Where Expr
	}
	// Merge is MERGE. Source is a table, a subquery or UNNEST.
	Merge struct {
		Pos
		Table  []Name
		Alias  *Name
		Source From
		On     Expr
		Whens  []MergeClause
	}
	// Truncate is TRUNCATE TABLE.
	Truncate struct {
		Pos
		Table []Name
	}
)

// Assignment is one path = value of an UPDATE: a column or a member of one, perhaps behind the name of the table. The value
// may be a *Default.
type Assignment struct {
	Path  []Name
	Value Expr
}

// The rows that a clause of MERGE is about.
const (
	Matched     = "MATCHED"
	NotByTarget = "NOT MATCHED BY TARGET"
	NotBySource = "NOT MATCHED BY SOURCE"
)

// MergeClause is a clause of MERGE. And is nil where there is none. Action is INSERT, UPDATE or DELETE; an INSERT without Values is one
// of ROW.
type MergeClause struct {
	Pos
	Kind    string
	And     Expr
	Action  string
	Set     []Assignment
	Columns []Name // nil for all
	Values  []Expr
}

// ColumnDef is a column of CREATE TABLE or ADD COLUMN. Default is its expression as written.
type ColumnDef struct {
	Name    Name
	Type    *Type
	NotNull bool
	Default string
	Options []Option
}

// Option is name = value of an OPTIONS list.
type Option struct {
	Name  Name
	Value Expr
}

// AlterAction is one action of ALTER. Kind is ADD COLUMN, DROP COLUMN, RENAME COLUMN, RENAME TO, SET OPTIONS, ADD PRIMARY KEY, DROP
// PRIMARY KEY, ADD FOREIGN KEY, DROP CONSTRAINT, or ALTER COLUMN with DROP NOT NULL, SET OPTIONS, SET DATA TYPE or SET DEFAULT,
// whose default is "" where it is dropped.
type AlterAction struct {
	Pos
	Kind       string
	Exists     bool // IF NOT EXISTS of ADD COLUMN, IF EXISTS of the others
	Column     ColumnDef
	To         Name
	Key        []Name
	ForeignKey ForeignKey
	Options    []Option
}

// ForeignKey is a foreign key, with a name or without one. Exists is IF NOT EXISTS.
type ForeignKey struct {
	Pos
	Name       *Name
	Exists     bool
	Columns    []Name
	Table      []Name
	References []Name
}
