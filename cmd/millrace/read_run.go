package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/export"
	"github.com/millrace-dev/millrace/bigquery/row/jsonrow"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// firstRows are how many rows a table on a terminal shows, unless more are asked for.
const firstRows = 50

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
	if host := os.Getenv("STORAGE_EMULATOR_HOST"); c.Emulated() && c.StorageEndpoint == "" {
		c.StorageEndpoint = strings.TrimPrefix(host, "http://")
	}
	o.Source.Connection = c
	from, err := r.input(f, &o.Source, args)
	if err != nil {
		return err
	}
	if o.Keys, err = r.keys(ctx, c, args, f); err != nil {
		return err
	}
	if r.format == "table" || r.format == "" && r.out == "-" && a.terminal() {
		return a.readToScreen(ctx, r, from, o.Source)
	}
	o.Facts = append(r.facts(from, &o), f.facts()...)
	return a.readToFiles(ctx, r, from, o)
}

// options checks what can be checked without a connection.
func (r *readFlags) options(now time.Time) (o export.Options, err error) {
	var faults []error
	known := false
	for _, name := range readFormats {
		known = known || name == r.format
	}
	if r.format != "" && !known {
		faults = append(faults, fmt.Errorf("--format %q: expected one of %s", r.format, strings.Join(readFormats, ", ")))
	}
	if r.format != "table" {
		o.Format = export.Format(r.format)
	}
	if told, _ := export.FormatOf(r.out); r.originalKeys && (cmp.Or(o.Format, told, export.NDJSON) != export.NDJSON || r.query != "" || r.format == "table") {
		faults = append(faults, errors.New("--original-keys goes with a table and --format ndjson"))
	}
	if r.views && r.query != "" {
		faults = append(faults, errors.New("--views goes with a table: a query may name views as it is"))
	}
	if r.views && r.asOf != "" {
		faults = append(faults, errors.New("--views runs a query, whose result has no earlier version: leave --as-of out, and use --query with FOR SYSTEM_TIME AS OF"))
	}
	if ending := r.strangeEnding(); ending != "" {
		faults = append(faults, fmt.Errorf("-o %s: %s tells no format: end with .ndjson, .csv, .avro, .arrow or .parquet, or say --format", r.out, ending))
	}
	if r.resume && r.out == "-" {
		faults = append(faults, errors.New("--resume goes with -o: what goes to standard output is gone"))
	}
	if r.format == "table" && r.out != "-" {
		faults = append(faults, errors.New("--format table is for standard output: leave -o out, or name another format"))
	}
	faults = append(faults, r.numbers()...)
	if r.fields != "" {
		for name := range strings.SplitSeq(r.fields, ",") {
			o.Source.SelectedFields = append(o.Source.SelectedFields, strings.TrimSpace(name))
		}
	}
	o.Source.RowRestriction, o.Source.MaxStreamCount, o.Source.Limit = r.where, r.streams, r.limit
	o.Resume, o.SafeEvery = r.resume, r.safeEvery
	if r.asOf != "" {
		if o.Source.SnapshotTime, err = parseAsOf(r.asOf, now); err != nil {
			faults = append(faults, err)
		}
	}
	if r.fileSize != "" {
		if o.FileBytes, err = parseSize(r.fileSize); err != nil {
			faults = append(faults, fmt.Errorf("--file-size %w", err))
		}
	}
	return o, usage(errors.Join(faults...))
}

// numbers are the faults of flags that are numbers. Zero is what they are where nobody says them, and 0 streams lets BigQuery decide.
func (r *readFlags) numbers() (faults []error) {
	if r.limit < 0 {
		faults = append(faults, fmt.Errorf("--limit %d: expected a number of rows", r.limit))
	}
	if r.streams < 0 {
		faults = append(faults, fmt.Errorf("--streams %d: expected a number of streams, or 0 to let BigQuery decide", r.streams))
	}
	if r.safeEvery < 0 {
		faults = append(faults, fmt.Errorf("--safe-every %s: expected a time such as 1s", r.safeEvery))
	}
	return faults
}

// strangeEnding is what the name of a file ends with where nobody says which format that means.
func (r *readFlags) strangeEnding() string {
	ending := filepath.Ext(r.out)
	if _, told := export.FormatOf(r.out); told || r.format != "" || strings.Trim(ending, ".") == "" || strings.Contains(ending, "*") {
		return ""
	}
	if info, err := os.Stat(r.out); err == nil && !info.Mode().IsRegular() {
		return "" // a folder, a pipe, a device
	}
	return ending
}

