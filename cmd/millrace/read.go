package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

func fnv64(s string) uint64 {
	h := fnv.New64a()
	io.WriteString(h, s)
	return h.Sum64()
}

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
	if errors.Is(err, bigquery.ErrCredentials) {
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
		Long: `read writes the rows of a table, as they are at one instant, or the result of a query to standard output or a file.

ndjson leaves NULL columns out. csv writes lists and STRUCTs as JSON. avro is the service's own encoding in a container
file. A file that is named with -o appears when it is complete.

Rows come in the order of the storage, which means nothing. To see an ORDER BY, use millrace query.`,
		Example: `  millrace read my-project.github.issues --local
  millrace read my-project.github.issues --fields event,received_at --where 'action = "opened"' -o opened.ndjson
  millrace read --query 'SELECT * FROM github.issues' --project my-project --format avro -o issues.avro`,
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
	r.add(cmd)
	return cmd
}

type readFlags struct {
	query, out, format, fields, where, asOf string
	streams                                 int
	limit                                   int64
	originalKeys                            bool
}

var readFormats = formatNames("ndjson", "csv", "avro", "arrow", "parquet")

func (r *readFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&r.query, "query", "", "read the result of this `SQL`")
	fs.StringVarP(&r.out, "output", "o", "-", "`file` to write to, - is standard output")
	fs.StringVar(&r.format, "format", "ndjson", strings.Join(readFormats, ", "))
	fs.StringVar(&r.fields, "fields", "", "columns to read, with commas between; dots select members of a STRUCT (default: all)")
	fs.StringVar(&r.where, "where", "", "`condition` on rows, the body of a WHERE clause")
	fs.StringVar(&r.asOf, "as-of", "", "read the table as it was then: `time` such as 2026-08-01T09:00:00Z, or how long ago such as 2h")
	fs.IntVar(&r.streams, "streams", 0, "streams to read at once at most (default: as BigQuery decides)")
	fs.Int64Var(&r.limit, "limit", 0, "rows to read at most (default: all)")
	fs.BoolVar(&r.originalKeys, "original-keys", false, "ndjson: name fields as the documents did that the table was made of, where a column had to be renamed")
}

func (a *app) readTable(ctx context.Context, f *connectionFlags, r *readFlags, args []string) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := r.options(time.Now())
	if err != nil {
		return err
	}
	c, done, err := f.open(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	o.Connection = c
	from, err := r.input(f, &o, args)
	if err != nil {
		return err
	}
	keys, err := r.keys(ctx, c, args, f)
	if err != nil {
		return err
	}
	began := time.Now()
	var rows int64
	err = a.output(r.out, func(w io.Writer) (err error) {
		rows, err = exporters(keys)[r.format](ctx, w, from, o)
		return err
	})
	if err != nil {
		return err
	}
	if r.out != "-" {
		a.say("%s rows to %s in %s\n", count(rows), r.out, roundDuration(time.Since(began)))
	}
	return nil
}

// options checks what can be checked without a connection.
func (r *readFlags) options(now time.Time) (o bigquery.SourceOptions, err error) {
	var faults []error
	if exporters(nil)[r.format] == nil || r.format == "table" {
		faults = append(faults, fmt.Errorf("--format %q: expected one of %s", r.format, strings.Join(readFormats, ", ")))
	}
	if r.originalKeys && (r.format != "ndjson" || r.query != "") {
		faults = append(faults, errors.New("--original-keys goes with a table and --format ndjson"))
	}
	if r.fields != "" {
		o.SelectedFields = strings.Split(r.fields, ",")
	}
	o.RowRestriction, o.MaxStreamCount, o.Limit = r.where, r.streams, r.limit
	if r.asOf != "" {
		if o.SnapshotTime, err = parseAsOf(r.asOf, now); err != nil {
			faults = append(faults, err)
		}
	}
	return o, usage(errors.Join(faults...))
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

// keys answers how columns are named in documents.
func (r *readFlags) keys(ctx context.Context, c bigquery.Connection, args []string, f *connectionFlags) (func(*table.Schema) *jsonrow.Keys, error) {
	if !r.originalKeys {
		return func(*table.Schema) *jsonrow.Keys { return nil }, nil
	}
	dst, err := f.destination(args[0])
	if err != nil {
		return nil, err
	}
	whole, err := bigquery.TableSchema(ctx, c, dst)
	if err != nil {
		return nil, err
	}
	return func(read *table.Schema) *jsonrow.Keys {
		return jsonrow.DescribedKeys(&table.Schema{Fields: withDescriptions(read.Fields, whole.Fields)})
	}, nil
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
