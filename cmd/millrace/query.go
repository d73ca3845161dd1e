package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/export"
)

var queryFormats = formatNames("table", "ndjson", "csv")

func (a *app) query() *cobra.Command {
	var f connectionFlags
	var format string
	cmd := &cobra.Command{
		Use:   "query SQL",
		Short: "Run a query and print its result",
		Long: `query runs a GoogleSQL query and prints its rows, in the order of its ORDER BY.

With --local it runs in the local BigQuery, which knows SELECT statements; the project of the data is the default.`,
		Example: `  millrace query 'SELECT event, COUNT(*) AS n FROM github.issues GROUP BY event' --local
  millrace query 'SELECT * FROM github.issues LIMIT 10' --project my-project --format ndjson`,
		Args: exactly("one statement"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(queryFormats, format) {
				return usagef("--format %q: expected one of %s", format, strings.Join(queryFormats, ", "))
			}
			return keyFileFlag(a.runQuery(cmd.Context(), &f, args[0], format))
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&format, "format", "table", strings.Join(queryFormats, ", "))
	return cmd
}

func (a *app) runQuery(ctx context.Context, f *connectionFlags, sql, format string) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, done, err := f.open(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if f.project == "" {
		return usagef("a query needs a project that pays: name it with --project, or set GOOGLE_CLOUD_PROJECT")
	}
	// One stream of a query's result has the rows in the order of the query.
	o := bigquery.SourceOptions{Connection: c, QueryLocation: f.location, MaxStreamCount: 1}
	err = a.output("-", func(w io.Writer) error {
		if format == "table" {
			_, err := exportTable(ctx, w, bigquery.FromQuery(f.project, sql), o, 0)
			return err
		}
		_, err := exportThrough(ctx, w, bigquery.FromQuery(f.project, sql), export.Options{Source: o, Format: export.Format(format), Lanes: 1})
		return err
	})
	var refused *bigquery.QueryJobError
	if errors.As(err, &refused) {
		return fmt.Errorf("query: %s (%s)", refused.Message, refused.Reason)
	}
	return err
}
