//go:build cgo

package localtests

import (
	"testing"

	bq "cloud.google.com/go/bigquery"

	"github.com/millrace-dev/millrace/engine"
	"github.com/millrace-dev/millrace/localbq"
	"github.com/millrace-dev/millrace/localbq/duckdb"
)

// The official client runs a query over what the job wrote. Time stands still at a known instant.
func TestQuery(t *testing.T) {
	queries, err := duckdb.New()
	if err != nil {
		t.Fatal(err)
	}
	local := start(t, localbq.Config{Queries: queries, Clock: localbq.NewManualClock()})
	file, _ := input(t, 10)
	if _, err := Load(t.Context(), file, connection(local), engine.Options{}); err != nil {
		t.Fatal(err)
	}
	client, err := bq.NewClient(t.Context(), local.Project(), local.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	rows, err := client.Query("SELECT SUM(count), CAST(CURRENT_DATE() AS STRING) FROM shop.orders").Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var row []bq.Value
	if err := rows.Next(&row); err != nil {
		t.Fatal(err)
	}
	if row[0] != int64(45) || row[1] != "2026-01-01" {
		t.Errorf("got %v", row)
	}
}
