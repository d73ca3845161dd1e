// Package mark finds the fields that options mark: text that becomes a JSON or GEOGRAPHY column instead of a STRING one.
//
// A format asks about every field that it makes a column of, by its dotted path from the root, and reports at the end what
// no field answered to. Faults are *row.Error values of the kinds C-PATH, C-BOTH and C-MARK.
package mark
