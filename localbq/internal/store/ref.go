package store

import (
	"strings"
)

// DatasetRef names a dataset. Comparable.
type DatasetRef struct {
	Project string `json:"project"`
	Dataset string `json:"dataset"`
}

// String is the spelling of REST messages, "p:d".
func (r DatasetRef) String() string { return r.Project + ":" + r.Dataset }

// Table names a table of this dataset.
func (r DatasetRef) Table(id string) TableRef { return TableRef{r.Project, r.Dataset, id} }

// TableRef names a table. Comparable.
type TableRef struct {
	Project string `json:"project"`
	Dataset string `json:"dataset"`
	Table   string `json:"table"`
}

// String is the spelling of REST messages, "p:d.t".
func (r TableRef) String() string { return r.Project + ":" + r.Dataset + "." + r.Table }

// Path is the resource name "projects/p/datasets/d/tables/t".
func (r TableRef) Path() string {
	return "projects/" + r.Project + "/datasets/" + r.Dataset + "/tables/" + r.Table
}

// DatasetRef names the dataset the table is in.
func (r TableRef) DatasetRef() DatasetRef { return DatasetRef{r.Project, r.Dataset} }

// ParseTablePath reads "projects/p/datasets/d/tables/t" and reports whether s is one.
func ParseTablePath(s string) (TableRef, bool) {
	p := strings.Split(s, "/")
	if len(p) != 6 || p[0] != "projects" || p[2] != "datasets" || p[4] != "tables" || p[1] == "" || p[3] == "" || p[5] == "" {
		return TableRef{}, false
	}
	return TableRef{p[1], p[3], p[5]}, true
}
