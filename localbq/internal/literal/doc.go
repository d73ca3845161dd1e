// Package literal reads the SQL expressions that a column's default may be: literals of every type, arrays of them, and
// the functions of the current time. Anything else is refused when the table is made, and not found out later.
package literal
