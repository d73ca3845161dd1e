package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"cloud.google.com/go/bigquery"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"
)

var ordersSchema = bigquery.Schema{
	{Name: "sku", Type: bigquery.StringFieldType, Required: true},
	{Name: "count", Type: bigquery.IntegerFieldType},
	{Name: "price", Type: bigquery.NumericFieldType},
	{Name: "placed", Type: bigquery.TimestampFieldType},
}

func (c clients) create(ctx context.Context) error {
	if err := c.bq.Dataset(dataset).Create(ctx, nil); err != nil {
		return err
	}
	table := c.bq.Dataset(dataset).Table("orders")
	if err := table.Create(ctx, &bigquery.TableMetadata{Schema: ordersSchema}); err != nil {
		return err
	}
	got, err := table.Metadata(ctx)
	if err != nil {
		return err
	}
	return want("schema", got.Schema, ordersSchema)
}

// update adds a column. An update of what has changed since is refused.
func (c clients) update(ctx context.Context) error {
	table := c.bq.Dataset(dataset).Table("orders")
	before, err := table.Metadata(ctx)
	if err != nil {
		return err
	}
	wider := append(slices.Clone(before.Schema), &bigquery.FieldSchema{Name: "note", Type: bigquery.StringFieldType})
	after, err := table.Update(ctx, bigquery.TableMetadataToUpdate{Schema: wider}, before.ETag)
	if err != nil {
		return err
	}
	_, err = table.Update(ctx, bigquery.TableMetadataToUpdate{Description: "never"}, before.ETag)
	return errors.Join(want("schema", after.Schema, wider), refused("a stale update", err, http.StatusPreconditionFailed))
}

// listRows reads the table page by page over REST.
func (c clients) listRows(ctx context.Context) error {
	rest, err := bigquery.NewClient(ctx, project, overREST()...)
	if err != nil {
		return err
	}
	defer rest.Close()
	rows := rest.Dataset(dataset).Table("orders").Read(ctx)
	rows.PageInfo().MaxSize = 4
	var found []string
	for {
		var row []bigquery.Value
		switch err := rows.Next(&row); {
		case errors.Is(err, iterator.Done):
			slices.Sort(found)
			return want("rows", found, defaults)
		case err != nil:
			return err
		case rows.PageInfo().Remaining() >= 4:
			return fmt.Errorf("a page of more than 4 rows")
		case strings.HasPrefix(row[0].(string), "default-"):
			found = append(found, fmt.Sprint(row[0], " ", row[1]))
		}
	}
}

func (c clients) delete(ctx context.Context) error {
	table := c.bq.Dataset(dataset).Table("orders")
	if err := table.Delete(ctx); err != nil {
		return err
	}
	_, err := table.Metadata(ctx)
	return errors.Join(refused("a deleted table", err, http.StatusNotFound), c.bq.Dataset(dataset).DeleteWithContents(ctx))
}

func refused(what string, err error, code int) error {
	if e := (*googleapi.Error)(nil); !errors.As(err, &e) || e.Code != code {
		return fmt.Errorf("%s: got %v, want %d", what, err, code)
	}
	return nil
}