// parseSize reads a number of bytes with or without a unit.
func parseSize(s string) (int64, error) {
	units := map[string]float64{"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
	number := strings.TrimRight(s, "BKMGTIbkmgti")
	unit, known := units[strings.ToUpper(s[len(number):])]
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if bytes := v * unit; err == nil && known && bytes >= 1 && bytes < 1<<62 {
		return int64(bytes), nil
	}
	return 0, fmt.Errorf("%q: expected a size such as 500MB or 1GiB", s)
}

// facts are what a read that goes on must have in common with the one before, as they were typed: "2h ago" is another instant
// now, and means the one of the session.
func (r *readFlags) facts(from bigquery.Input, o *export.Options) []export.Fact {
	all := []export.Fact{{Name: "--format", Value: string(o.Format)}, {Name: "--fields", Value: r.fields}, {Name: "--where", Value: r.where},
		{Name: "--as-of", Value: r.asOf}, {Name: "--query", Value: r.query}, {Name: "--file-size", Value: r.fileSize}}
	if t, ok := from.Table(); ok {
		all = append(all, export.Fact{Name: "the table", Value: t.String()})
	}
	number := func(name string, n int64) {
		value := ""
		if n != 0 {
			value = strconv.FormatInt(n, 10)
		}
		all = append(all, export.Fact{Name: name, Value: value})
	}
	number("--limit", r.limit)
	number("--streams", int64(r.streams))
	given := func(name string, on bool) {
		if on {
			all = append(all, export.Fact{Name: name, Value: "true"})
		}
	}
	given("--original-keys", r.originalKeys)
	given("--views", r.views)
	return all
}

// facts are those of the service that is read from, and of who pays. Credentials may be others: what they may read is the same.
func (f *connectionFlags) facts() []export.Fact {
	c := f.connection
	all := []export.Fact{{Name: "--project", Value: f.project}, {Name: "--location", Value: f.location},
		{Name: "--rest-endpoint", Value: c.RESTEndpoint}, {Name: "--grpc-endpoint", Value: c.GRPCEndpoint}}
	if f.local.on() {
		all = append(all, export.Fact{Name: "--local", Value: f.local.dir})
	}
	return all
}

// readToFiles writes the rows where -o says.
func (a *app) readToFiles(ctx context.Context, r *readFlags, from bigquery.Input, o export.Options) (err error) {
	began := time.Now()
	x, closeOutput, err := a.openExport(ctx, r, from, o)
	if err != nil {
		return readFault(r, err)
	}
	defer func() { err = errors.Join(err, closeOutput(), x.Close()) }()
	limitMemory()
	p := newReadProgress(a.console, a.quiet || r.out == "-" && a.terminal(), x)
	stop := p.follow()
	result, err := x.Run(ctx)
	stop()
	switch {
	case err != nil:
		if r.out != "-" && x.Resumable() {
			a.say("millrace: what has been written is kept: the same command with --resume goes on from there\n")
		}
		return readFault(r, err)
	case result.Already:
		a.say("%s is there, and complete: nothing is left to read; remove it, or leave --resume out, to read again\n", r.out)
	case r.out != "-":
		a.say("%s\n", readSummary(result, r.out, time.Since(began)))
	}
	return nil
}

func readSummary(result export.Result, out string, took time.Duration) string {
	text := count(result.Rows) + " rows to " + out
	if result.Files > 1 {
		text += fmt.Sprintf(", %s files", count(int64(result.Files)))
	}
	text += " in " + fmt.Sprint(roundDuration(took))
	if result.Before > 0 {
		text += ", " + count(result.Before) + " of them before"
	}
	return text
}

// openExport opens the output: standard output, pipes and devices are written through, files appear when they are complete.
func (a *app) openExport(ctx context.Context, r *readFlags, from bigquery.Input, o export.Options) (*export.Export, func() error, error) {
	nothing := func() error { return nil }
	if r.out == "-" {
		x, err := export.OpenWriter(ctx, from, a.stdout, o)
		return x, nothing, err
	}
	info, err := os.Stat(r.out)
	if err != nil || info.IsDir() || info.Mode().IsRegular() {
		x, err := export.Open(ctx, from, r.out, o)
		return x, nothing, err
	}
	w, err := os.OpenFile(r.out, os.O_WRONLY, 0)
	if err != nil {
		return nil, nothing, usage(err)
	}
	x, err := export.OpenWriter(ctx, from, w, o)
	if err != nil {
		return nil, nothing, errors.Join(err, w.Close())
	}
	return x, w.Close, nil
}

// readFault says of faults that were found before any work what to type.
func readFault(r *readFlags, err error) error {
	var unfinished *export.UnfinishedError
	var bad *export.InvalidError
	var plan *bigquery.PlanError
	switch {
	case errors.As(err, &plan) && strings.Contains(plan.Hint, "MaterializeViews"):
		plan.Hint = "a view has nothing stored to read: --views has BigQuery run it as a query, which costs, and reads the result"
	case errors.As(err, &unfinished):
		return usagef("-o %s: a read with %s rows so far did not finish: go on with --resume, or remove %s to begin again", r.out, count(unfinished.Rows), unfinished.Notes)
	case errors.Is(err, export.ErrPlace), errors.Is(err, export.ErrBusy), errors.Is(err, export.ErrOccupied):
		return usagef("-o %s: %w", r.out, err)
	case errors.As(err, &bad):
		return usage(err)
	}
	return err
}

// readToScreen lays the first rows out for people.
func (a *app) readToScreen(ctx context.Context, r *readFlags, from bigquery.Input, o bigquery.SourceOptions) error {
	shownRows := o.Limit
	if o.Limit == 0 {
		shownRows = firstRows
		o.Limit, o.MaxStreamCount = firstRows+1, 0
	}
	return a.output("-", func(w io.Writer) error {
		n, err := exportTable(ctx, w, from, o, shownRows)
		if err == nil && n > shownRows {
			a.say("the first %s rows: --limit shows more, -o writes all of them to a file\n", count(shownRows))
		}
		return err
	})
}

// terminal reports whether people look at standard output.
func (a *app) terminal() bool {
	f, ok := a.stdout.(*os.File)
	return ok && isTerminal(f)
}

// keys answers how columns are named in documents.
func (r *readFlags) keys(ctx context.Context, c bigquery.Connection, args []string, f *connectionFlags) (func(*table.Schema) *jsonrow.Keys, error) {
	if !r.originalKeys {
		return nil, nil
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
