package rest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/localbq/internal/projection"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// tabledata.list: rows of a table in storage order. The pages of one listing, which a token ties together, are of one
// snapshot, so rows written meanwhile neither shift nor repeat anything.

// rowList is the answer of tabledata.list.
type rowList struct {
	Kind      string          `json:"kind"`
	Etag      string          `json:"etag"`
	TotalRows string          `json:"totalRows"`
	PageToken string          `json:"pageToken,omitempty"`
	Rows      json.RawMessage `json:"rows,omitempty"`
}

func (s *Server) listRows(c *call) (any, error) {
	of, err := c.target()
	if err != nil {
		return nil, err
	}
	if err := s.permitTable(c, "bigquery.tables.getData"); err != nil {
		return nil, err
	}
	t, err := s.Store.Table(of.ref)
	if err != nil {
		return nil, err
	}
	if kind := t.Info().Kind(); kind != "TABLE" {
		return nil, refusal.New(refusal.Invalid, "Cannot list a table of type %s.", kind)
	}
	asked, err := c.rowRange()
	if err != nil {
		return nil, err
	}
	snapshot, err := asked.snapshot(t)
	if err != nil {
		return nil, err
	}
	chosen, unknown := projection.Of(snapshot.Info.Schema, c.selectedFields())
	if len(unknown) > 0 {
		return nil, refusal.New(refusal.Invalid, "The following selected fields do not exist in the table schema: %s", strings.Join(unknown, ", "))
	}
	found, err := of.source(t, snapshot)
	if err != nil {
		return nil, err
	}
	rows, n, err := asked.format.appendRows(chosen.Schema, projected(found.batches, chosen), asked.start, asked.limit)
	if err != nil {
		return nil, err
	}
	out := &rowList{
		Kind: "bigquery#tableDataList", Etag: strconv.FormatInt(snapshot.Version, 36),
		TotalRows: strconv.FormatInt(found.rows, 10), Rows: rows,
	}
	if n == 0 {
		out.Rows = nil
	}
	if next := asked.start + n; next < found.rows && asked.limit != 0 {
		out.PageToken = rowToken(snapshot.Version, next)
	}
	return out, nil
}

func (c *call) selectedFields() []string {
	if text := c.param("selectedFields"); text != "" {
		return strings.Split(text, ",")
	}
	return nil
}

func projected(batches []arrow.RecordBatch, p *projection.Projection) []arrow.RecordBatch {
	out := make([]arrow.RecordBatch, len(batches))
	for i, b := range batches {
		out[i] = p.Apply(b)
	}
	return out
}

// rowRange is which rows a call asks for.
type rowRange struct {
	version      int64 // of the snapshot that a token goes on with; 0 is now
	start, limit int64 // limit is negative where there is none
	format       rowFormat
}

func (c *call) rowRange() (r rowRange, err error) {
	if r.limit, err = c.number("maxResults"); err != nil {
		return r, err
	}
	if r.start, err = c.number("startIndex"); err != nil {
		return r, err
	}
	r.start = max(r.start, 0)
	int64s, err := c.flag("formatOptions.useInt64Timestamp")
	if err != nil {
		return r, err
	}
	if r.format, err = formatOf(int64s, c.param("formatOptions.timestampOutputFormat")); err != nil {
		return r, err
	}
	if token := c.param("pageToken"); token != "" {
		if n, _ := fmt.Sscanf(token, "%x.%x", &r.version, &r.start); n != 2 || r.start < 0 {
			return r, invalidParam("pageToken", token, "a token of an earlier answer")
		}
	}
	return r, nil
}

// rowToken names the rows from an index on, of the snapshot at a version.
func rowToken(version, next int64) string { return fmt.Sprintf("%x.%x", version, next) }

func (r rowRange) snapshot(t *store.Table) (*store.Snapshot, error) {
	return t.Base(r.version) // without the changes that have not been applied
}
