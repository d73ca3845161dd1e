package localbq

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq/internal/objects"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// CreateDataset makes a dataset of the instance's project, in US.
func (i *Instance) CreateDataset(id string) error {
	_, err := i.store.CreateDataset(store.DatasetRef{Project: i.config.Project, Dataset: id}, store.DatasetOptions{})
	return err
}

// CreateBucket makes a bucket of the instance's project, in US, unless there is one of that name.
func (i *Instance) CreateBucket(name string) error {
	_, err := i.objects.InsertBucket(objects.Bucket{Name: name, Project: i.config.Project})
	if r := (*refusal.Error)(nil); errors.As(err, &r) && r.Reason == refusal.Conflict {
		return nil
	}
	return err
}

// Projects are the projects that have datasets, by name.
func (i *Instance) Projects() []string { return i.store.Projects() }

// CreateTable makes a table, named "dataset.table" or "project.dataset.table", with these columns. Whatever else a table can
// have is set over REST.
func (i *Instance) CreateTable(table string, columns *bqapi.TableSchema) error {
	ref, err := i.config.table(table)
	if err != nil {
		return err
	}
	s, err := schema.FromREST(columns)
	if err != nil {
		return err
	}
	_, err = i.store.CreateTable(ref, &schema.Definition{Schema: s})
	return err
}

// DeleteTable deletes a table.
func (i *Instance) DeleteTable(table string) error {
	ref, err := i.config.table(table)
	if err != nil {
		return err
	}
	return i.store.DeleteTable(ref)
}

// SetMode chooses how much a table keeps of what is written to it from now on.
func (i *Instance) SetMode(table string, m Mode) error {
	ref, err := i.config.table(table)
	if err != nil {
		return err
	}
	return i.store.SetMode(ref, m)
}

// ApplyChanges brings a table's base up to date with what change data capture has written, as BigQuery does in the background
// now and then: what reads the base sees it, and queries have nothing to merge.
func (i *Instance) ApplyChanges(table string) error {
	t, err := i.table(table)
	if err != nil {
		return err
	}
	return t.Apply()
}

// Batches are a table's visible rows in storage order, as the store holds them: the Arrow types are those of the Storage Read
// API, but for INTERVAL, a struct of months, days and micros. They belong to the instance: they may be read and kept, and
// must not be released without a Retain first.
func (i *Instance) Batches(table string) ([]arrow.RecordBatch, error) {
	snapshot, err := i.snapshot(table)
	if err != nil {
		return nil, err
	}
	var out []arrow.RecordBatch
	for _, part := range snapshot.Parts() {
		out = append(out, part.Batch)
	}
	return out, nil
}

func (i *Instance) snapshot(table string) (*store.Snapshot, error) {
	t, err := i.table(table)
	if err != nil {
		return nil, err
	}
	return t.Snapshot()
}

func (i *Instance) table(name string) (*store.Table, error) {
	ref, err := i.config.table(name)
	if err != nil {
		return nil, err
	}
	return i.store.Table(ref)
}

// NumRows is the number of a table's visible rows, in any mode.
func (i *Instance) NumRows(table string) (int64, error) {
	t, err := i.table(table)
	if err != nil {
		return 0, err
	}
	return t.Stats().Rows, nil
}
