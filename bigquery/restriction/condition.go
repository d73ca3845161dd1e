package restriction

import "github.com/millrace-dev/millrace/bigquery/table"

// Condition is true, false or unknown for a row, as in SQL. The zero value is Unknown.
type Condition struct {
	kind     kind
	column   string
	op       Op
	value    Literal
	parts    []Condition
	rendered string // of a partition
}

type kind uint8

const (
	unknown kind = iota
	comparison
	null
	notNull
	all
	anyOf
	partition
)

// Op compares a column with a value.
type Op uint8

const (
	Equal Op = iota + 1
	NotEqual
	Less
	AtMost
	More
	AtLeast
)

var opText = map[Op]string{Equal: "=", NotEqual: "<>", Less: "<", AtMost: "<=", More: ">", AtLeast: ">="}

// Compare holds where a column of the table, not a member of one, compares with a value.
func Compare(column string, op Op, v Literal) Condition {
	return Condition{kind: comparison, column: column, op: op, value: v}
}

// IsNull holds where a column is NULL.
func IsNull(column string) Condition { return Condition{kind: null, column: column} }

// IsNotNull holds where a column is not NULL.
func IsNotNull(column string) Condition { return Condition{kind: notNull, column: column} }

// All holds where all of its parts do.
func All(parts ...Condition) Condition { return Condition{kind: all, parts: parts} }

// Any holds where one of its parts does.
func Any(parts ...Condition) Condition { return Condition{kind: anyOf, parts: parts} }

// Unknown is a condition that only its owner can ask.
func Unknown() Condition { return Condition{} }

// comparable says which comparisons a session makes as the caller would. Texts are compared by the collation of their column,
// so that only equality is certain to pass every row that it should.
func comparable(t table.Type, op Op) bool {
	switch t {
	case table.Int64, table.Date, table.Float64, table.Numeric, table.BigNumeric, table.Bytes, table.Time, table.DateTime, table.Timestamp:
		return true
	case table.Bool:
		return op == Equal || op == NotEqual
	case table.String:
		return op == Equal
	}
	return false
}

// nullable says whether a column of that type can be asked for NULL.
func nullable(t table.Type) bool { return comparable(t, Equal) }
