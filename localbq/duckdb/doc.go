// Package duckdb is the query engine of the local BigQuery: it runs GoogleSQL queries, and row restrictions of read
// sessions, in DuckDB over the tables of the service.
//
//	queries, err := duckdb.New()
//	…
//	instance, err := localbq.Start(ctx, localbq.Config{Queries: queries})
//
// It is a package of its own because it links a database: a program that does not import it pays neither the time nor the
// size. Without cgo New answers an error, and the service runs without queries.
//
// # Language
//
// SELECT in the breadth of everyday work: expressions, aliases, * with EXCEPT and REPLACE, DISTINCT; tables, subqueries,
// joins with ON and USING, UNNEST and correlated arrays with and without offset; WHERE, GROUP BY with ordinals, aliases, ALL,
// ROLLUP, CUBE and GROUPING SETS, HAVING, QUALIFY, ORDER BY, LIMIT; WITH, also RECURSIVE; set operations; scalar, ARRAY, IN
// and EXISTS subqueries; FOR SYSTEM_TIME AS OF; window functions; parameters; views; JSON, structs and arrays; some 250
// functions. Every expression is typed before DuckDB sees it, and what is not known to mean there what it means in BigQuery
// is refused, with BigQuery's words where it refuses too, else beginning with "Not supported by local BigQuery:".
//
// Statements that change something: INSERT, UPDATE, DELETE, TRUNCATE; CREATE and DROP of tables, views and schemas; ALTER TABLE
// with ADD COLUMN, DROP NOT NULL, options and primary keys. The service carries them out; this package says what is to be done.
//
// Refused as not supported: MERGE, scripts, INFORMATION_SCHEMA but for TABLES, COLUMNS, TABLE_OPTIONS, VIEWS, TABLE_CONSTRAINTS
// and KEY_COLUMN_USAGE of a dataset, wildcard tables, PIVOT, UNPIVOT, TABLESAMPLE, pipe
// syntax, user-defined functions, CAST with FORMAT or with parameterized types, SUM, AVG and rounding of BIGNUMERIC, and the functions
// that are not in the table of functions.
//
// # Known differences
//
// NaN sorts above all numbers and equals itself. APPROX_ functions are exact or approximate in their own way. The order of
// rows without ORDER BY is another. Geography is text: nothing of it is computed. Errors of single rows name no place in the
// statement.
//
// # Safety
//
// DuckDB runs in memory, without files, network or extensions, with a bound on memory, and cannot be told otherwise by SQL.
// Nothing of a statement's text reaches it: names are replaced, literals are rewritten.
package duckdb
