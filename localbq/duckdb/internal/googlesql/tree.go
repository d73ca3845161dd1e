package googlesql

// Name is an identifier as written, without quotes.
type Name struct {
	Text string
	Pos  Pos
}

// Expr is an expression: one of the types below.
type Expr interface{ At() Pos }

// At is where the expression begins; for an operator between two operands, where the operator is.
func (p Pos) At() Pos { return p }

type (
	// Literal is NULL, TRUE, FALSE, a number, a string or bytes. Text is a number as written, a string or bytes as meant.
	Literal struct {
		Pos
		Kind LiteralKind
		Text string
	}
	// Default is DEFAULT where a statement gives a column its value.
	Default struct{ Pos }
	// TypedLiteral is DATE '2020-01-01' and the like; Element is set for RANGE<T> '…'.
	TypedLiteral struct {
		Pos
		Type    string // upper case
		Element *Type
		Text    string
	}
	// Interval is INTERVAL value part, or INTERVAL 'text' from TO to.
	Interval struct {
		Pos
		Value    Expr
		From, To string // upper case; To is "" for a single part
	}
	// Param is @name, or the Index-th ? with an empty name.
	Param struct {
		Pos
		Name  string
		Index int
	}
	// Path is a.b.c: a column, a field of one, a range variable.
	Path struct {
		Pos
		Names []Name
	}
	// Field is x.name where x is no path.
	Field struct {
		Pos
		X    Expr
		Name Name
	}
	// Subscript is x[i], or x[OFFSET(i)] with Kind OFFSET, ORDINAL, SAFE_OFFSET or SAFE_ORDINAL.
	Subscript struct {
		Pos
		X, Index Expr
		Kind     string
	}
	// Call is a function call. Name is in upper case, with its dots.
	Call struct {
		Pos
		Name     string
		Safe     bool // SAFE.name
		Star     bool // COUNT(*)
		Distinct bool
		Args     []Expr
		Named    []NamedArg
		Nulls    string // IGNORE, RESPECT or ""
		Having   *HavingModifier
		OrderBy  []OrderItem
		Limit    Expr
		Over     *Window
	}
	// Unary is -x, +x, ~x or NOT x.
	Unary struct {
		Pos
		Op string
		X  Expr
	}
	// Binary is x op y; Op is upper case.
	Binary struct {
		Pos
		Op   string
		X, Y Expr
	}
	// Like is x [NOT] LIKE pattern, or with a quantifier ANY, SOME or ALL over several patterns.
	Like struct {
		Pos
		X          Expr
		Not        bool
		Quantifier string
		Patterns   []Expr
	}
	// Between is x [NOT] BETWEEN low AND high.
	Between struct {
		Pos
		X, Low, High Expr
		Not          bool
	}
	// In is x [NOT] IN with exactly one of List, Query, Unnest.
	In struct {
		Pos
		X      Expr
		Not    bool
		List   []Expr
		Query  *Query
		Unnest Expr
	}
	// Is is x IS [NOT] NULL, TRUE, FALSE or UNKNOWN.
	Is struct {
		Pos
		X    Expr
		Not  bool
		What string
	}
	// Case is CASE [operand] WHEN … END. Else is nil where there is none.
	Case struct {
		Pos
		Operand Expr
		Whens   []When
		Else    Expr
	}
	// Cast is [SAFE_]CAST(x AS type [FORMAT format [AT TIME ZONE zone]]).
	Cast struct {
		Pos
		X            Expr
		Type         *Type
		Safe         bool
		Format, Zone Expr
	}
	// Extract is EXTRACT(part FROM x [AT TIME ZONE zone]).
	Extract struct {
		Pos
		Part Expr
		X    Expr
		Zone Expr
	}
	// Array is [ … ], ARRAY[ … ] or ARRAY<T>[ … ]; Element is nil where no type is given.
	Array struct {
		Pos
		Element  *Type
		Elements []Expr
	}
	// Struct is STRUCT(…), STRUCT<…>(…) or (a, b).
	Struct struct {
		Pos
		Type   *Type
		Fields []Expr
		Names  []*Name // nil entries where no AS is given
	}
	// Subquery is a query as an expression: its Kind is "" (scalar), ARRAY or EXISTS.
	Subquery struct {
		Pos
		Kind  string
		Query *Query
	}
)

