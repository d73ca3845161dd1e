package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/deadletter/pubsubqueue"
)

// connectionFlags say which BigQuery a command talks to.
type connectionFlags struct {
	local      localFlag
	connection bigquery.Connection
	project    string
	location   string
}

func (f *connectionFlags) add(cmd *cobra.Command) {
	f.local.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.project, "project", "", "project that pays, and that completes table names (default: $GOOGLE_CLOUD_PROJECT)")
	fs.StringVar(&f.location, "location", "", "where queries run, such as EU (default: where their tables are)")
	fs.StringVar(&f.connection.RESTEndpoint, "rest-endpoint", "", "`host:port` of an emulator's REST API")
	fs.StringVar(&f.connection.GRPCEndpoint, "grpc-endpoint", "", "`host:port` of an emulator's Storage API")
	fs.StringVar(&f.connection.KeyFile, "key-file", "", "`file` with a service account's key (default: application default credentials)")
	fs.StringVar(&f.connection.QuotaProject, "quota-project", "", "project that calls are counted against")
}

// keyFileFlag names the flag that a key file came from, when that is what is wrong.
func keyFileFlag(err error) error {
	if errors.Is(err, bigquery.ErrCredentials) || errors.Is(err, pubsubqueue.ErrCredentials) {
		return fmt.Errorf("--key-file: %w", err)
	}
	return err
}

// open makes the connection, to a local BigQuery when that was asked for.
func (f *connectionFlags) open(ctx context.Context, a *app) (c bigquery.Connection, done func() error, err error) {
	if err := f.connection.Validate(); err != nil {
		return c, nil, usage(err)
	}
	f.project = cmp.Or(f.project, os.Getenv("GOOGLE_CLOUD_PROJECT"))
	if !f.local.on() {
		return f.connection, func() error { return nil }, nil
	}
	if f.connection != (bigquery.Connection{}) {
		return c, nil, usagef("--local is a BigQuery of its own: leave --rest-endpoint, --grpc-endpoint, --key-file and --quota-project out")
	}
	if _, err := os.Stat(f.local.dir); err != nil {
		return c, nil, usagef("--local=%s: %w; millrace run JOB.yaml --local makes one", f.local.dir, err)
	}
	local, err := a.startLocal(ctx, f.local)
	if err != nil {
		return c, nil, err
	}
	if projects := local.Projects(); f.project == "" && len(projects) == 1 {
		f.project = projects[0]
	}
	return *local.connection(), local.Close, nil
}

