// Package native drives DuckDB through its C interface: connections and queries, vectors in both directions, functions and
// table scans written in Go. It knows Arrow and DuckDB, and neither BigQuery nor SQL.
//
// The binding's own driver works row by row with values in interfaces, and its Arrow part takes a build tag that users
// cannot be asked for; vectors of 2,048 values, filled and read in place, are an order of magnitude faster than the former
// and need no tag.
package native
