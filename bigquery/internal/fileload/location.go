package fileload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/millrace-dev/millrace/bigquery/internal/loadplan"
	"github.com/millrace-dev/millrace/bigquery/internal/restcall"
	"github.com/millrace-dev/millrace/bigquery/internal/tableadmin"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// locations knows where datasets are, one call for each. A job is where the dataset that it writes is.
type locations struct {
	fixed string // of all jobs; "" looks
	admin *tableadmin.Admin
	make  bool // datasets that are not there

	mu    sync.Mutex // guards places
	known map[datasetKey]*place
}

type datasetKey struct{ project, dataset string }

// place is where a dataset is.
type place struct {
	mu       sync.Mutex // guards location; held while it is looked up, so that it is once
	location string
}

func newLocations(fixed string, admin *tableadmin.Admin, makeDatasets bool) *locations {
	return &locations{fixed: fixed, admin: admin, make: makeDatasets, known: map[datasetKey]*place{}}
}

// of is the location of jobs that write a table.
func (l *locations) of(ctx context.Context, dst table.Destination) (string, error) {
	if l.fixed != "" {
		return l.fixed, nil
	}
	p := l.place(datasetKey{dst.Project, dst.Dataset})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.location != "" {
		return p.location, nil
	}
	location, err := l.look(ctx, dst)
	if err != nil {
		return "", err
	}
	p.location = location
	return location, nil
}

func (l *locations) place(key datasetKey) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.known[key]
	if p == nil {
		p = new(place)
		l.known[key] = p
	}
	return p
}

func (l *locations) look(ctx context.Context, dst table.Destination) (string, error) {
	d, err := l.admin.Dataset(ctx, dst.Project, dst.Dataset)
	if errors.Is(err, restcall.ErrAbsent) && l.make {
		if err := l.admin.EnsureDataset(ctx, dst.Project, dst.Dataset, ""); err != nil {
			return "", err
		}
		d, err = l.admin.Dataset(ctx, dst.Project, dst.Dataset)
	}
	switch {
	case errors.Is(err, restcall.ErrAbsent), restcall.Denied(err):
		return "", fmt.Errorf("%w: dataset %s.%s does not exist, or the credentials lack bigquery.datasets.get on it: "+
			"create it, grant that, or set Location", err, dst.Project, dst.Dataset)
	case err != nil:
		return "", err
	case d.Location == "":
		return "", fmt.Errorf("dataset %s.%s: the service does not say where it is: set Location", dst.Project, dst.Dataset)
	}
	return d.Location, nil
}

// forget makes the next commit look again: a dataset may have been deleted and made elsewhere.
func (l *locations) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.known)
}

// together refuses a part whose temporary tables are elsewhere than its destination: no copy leads from one to the other.
func (l *locations) together(ctx context.Context, part *loadplan.Part) error {
	at, err := l.of(ctx, part.Destination)
	if err != nil {
		return err
	}
	for leaf := range part.TempTables() {
		temp, err := l.of(ctx, leaf)
		if err == nil && !strings.EqualFold(at, temp) {
			err = fmt.Errorf("%w: %s is in %s, and temporary tables would be in %s.%s, which is in %s: use a TempDataset that is in %s",
				ErrLocations, part.Destination, at, leaf.Project, leaf.Dataset, temp, at)
		}
		return err // all are in one dataset
	}
	return nil
}