func (a *app) read() *cobra.Command {
	var f connectionFlags
	var r readFlags
	cmd := &cobra.Command{
		Use:   "read TABLE | --query SQL",
		Short: "Read a table or the result of a query",
		Long: `read writes the rows of a table, as they are at one instant, or the result of a query to standard output, to a file or to
many files.

The format is the one that is asked for, or what the name of the output tells: .ndjson, .csv, .avro, .arrow, .parquet, the first two
also with .gz or .zst. Without either it is ndjson, and on a terminal a table of the first rows. ndjson leaves NULL columns
out. csv writes lists and STRUCTs as JSON. avro and arrow are the service's own encodings.

-o names a file, a folder, or many files with a * for their numbers; with gs:// in front, objects of Cloud Storage. A file
appears when it is complete. What was interrupted goes on with --resume, in the same read session, for up to six hours:
no row is lost and none is there twice.

Rows come in the order of the storage, which means nothing. To see an ORDER BY, use millrace query.`,
		Example: `  millrace read my-project.github.issues --local
  millrace read my-project.github.issues --fields event,received_at --where 'action = "opened"' -o opened.ndjson
  millrace read my-project.github.issues -o 'issues/part-*.parquet' --file-size 1GB --resume
  millrace read my-project.github.issues -o gs://my-bucket/issues/ --format parquet
  millrace read my-project.github.open_issues --views -o open.csv
  millrace read --query 'SELECT * FROM github.issues' --project my-project -o issues.avro`,
		Args: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (r.query != "") || len(args) > 1 {
				return usagef("read takes a table or --query, one of them; see %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return keyFileFlag(a.readTable(cmd.Context(), &f, &r, args))
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.connection.StorageEndpoint, "storage-endpoint", "", "`host:port` of an emulator's Cloud Storage (default: $STORAGE_EMULATOR_HOST)")
	r.add(cmd)
	return cmd
}

type readFlags struct {
	query, out, format, fields, where, asOf, fileSize string
	streams                                           int
	limit                                             int64
	originalKeys, resume, views                       bool
	safeEvery                                         time.Duration
}

var readFormats = formatNames("ndjson", "csv", "avro", "arrow", "parquet", "table")

func (r *readFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&r.query, "query", "", "read the result of this `SQL`")
	fs.StringVarP(&r.out, "output", "o", "-", "`file` or folder to write to, a * in a name numbers files; gs://bucket/name; - is standard output")
	fs.StringVar(&r.format, "format", "", strings.Join(readFormats, ", ")+" (default: as the name of the output tells, else ndjson, on a terminal table)")
	fs.StringVar(&r.fields, "fields", "", "columns to read, with commas between; dots select members of a STRUCT (default: all)")
	fs.StringVar(&r.where, "where", "", "`condition` on rows, the body of a WHERE clause")
	fs.BoolVar(&r.views, "views", false, "read views too: BigQuery runs a query that selects --fields of one, which costs")
	fs.StringVar(&r.asOf, "as-of", "", "read the table as it was then: `time` such as 2026-08-01T09:00:00Z, or how long ago such as 2h")
	fs.IntVar(&r.streams, "streams", 0, "streams to read at once at most (default: as BigQuery decides, as many at once as there are processors)")
	fs.Int64Var(&r.limit, "limit", 0, "rows to read at most (default: all)")
	fs.BoolVar(&r.originalKeys, "original-keys", false, "ndjson: name fields as the documents did that the table was made of, where a column had to be renamed")
	fs.BoolVar(&r.resume, "resume", false, "go on with an unfinished read of the same output; where there is none, begin")
	fs.StringVar(&r.fileSize, "file-size", "", "`size` such as 1GB at which the next of many files begins (default 256MiB)")
	fs.DurationVar(&r.safeEvery, "safe-every", time.Second, "how often the place to go on from is written down")
}

func parseAsOf(s string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(s); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, fmt.Errorf("--as-of %q: expected a time such as 2026-08-01T09:00:00Z, or how long ago such as 2h", s)
	}
	return t, nil
}

func (r *readFlags) input(f *connectionFlags, o *bigquery.SourceOptions, args []string) (bigquery.Input, error) {
	if r.query != "" {
		if f.project == "" {
			return bigquery.Input{}, usagef("--query needs a project that pays: name it with --project, or set GOOGLE_CLOUD_PROJECT")
		}
		o.QueryLocation = f.location
		return bigquery.FromQuery(f.project, r.query), nil
	}
	dst, err := f.destination(args[0])
	if err != nil {
		return bigquery.Input{}, err
	}
	o.ParentProject = f.project
	if r.views {
		o.MaterializeViews, o.QueryLocation = true, f.location
	}
	return bigquery.FromTable(dst), nil
}

// destination reads a table's name of three parts, or of two with --project.
func (f *connectionFlags) destination(name string) (table.Destination, error) {
	if strings.Count(name, ".") == 1 && f.project != "" {
		name = f.project + "." + name
	}
	dst, err := table.ParseDestination(name)
	return dst, usage(err)
}

// withDescriptions gives the columns that were read the descriptions of the table's.
func withDescriptions(read, whole []table.Field) []table.Field {
	all := make([]table.Field, len(read))
	for i, f := range read {
		if w := (&table.Schema{Fields: whole}).Field(f.Name); w != nil {
			f.Description = w.Description
			f.Fields = withDescriptions(f.Fields, w.Fields)
		}
		all[i] = f
	}
	return all
}
