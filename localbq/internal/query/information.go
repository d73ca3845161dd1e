package query

import "strings"

// InformationSchema is the component of a path that leads to views of metadata. A Catalog finds one of InformationViews as the
// table "INFORMATION_SCHEMA.view" of a dataset, which no table can be called.
const InformationSchema = "INFORMATION_SCHEMA"

// InformationViews are the views of a dataset that a Catalog must have.
var InformationViews = []string{"COLUMNS", "COLUMN_FIELD_PATHS", "KEY_COLUMN_USAGE", "PARTITIONS", "TABLES", "TABLE_CONSTRAINTS", "TABLE_OPTIONS", "VIEWS"}

// RegionViews are those of a project in a region, which is in the place of the dataset: "region-us", or "" for that of the job.
var RegionViews = []string{"JOBS", "JOBS_BY_PROJECT", "JOBS_BY_USER", "SCHEMATA", "SCHEMATA_OPTIONS"}

// Region is the location that a component of a path names; false for the name of a dataset.
func Region(component string) (location string, ok bool) {
	if prefix := "region-"; len(component) > len(prefix) && strings.EqualFold(component[:len(prefix)], prefix) {
		return component[len(prefix):], true
	}
	return "", false
}