// LiteralKind tells literals apart.
type LiteralKind uint8

const (
	Null LiteralKind = iota
	Bool
	Integer
	Float
	String
	Bytes
)

// NamedArg is name => value.
type NamedArg struct {
	Name  Name
	Value Expr
}

// HavingModifier is HAVING MAX x or HAVING MIN x inside an aggregate.
type HavingModifier struct {
	Max bool
	X   Expr
}

// When is one branch of a Case.
type When struct{ If, Then Expr }

// OrderItem is one ORDER BY key. Nulls is FIRST, LAST or "".
type OrderItem struct {
	X     Expr
	Desc  bool
	Nulls string
}

// Window is OVER (…) or OVER name, or a definition of a WINDOW clause.
type Window struct {
	Pos
	Base      *Name
	Partition []Expr
	OrderBy   []OrderItem
	Frame     *Frame
}

// Frame is a window's frame; End is nil where there is no BETWEEN.
type Frame struct {
	Unit       string // ROWS or RANGE
	Start, End *Bound
}

// Bound is one end of a frame. Offset is nil for UNBOUNDED and CURRENT ROW.
type Bound struct {
	Kind   string // UNBOUNDED PRECEDING, PRECEDING, CURRENT ROW, FOLLOWING, UNBOUNDED FOLLOWING
	Offset Expr
}

// Type is a type as written: a name in upper case, with parameters, element or members.
type Type struct {
	Pos
	Name    string
	Params  []string
	Element *Type
	Fields  []TypeField
}

// TypeField is one member of a STRUCT type; Name is nil where it has none.
type TypeField struct {
	Name *Name
	Type *Type
}

// Query is WITH … body ORDER BY … LIMIT … OFFSET.
type Query struct {
	Pos
	Recursive     bool
	With          []CTE
	Body          Body
	OrderBy       []OrderItem
	Limit, Offset Expr
}

// CTE is one table of a WITH clause.
type CTE struct {
	Name  Name
	Query *Query
}

// Body is a *Select, a *SetOperation or a *Query in parentheses.
type Body interface{ At() Pos }

// SetOperation is left op right; Op is UNION, INTERSECT or EXCEPT.
type SetOperation struct {
	Pos
	Op          string
	All         bool
	Left, Right Body
}

// Select is one SELECT.
type Select struct {
	Pos
	Distinct bool
	As       string // STRUCT, VALUE or ""
	Items    []SelectItem
	From     From // nil where there is none
	Where    Expr
	GroupBy  *GroupBy
	Having   Expr
	Qualify  Expr
	Windows  []NamedWindow
}

// SelectItem is an expression with an optional alias, or a star.
type SelectItem struct {
	Pos
	X     Expr // nil for a bare *
	Alias *Name
	Star  *Star // nil for an expression
}

// Star is * or x.* with its modifiers.
type Star struct {
	Except  []Name
	Replace []SelectItem
}

// GroupBy is GROUP BY ALL, or a list of keys.
type GroupBy struct {
	Pos
	All  bool
	Keys []GroupKey
}

// GroupKey is an expression, or ROLLUP, CUBE or GROUPING SETS over sets of expressions.
type GroupKey struct {
	X    Expr
	Kind string // "" for a plain expression
	Sets [][]Expr
}

// NamedWindow is one definition of a WINDOW clause.
type NamedWindow struct {
	Name   Name
	Window *Window
}

// From is an item of a FROM clause: *Table, *Derived, *Unnest or *Join.
type From interface{ At() Pos }

type (
	// Table is a path in FROM: a table, a WITH table, or an array of an earlier item. Parts are the path's components; one
	// quoted name may hold several.
	Table struct {
		Pos
		Parts       []Name
		AsOf        Expr
		Alias       *Name
		WithOffset  bool
		OffsetAlias *Name
	}
	// Derived is a query in FROM.
	Derived struct {
		Pos
		Query *Query
		Alias *Name
	}
	// Unnest is UNNEST(x) [AS alias] [WITH OFFSET [AS alias]].
	Unnest struct {
		Pos
		X           Expr
		Alias       *Name
		WithOffset  bool
		OffsetAlias *Name
	}
	// Join is left kind right; Kind is CROSS, INNER, LEFT, RIGHT or FULL.
	Join struct {
		Pos
		Kind        string
		Left, Right From
		On          Expr
		Using       []Name
	}
)
