// Package googlesql reads the query part of GoogleSQL: text to tokens to a syntax tree. It knows no tables, no types and no
// functions; what a name means is decided by package compile. Pure Go.
//
// Everything that is no query (DML, DDL, scripts) is recognised by its first word and refused by name.
package googlesql
