// Package decode turns the rows of an append request into columns, as the Storage Write API does it.
//
// Compile matches a writer's descriptor with a table's schema once and gives a Plan; the plan parses rows straight into
// column vectors, with every check of type, range, length and presence, and without message objects. A plan belongs to
// one connection and one definition of the table. Where a row is bad the whole request is: Decode reports the bad rows,
// and nothing comes out.
//
// CompileArrow does the same for a writer's Arrow schema; rows are then taken from the columns of a batch, under the same
// checks.
//
// A plan is a tree, one node per struct column. A message is parsed in two steps: the wire is walked once and each
// column's last value noted (protocol buffers say that the last one wins), then the columns are filled in order, the
// missing ones with NULL or a default. Elements of repeated columns are the exception: they are appended as they come.
package decode
