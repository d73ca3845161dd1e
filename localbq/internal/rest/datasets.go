package rest

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// datasetFields are what datasets.insert, patch and update may carry.
var datasetFields = fieldsOf(
	`datasetReference location description friendlyName labels defaultTableExpirationMs defaultPartitionExpirationMs
	maxTimeTravelHours storageBillingModel defaultCollation isCaseInsensitive access`,
	`kind id selfLink etag creationTime lastModifiedTime type satisfiesPzs satisfiesPzi catalogSource restrictions tags`)

func (s *Server) insertDataset(c *call) (any, error) {
	var body map[string]json.RawMessage
	if err := c.body(&body); err != nil {
		return nil, err
	}
	d, err := readDataset(body)
	if err != nil {
		return nil, err
	}
	if d.DatasetReference == nil || d.DatasetReference.DatasetId == "" {
		return nil, refusal.New(refusal.Invalid, "Required parameter is missing: datasetReference.datasetId")
	}
	if p := d.DatasetReference.ProjectId; p != "" && p != c.project() {
		return nil, refusal.New(refusal.Invalid, "datasetReference.projectId %s differs from the project of the request, %s", p, c.project())
	}
	c.r.SetPathValue("dataset", d.DatasetReference.DatasetId)
	if err := s.permitDataset(c, "bigquery.datasets.create"); err != nil {
		return nil, err
	}
	options, err := datasetOptions(d, body["access"])
	if err != nil {
		return nil, err
	}
	created, err := s.Store.CreateDataset(c.dataset(), options)
	if err != nil {
		return nil, err
	}
	return c.datasetAnswer(created)
}

func readDataset(body map[string]json.RawMessage) (*bqapi.Dataset, error) {
	if err := datasetFields.check(body, "dataset"); err != nil {
		return nil, err
	}
	var d bqapi.Dataset
	return &d, recast(datasetFields.keep(body), &d)
}

func datasetOptions(d *bqapi.Dataset, access json.RawMessage) (store.DatasetOptions, error) {
	switch d.StorageBillingModel {
	case "", "STORAGE_BILLING_MODEL_UNSPECIFIED", "LOGICAL", "PHYSICAL":
	default:
		return store.DatasetOptions{}, refusal.New(refusal.Invalid, "Invalid value for storageBillingModel: %s is not a valid value", d.StorageBillingModel)
	}
	return store.DatasetOptions{
		Location: d.Location, Description: d.Description, FriendlyName: d.FriendlyName, Labels: d.Labels,
		DefaultTableExpirationMs: d.DefaultTableExpirationMs, DefaultPartitionExpirationMs: d.DefaultPartitionExpirationMs,
		MaxTimeTravelHours: d.MaxTimeTravelHours, StorageBillingModel: d.StorageBillingModel,
		DefaultCollation: d.DefaultCollation, CaseInsensitive: d.IsCaseInsensitive, Access: access,
	}, nil
}

func (s *Server) getDataset(c *call) (any, error) {
	if err := s.permitDataset(c, "bigquery.datasets.get"); err != nil {
		return nil, err
	}
	d, err := s.Store.Dataset(c.dataset())
	if err != nil {
		return nil, err
	}
	return c.datasetAnswer(d)
}

func (s *Server) patchDataset(c *call) (any, error) {
	return s.changeDataset(c, func(o store.DatasetOptions, body map[string]json.RawMessage) (map[string]json.RawMessage, error) {
		var next map[string]json.RawMessage
		if err := recast(optionsResource(o), &next); err != nil {
			return nil, err
		}
		return next, merge(next, body, "labels")
	})
}

// updateDataset replaces everything that is not fixed for a dataset's life.
func (s *Server) updateDataset(c *call) (any, error) {
	return s.changeDataset(c, func(o store.DatasetOptions, body map[string]json.RawMessage) (map[string]json.RawMessage, error) {
		var kept map[string]json.RawMessage
		if err := recast(optionsResource(o), &kept); err != nil {
			return nil, err
		}
		switch access := kept["access"]; c.param("updateMode") {
		case "UPDATE_ACL":
			delete(kept, "access")
			return kept, merge(kept, body)
		case "UPDATE_METADATA":
			if access != nil {
				body["access"] = access
			}
		}
		return body, nil
	})
}

