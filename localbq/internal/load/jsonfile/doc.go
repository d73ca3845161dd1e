// Package jsonfile reads newline-delimited JSON as load jobs do: one object a line.
package jsonfile
