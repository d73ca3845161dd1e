package query

// InformationSchema is the component of a path that leads to views of metadata. A Catalog finds one of InformationViews as the
// table "INFORMATION_SCHEMA.view" of a dataset, which no table can be called.
const InformationSchema = "INFORMATION_SCHEMA"

// InformationViews are the views that a Catalog must have.
var InformationViews = []string{"COLUMNS", "KEY_COLUMN_USAGE", "TABLES", "TABLE_CONSTRAINTS", "TABLE_OPTIONS", "VIEWS"}
