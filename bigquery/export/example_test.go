package export_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	bqrest "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/export"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/localbq"
)

func Example() {
	ctx := context.Background()
	local, err := localbq.Start(ctx, localbq.Config{Project: "my-project", AutoCreateDataset: true})
	if err != nil {
		log.Fatal(err)
	}
	defer local.Close()
	if err := local.CreateTable("shop.orders", &bqrest.TableSchema{Fields: []*bqrest.TableFieldSchema{{Name: "id", Type: "INTEGER"}}}); err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "orders.parquet")
	connection := bigquery.Connection{GRPCEndpoint: local.GRPC(), RESTEndpoint: local.REST()}
	orders := table.Destination{Project: "my-project", Dataset: "shop", Table: "orders"}

	x, err := export.Open(ctx, bigquery.FromTable(orders), path, export.Options{
		Source: bigquery.SourceOptions{Connection: connection, SelectedFields: []string{"id"}},
		Resume: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer x.Close()
	result, err := x.Run(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Rows, "rows in", result.Files, "file")
	// Output: 0 rows in 1 file
}
