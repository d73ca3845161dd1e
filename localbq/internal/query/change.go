package query

import "github.com/millrace-dev/millrace/localbq/internal/schema"

// Change is what a statement that is no query asks of the service, which makes it. Rows, where there are any, are the rows of
// the Result: those of UPDATE, DELETE and MERGE have the ids of the rows that go in their first column, RowID; those of MERGE
// have in the second, Action, what is done about the row, and are in its order.
type Change struct {
	// Kind is the statement's type as jobs name it: INSERT, UPDATE, DELETE, MERGE, TRUNCATE_TABLE, CREATE_TABLE, CREATE_TABLE_AS_SELECT, CREATE_VIEW,
	// CREATE_MATERIALIZED_VIEW, CREATE_SCHEMA, DROP_TABLE, DROP_VIEW, DROP_MATERIALIZED_VIEW, DROP_SCHEMA,
	// ALTER_TABLE, ALTER_VIEW, ALTER_MATERIALIZED_VIEW or ALTER_SCHEMA.
	Kind string
	// Target is the table; a dataset has no Table.
	Target Ref
	// Exists is IF EXISTS or IF NOT EXISTS: what is missing, or there, is no fault.
	Exists bool
	// Replace is OR REPLACE.
	Replace bool
	// Cascade is CASCADE of DROP SCHEMA.
	Cascade bool
	// Definition is that of a table or view that is created.
	Definition *schema.Definition
	// Alter edits the definition in force, for ALTER_TABLE and those of views. What it does to columns is within schema.Alter.
	Alter func(*schema.Definition) error
	// Rename is the new name of the table, for an ALTER_TABLE without Alter.
	Rename string
	// Dataset are the options of CREATE SCHEMA, and AlterDataset edits those in force, for ALTER_SCHEMA.
	Dataset      DatasetOptions
	AlterDataset func(*DatasetOptions) error
}

// DatasetOptions are the options of a schema; zero values are not set. Lifetimes are in milliseconds.
type DatasetOptions struct {
	Location, Description, FriendlyName                       string
	Labels                                                    map[string]string
	TableExpirationMs, PartitionExpirationMs, TimeTravelHours int64
}
