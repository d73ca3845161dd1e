package tableadmin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery/internal/restcall"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Dataset is a dataset as it is now.
type Dataset struct {
	Location string
	// Answered is the service's clock when it answered, to the second; zero where it did not say.
	Answered time.Time
}

// Dataset reads a dataset. The error of one that does not exist is ErrAbsent. Needs bigquery.datasets.get.
func (a *Admin) Dataset(ctx context.Context, project, dataset string) (*Dataset, error) {
	var d *bqrest.Dataset
	err := a.calls.Do(ctx, "read dataset "+project+"."+dataset, func(ctx context.Context) (err error) {
		d, err = a.rest.Datasets.Get(project, dataset).Context(ctx).Do()
		return err
	})
	if err != nil {
		return nil, err
	}
	answered, err := http.ParseTime(d.ServerResponse.Header.Get("Date"))
	if err != nil {
		answered = time.Time{}
	}
	return &Dataset{Location: d.Location, Answered: answered}, nil
}

// TestPermissions says which of these permissions the caller has on a table, wherever they were granted. The error of a
// table that does not exist is ErrAbsent. Needs no permission.
func (a *Admin) TestPermissions(ctx context.Context, dst table.Destination, permissions []string) (granted []string, err error) {
	resource := fmt.Sprintf("projects/%s/datasets/%s/tables/%s", dst.Project, dst.Dataset, plainID(dst))
	err = a.calls.Do(ctx, "test permissions on table "+dst.String(), func(ctx context.Context) error {
		answer, err := a.rest.Tables.TestIamPermissions(resource, &bqrest.TestIamPermissionsRequest{Permissions: permissions}).Context(ctx).Do()
		if err == nil {
			granted = answer.Permissions
		}
		return err
	})
	return granted, err
}

// Denied recognises the error of a caller who lacks a permission. It does not say that what was asked for exists.
func Denied(err error) bool { return restcall.Denied(err) }
