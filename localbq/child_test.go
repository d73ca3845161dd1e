package localbq_test

import (
	"context"
	"fmt"
	"os"

	bqapi "google.golang.org/api/bigquery/v2"

	"github.com/millrace-dev/millrace/localbq"
)

const childFolder = "MILLRACE_LOCALBQ_CHILD"

// serveAsChild serves a folder for ever, in the process that the kill test starts, and prints where.
func serveAsChild() bool {
	dir := os.Getenv(childFolder)
	if dir == "" {
		return false
	}
	bq, err := localbq.Start(context.Background(), localbq.Config{Dir: dir, AutoCreateDataset: true})
	if err != nil {
		fmt.Println("failed", err)
		return true
	}
	if _, err := bq.NumRows("d.t"); err != nil {
		err = bq.CreateTable("d.t", &bqapi.TableSchema{Fields: []*bqapi.TableFieldSchema{column("id", "INTEGER")}})
		if err != nil {
			fmt.Println("failed", err)
			return true
		}
	}
	fmt.Println("serving", bq.GRPC())
	select {}
}
