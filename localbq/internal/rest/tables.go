package rest

import (
	"encoding/json"
	"strings"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/projection"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

func (s *Server) insertTable(c *call) (any, error) {
	var body map[string]json.RawMessage
	if err := c.body(&body); err != nil {
		return nil, err
	}
	t, err := readTable(body)
	if err != nil {
		return nil, err
	}
	if err := c.nameTable(t.TableReference); err != nil {
		return nil, err
	}
	if err := s.permitDataset(c, "bigquery.tables.create"); err != nil {
		return nil, err
	}
	d, err := definition(t)
	if err != nil {
		return nil, err
	}
	if d.View != nil {
		if d.Schema, err = s.viewSchema(c, d.View); err != nil {
			return nil, err
		}
	}
	if err := s.limits.updateTable(c.table()); err != nil {
		return nil, err
	}
	created, err := s.Store.CreateTable(c.table(), d)
	if err != nil {
		return nil, err
	}
	return s.tableAnswer(c, created)
}

// nameTable takes the table's id from the body, and refuses a body that means another dataset than the path.
func (c *call) nameTable(ref *bqapi.TableReference) error {
	switch {
	case ref == nil || ref.TableId == "":
		return refusal.New(refusal.Invalid, "Required parameter is missing: tableReference.tableId")
	case ref.ProjectId != "" && ref.ProjectId != c.project():
		return refusal.New(refusal.Invalid, "tableReference.projectId %s differs from the project of the request, %s", ref.ProjectId, c.project())
	case ref.DatasetId != "" && ref.DatasetId != c.dataset().Dataset:
		return refusal.New(refusal.Invalid, "tableReference.datasetId %s differs from the dataset of the request, %s", ref.DatasetId, c.dataset().Dataset)
	}
	c.r.SetPathValue("table", ref.TableId)
	return nil
}

func (s *Server) getTable(c *call) (any, error) {
	of, err := c.target()
	if err != nil {
		return nil, err
	}
	if err := s.permitTable(c, "bigquery.tables.get"); err != nil {
		return nil, err
	}
	t, err := s.Store.Table(of.ref)
	if err != nil {
		return nil, err
	}
	if of.partition != "" {
		return s.partitionAnswer(c, of, t)
	}
	return s.tableAnswer(c, t)
}

// partitionAnswer is the resource of a table that is named with a partition: the table's, with the figures of the partition.
func (s *Server) partitionAnswer(c *call, of target, t *store.Table) (any, error) {
	a, err := s.tableAnswer(c, t)
	if err != nil {
		return nil, err
	}
	snapshot, err := t.Snapshot()
	if err != nil {
		return nil, err
	}
	found, err := of.source(t, snapshot)
	if err != nil {
		return nil, err
	}
	r := a.(tagged).body.(*bqapi.Table)
	r.Id, r.TableReference.TableId = of.String(), of.ref.Table+"$"+of.partition
	r.StreamingBuffer = nil
	r.NumRows, r.NumBytes = uint64(found.rows), store.BatchBytes(found.info.Schema, found.batches)
	r.NumTotalLogicalBytes, r.NumActiveLogicalBytes = r.NumBytes, r.NumBytes
	return a, nil
}

func (s *Server) patchTable(c *call) (any, error) {
	return s.changeTable(c, func(d *schema.Definition, body map[string]json.RawMessage) (map[string]json.RawMessage, error) {
		var next map[string]json.RawMessage
		if err := recast(definitionResource(d), &next); err != nil {
			return nil, err
		}
		if string(body["schema"]) == "null" { // a table does not lose its columns; bq sends this with every patch
			delete(body, "schema")
		}
		return next, merge(next, body, "labels", "timePartitioning", "view", "materializedView")
	})
}

func (s *Server) updateTable(c *call) (any, error) {
	return s.changeTable(c, func(_ *schema.Definition, body map[string]json.RawMessage) (map[string]json.RawMessage, error) {
		return body, nil
	})
}

// changeTable publishes what next makes of the definition in force and the request's body.
func (s *Server) changeTable(c *call, next func(*schema.Definition, map[string]json.RawMessage) (map[string]json.RawMessage, error)) (any, error) {
	if err := c.unsupportedParams("autodetect_schema"); err != nil {
		return nil, err
	}
	if err := s.permitTable(c, "bigquery.tables.update"); err != nil {
		return nil, err
	}
	var body map[string]json.RawMessage
	if err := c.body(&body); err != nil {
		return nil, err
	}
	if err := tableFields.check(body, "table"); err != nil {
		return nil, err
	}
	body = tableFields.keep(body)
	if err := s.limits.updateTable(c.table()); err != nil {
		return nil, err
	}
	_, err := s.Store.UpdateTable(c.table(), c.ifMatch(), func(d *schema.Definition) error {
		merged, err := next(d, body)
		if err != nil {
			return err
		}
		t, err := readTable(merged)
		if err != nil {
			return err
		}
		changed, err := definition(t)
		if err != nil {
			return err
		}
		return s.settle(c, d, changed)
	})
	if err != nil {
		return nil, err
	}
	t, err := s.Store.Table(c.table())
	if err != nil {
		return nil, err
	}
	return s.tableAnswer(c, t)
}

// settle makes d what a client asked for, with the schema of a view computed from its new text.
func (s *Server) settle(c *call, d, changed *schema.Definition) (err error) {
	if changed.View != nil && (d.View == nil || d.View.Query != changed.View.Query) {
		if changed.Schema, err = s.viewSchema(c, changed.View); err != nil {
			return err
		}
	} else if d.View != nil && changed.Schema == nil {
		changed.Schema = d.Schema
	}
	changed.MaxStaleness = d.MaxStaleness // which only DDL sets
	*d = *changed
	return nil
}

func (s *Server) deleteTable(c *call) (any, error) {
	of, err := c.target()
	if err != nil {
		return nil, err
	}
	if err := s.permitTable(c, "bigquery.tables.delete"); err != nil {
		return nil, err
	}
	if of.partition == "" {
		return noContent{}, s.Store.DeleteTable(of.ref)
	}
	t, err := s.writable(of.ref)
	if err != nil {
		return nil, err
	}
	return noContent{}, of.delete(t)
}

func (s *Server) listTables(c *call) (any, error) {
	if err := s.permitDataset(c, "bigquery.tables.list"); err != nil {
		return nil, err
	}
	tables, err := s.Store.Tables(c.dataset())
	if err != nil {
		return nil, err
	}
	items, next, err := page(c, tables, func(t *store.Table) string { return t.Ref().Table })
	if err != nil {
		return nil, err
	}
	out := &bqapi.TableList{
		Kind: "bigquery#tableList", NextPageToken: next, TotalItems: int64(len(tables)), ForceSendFields: []string{"TotalItems"},
	}
	for _, t := range items {
		out.Tables = append(out.Tables, listedTable(t.Info()))
	}
	out.Etag = listTag(out.Tables)
	return out, nil
}

func listedTable(info *store.Info) *bqapi.TableListTables {
	r := definitionResource(info.Definition)
	out := &bqapi.TableListTables{
		Kind: "bigquery#table", Id: info.Ref.String(), TableReference: tableReference(info.Ref), Type: info.Kind(),
		FriendlyName: r.FriendlyName, Labels: r.Labels, TimePartitioning: r.TimePartitioning, RangePartitioning: r.RangePartitioning,
		Clustering: r.Clustering, ExpirationTime: r.ExpirationTime, CreationTime: info.Created.UnixMilli(),
		RequirePartitionFilter: r.RequirePartitionFilter,
	}
	if info.View != nil {
		out.View = &bqapi.TableListTablesView{ForceSendFields: []string{"UseLegacySql"}}
	}
	return out
}

func tableReference(ref store.TableRef) *bqapi.TableReference {
	return &bqapi.TableReference{ProjectId: ref.Project, DatasetId: ref.Dataset, TableId: ref.Table}
}

// tableAnswer is a table resource, with the figures that only BigQuery writes.
func (s *Server) tableAnswer(c *call, t *store.Table) (any, error) {
	view, err := c.tableView()
	if err != nil {
		return nil, err
	}
	info, stats := t.Info(), t.Stats()
	r := definitionResource(info.Definition)
	if selected := c.selectedFields(); selected != nil {
		picked, unknown := projection.Of(info.Schema, selected)
		if len(unknown) > 0 {
			return nil, refusal.New(refusal.Invalid, "No such field: %s", strings.Join(unknown, ", "))
		}
		r.Schema = picked.Schema.REST()
	}
	r.Kind, r.Id, r.Etag, r.TableReference = "bigquery#table", info.Ref.String(), info.ETag, tableReference(info.Ref)
	r.SelfLink = c.link("projects", info.Ref.Project, "datasets", info.Ref.Dataset, "tables", info.Ref.Table)
	r.Type = info.Kind()
	r.CreationTime, r.LastModifiedTime = info.Created.UnixMilli(), uint64(stats.Modified.UnixMilli())
	if d, err := s.Store.Dataset(info.Ref.DatasetRef()); err == nil {
		r.Location = d.Location
	}
	if view != "BASIC" && info.View == nil {
		s.addFigures(r, t, stats)
	}
	return tagged{info.ETag, r}, nil
}

// tableView is how much of a table is asked for.
func (c *call) tableView() (string, error) {
	switch view := c.param("view"); view {
	case "", "TABLE_METADATA_VIEW_UNSPECIFIED":
		return "STORAGE_STATS", nil
	case "BASIC", "STORAGE_STATS", "FULL":
		return view, nil
	default:
		return "", invalidParam("view", view, "BASIC, STORAGE_STATS or FULL")
	}
}