// changeDataset publishes what next makes of the options in force and the request's body.
func (s *Server) changeDataset(c *call, next func(store.DatasetOptions, map[string]json.RawMessage) (map[string]json.RawMessage, error)) (any, error) {
	if err := s.permitDataset(c, "bigquery.datasets.update"); err != nil {
		return nil, err
	}
	var body map[string]json.RawMessage
	if err := c.body(&body); err != nil {
		return nil, err
	}
	if err := datasetFields.check(body, "dataset"); err != nil {
		return nil, err
	}
	body, err := c.updateMode(datasetFields.keep(body))
	if err != nil {
		return nil, err
	}
	changed, err := s.Store.UpdateDataset(c.dataset(), c.ifMatch(), func(o *store.DatasetOptions) error {
		merged, err := next(*o, body)
		if err != nil {
			return err
		}
		d, err := readDataset(merged)
		if err != nil {
			return err
		}
		options, err := datasetOptions(d, merged["access"])
		if err != nil {
			return err
		}
		if options.Location == "" || strings.EqualFold(options.Location, o.Location) {
			options.Location = o.Location
		}
		*o = options
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.datasetAnswer(changed)
}

// updateMode is the part of a body that the parameter of that name lets change.
func (c *call) updateMode(body map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	switch mode := c.param("updateMode"); mode {
	case "", "UPDATE_MODE_UNSPECIFIED", "UPDATE_FULL":
		return body, nil
	case "UPDATE_METADATA":
		delete(body, "access")
		return body, nil
	case "UPDATE_ACL":
		return fieldsOf("access", "").keep(body), nil
	default:
		return nil, invalidParam("updateMode", mode, "UPDATE_METADATA, UPDATE_ACL or UPDATE_FULL")
	}
}

// ifMatch is the etag the client has seen; "" where it does not say.
func (c *call) ifMatch() string { return strings.Trim(c.r.Header.Get("If-Match"), `"`) }

func (s *Server) deleteDataset(c *call) (any, error) {
	if err := s.permitDataset(c, "bigquery.datasets.delete"); err != nil {
		return nil, err
	}
	contents, err := c.flag("deleteContents")
	if err != nil {
		return nil, err
	}
	return noContent{}, s.Store.DeleteDataset(c.dataset(), contents)
}

func (s *Server) listDatasets(c *call) (any, error) {
	if err := c.unsupportedParams("filter"); err != nil {
		return nil, err
	}
	all, err := c.flag("all")
	if err != nil {
		return nil, err
	}
	var found []*store.Dataset
	for _, d := range s.Store.Datasets(c.project()) {
		if all || !d.Hidden() {
			found = append(found, d)
		}
	}
	items, next, err := page(c, found, func(d *store.Dataset) string { return d.Ref.Dataset })
	if err != nil {
		return nil, err
	}
	out := &bqapi.DatasetList{Kind: "bigquery#datasetList", Etag: listTag(items), NextPageToken: next}
	for _, d := range items {
		out.Datasets = append(out.Datasets, &bqapi.DatasetListDatasets{
			Kind: "bigquery#dataset", Id: d.Ref.String(), DatasetReference: datasetReference(d.Ref),
			FriendlyName: d.FriendlyName, Labels: d.Labels, Location: d.Location,
		})
	}
	return out, nil
}

func datasetReference(ref store.DatasetRef) *bqapi.DatasetReference {
	return &bqapi.DatasetReference{ProjectId: ref.Project, DatasetId: ref.Dataset}
}

// optionsResource is the part of a dataset resource that a client may write.
func optionsResource(o store.DatasetOptions) map[string]any {
	r := map[string]any{}
	typed := &bqapi.Dataset{
		Location: o.Location, Description: o.Description, FriendlyName: o.FriendlyName, Labels: o.Labels,
		DefaultTableExpirationMs: o.DefaultTableExpirationMs, DefaultPartitionExpirationMs: o.DefaultPartitionExpirationMs,
		MaxTimeTravelHours: o.MaxTimeTravelHours, StorageBillingModel: o.StorageBillingModel,
		DefaultCollation: o.DefaultCollation, IsCaseInsensitive: o.CaseInsensitive,
	}
	if err := recast(typed, &r); err != nil {
		panic(err) // a resource of the API always marshals
	}
	if o.Access != nil {
		r["access"] = o.Access
	}
	return r
}

func (c *call) datasetAnswer(d *store.Dataset) (any, error) {
	r := optionsResource(d.DatasetOptions)
	r["kind"] = "bigquery#dataset"
	r["id"] = d.Ref.String()
	r["selfLink"] = c.link("projects", d.Ref.Project, "datasets", d.Ref.Dataset)
	r["etag"] = d.ETag
	r["datasetReference"] = datasetReference(d.Ref)
	r["type"] = "DEFAULT"
	r["creationTime"] = millis(d.Created)
	r["lastModifiedTime"] = millis(d.Modified)
	return tagged{d.ETag, r}, nil
}

// millis is an instant as the API writes it: milliseconds since the epoch, in a string.
func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// link is the address of a resource on this server.
func (c *call) link(parts ...string) string {
	return "http://" + c.r.Host + "/bigquery/v2/" + strings.Join(parts, "/")
}
