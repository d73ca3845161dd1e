// Package compile gives GoogleSQL queries their meaning and writes them down for DuckDB. Pure Go; it runs nothing.
//
// Names are resolved here, against schemas, and every expression has a GoogleSQL type here, so DuckDB never sees a name of
// the user's: its tables are t1, t2, …, its columns c0, c1, …, members of structs _0, _1, …. No identifier of a statement
// can so mean something to DuckDB, and no rule of DuckDB's about names, cases or aliases can show through. Whatever is not
// known to mean the same in both is refused: a function is callable only where the table of functions says how, by the
// types of its arguments.
//
// How types are held: INT64 BIGINT, FLOAT64 DOUBLE, NUMERIC DECIMAL(38,9), STRING VARCHAR, BYTES BLOB, DATE DATE, TIME TIME,
// DATETIME and TIMESTAMP both TIMESTAMP (which of them is known here), INTERVAL INTERVAL, JSON and GEOGRAPHY VARCHAR,
// STRUCT STRUCT with members by position, RANGE a STRUCT of two, ARRAY a list. BIGNUMERIC has more digits than DuckDB
// knows: it is a BLOB of 32 bytes that sorts as the numbers do, with functions of the engine for arithmetic.
package compile
