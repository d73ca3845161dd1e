// Package copyrow makes rows to be written of rows that were read: what a copy from table to table needs. Values keep their
// types and go from the read row to the bytes of the written one without an object in between.
//
// An [Encoder] finds columns by name, without regard to case, and members of STRUCTs likewise. A column must be of the same
// type on both sides, but for NUMERIC and BIGNUMERIC, which take each other's values where they fit. A column that is not read
// stays NULL.
package copyrow
