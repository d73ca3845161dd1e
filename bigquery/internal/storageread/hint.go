package storageread

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// hint is a sentence that helps. It decides nothing.
func (c *Config) hint(err error) string {
	if e, ok := errors.AsType[*QueryJobError](err); ok {
		return c.queryHint(e)
	}
	if _, ok := errors.AsType[*refusedQuery](err); ok && isHTTP(err, http.StatusNotFound) {
		return c.placeHint("")
	}
	if isHTTP(err, http.StatusForbidden) {
		return c.restHint()
	}
	s, ok := status.FromError(err)
	if !ok {
		return ""
	}
	message := strings.ToLower(s.Message())
	switch {
	case s.Code() == codes.PermissionDenied:
		return "this needs the permission bigquery.readsessions.create in the project " + c.Parent +
			" and bigquery.tables.getData on the table"
	case s.Code() == codes.InvalidArgument && strings.Contains(message, "non-table entities") && c.Query != nil:
		return "the statement has been run, and what it made is no table with rows to read, but a view, say, that queries can name"
	case s.Code() == codes.InvalidArgument && strings.Contains(message, "non-table entities"):
		// The words for logical and materialized views alike (measured 2026-08).
		return "the Storage Read API reads what is stored, and a view has nothing stored: read the result of a query" +
			" instead, Query: \"SELECT * FROM `" + c.Table.String() + "`\", or set MaterializeViews"
	case s.Code() == codes.InvalidArgument && strings.Contains(message, "time travel"):
		return "the table's earlier versions are kept for its time travel window, at most 7 days, and SnapshotTime lies before it:" +
			" choose a later instant, or restore a table snapshot that was taken then"
	}
	return ""
}

// query is the statement that is run, or how a view is; nil for a plain table.
func (c *Config) query() *Query {
	if c.Query != nil {
		return c.Query
	}
	return c.Views
}

// queryHint says what to change about a query that BigQuery ran and gave up.
func (c *Config) queryHint(e *QueryJobError) string {
	switch e.Reason {
	case "notFound":
		return c.placeHint(e.Location)
	case "accessDenied":
		return c.restHint()
	}
	return ""
}

// placeHint is for a query that did not find what it reads, or where to leave its result: it ran in that location, "" where nobody
// says.
func (c *Config) placeHint(location string) string {
	q := c.query()
	switch {
	case q == nil:
		return ""
	case q.Location != "":
		return "the query ran in " + cmp.Or(location, q.Location) + ", as QueryLocation says, where only what is there can be found: name the location of the" +
			" tables it reads and of QueryResultDataset"
	case location == "":
		return "the query ran where BigQuery found its tables to be, or took it to be: set QueryLocation where that is wrong"
	}
	return "the query ran in " + location + ", where BigQuery found its tables to be or took it to be: set QueryLocation where that is wrong"
}

// restHint names what may be missing where a call of the REST API is denied.
func (c *Config) restHint() string {
	q := c.query()
	if q == nil {
		return ""
	}
	needs := "this needs the permissions bigquery.jobs.create in the project " + q.Project + ", bigquery.tables.getData on what the query reads"
	if c.Views != nil {
		needs += ", bigquery.tables.get on " + c.Table.String()
	}
	if l := q.Landing; l.named() {
		needs += ", and bigquery.tables.create, updateData and update in the dataset " + l.Project + "." + l.Dataset
	}
	return needs
}
