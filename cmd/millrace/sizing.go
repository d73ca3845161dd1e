package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/job"
	"github.com/millrace-dev/millrace/job/plan"
)

// flowFlags say what rows are expected. What a job file tells may be left out with one.
type flowFlags struct {
	rate         float64
	rowBytes     job.Bytes
	size_        string
	every        time.Duration
	destinations int
	lanes        int
}

var flowNames = []string{"row-bytes", "every", "destinations", "parallelism"}

func (f *flowFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.Float64Var(&f.rate, "rate", 0, "rows a `second` that are expected, of all tables together")
	fs.StringVar(&f.size_, "row-bytes", "", "`bytes` that a row takes in a staged file, on the average")
	fs.DurationVar(&f.every, "every", 0, "`interval` of checkpoints (default: the job file's)")
	fs.IntVar(&f.destinations, "destinations", 0, "how many tables get rows (default: those that the input leads to; without a job file 1)")
	fs.IntVar(&f.lanes, "parallelism", 0, "how many lanes write (default: the job file's, or the number of CPUs)")
}

// check takes the flags apart.
func (f *flowFlags) check(cmd *cobra.Command, args []string) (err error) {
	rate := cmd.Flags().Changed("rate")
	for _, name := range flowNames {
		if !rate && cmd.Flags().Changed(name) {
			return usagef("--%s: is about rows that are expected: expected --rate and --row-bytes with it", name)
		}
	}
	if !rate {
		return nil
	}
	if f.size_ == "" {
		return usagef("--rate: expected --row-bytes with it, the bytes that a row takes in a staged file")
	}
	if f.rowBytes, err = job.ParseBytes(f.size_); err != nil {
		return usagef("--row-bytes: %w", err)
	}
	if len(args) > 0 {
		return nil
	}
	for _, name := range []string{"set", "local"} {
		if cmd.Flags().Changed(name) {
			return usagef("--%s: expected a job file with it", name)
		}
	}
	if f.every == 0 {
		return usagef("--rate: expected --every with it, the interval of checkpoints, or a job file")
	}
	return nil
}

func (f *flowFlags) flow(every time.Duration, tables, lanes int) bigquery.FileLoadFlow {
	return bigquery.FileLoadFlow{
		RowsPerSecond: f.rate, RowBytes: float64(f.rowBytes), Every: cmp.Or(f.every, every),
		Destinations: cmp.Or(f.destinations, tables, 1), Lanes: cmp.Or(f.lanes, lanes),
	}
}

// size adds what the expected rows come to to the plan of a job.
func (f *flowFlags) size(p *plan.Plan, parsed *job.Parsed) (err error) {
	if f.size_ == "" {
		return nil
	}
	if !parsed.Sink.BigQuery.FilesLoaded() {
		return usagef("--rate: sizes file loads, and the method of %s is %s", p.Job, p.Method)
	}
	if f.every == 0 && parsed.Checkpoint.Every == 0 {
		return usagef("--rate: %s loads once, at its end: expected --every with it, or checkpoint.every in the job file", p.Job)
	}
	p.Sizing, err = plan.Size(f.flow(parsed.Checkpoint.Every, len(p.Tables), p.Lanes), parsed.Sink.BigQuery.FileLoads)
	if err != nil {
		return usage(err)
	}
	return nil
}

// sizing prints what the expected rows come to without a job file.
func (a *app) sizing(f flowFlags, format string) error {
	s, err := plan.Size(f.flow(0, 1, runtime.GOMAXPROCS(0)), job.FileLoads{})
	if err != nil {
		return usage(err)
	}
	return a.output("-", func(w io.Writer) error {
		if format == "json" {
			return writeJSON(w, s)
		}
		_, err := io.WriteString(w, sizingText(s))
		return err
	})
}

func sizingText(s *plan.Sizing) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s rows/s of %s into %s, a checkpoint every %s, %s\n", rateText(s.RowsPerSecond), size(int64(s.RowBytes)),
		pluralText(s.Tables, "table"), s.Every, pluralText(s.Lanes, "lane"))

	fmt.Fprintf(&b, "\nFiles of one checkpoint, of %s a day\n", count(s.CheckpointsPerDay))
	fmt.Fprintf(&b, "  %s, of which a lane stages %s in %s\n", size(s.Bytes), size(s.BytesPerLane), pluralText(int(s.FilesPerLane), "file"))
	fmt.Fprintf(&b, "  %s for each table\n", pluralText(int(s.FilesPerTable), "file"))
	if s.MoreFiles {
		b.WriteString("  more than that where rows come in no order: a lane holds fewer files open than there are tables\n")
	}

	b.WriteString("\nJobs of one checkpoint, for each table\n")
	if s.CopyJobs == 0 {
		fmt.Fprintf(&b, "  %s\n", pluralText(int(s.LoadJobs), "load job"))
	} else {
		fmt.Fprintf(&b, "  %s into temporary tables, since one takes 10,000 files and 11 TiB\n", pluralText(int(s.LoadJobs), "load job"))
		fmt.Fprintf(&b, "  %s of those into the table\n", pluralText(int(s.CopyJobs), "copy job"))
	}
	if s.QueryJobs > 0 {
		b.WriteString("  1 query that replaces the rows of the table\n")
	}

	b.WriteString("\nQuotas, as they are by default\n" + quotasText(s.Quotas))
	b.WriteString("\n")
	if s.Refused {
		fmt.Fprintf(&b, "A job with a checkpoint every %s is refused: that is below fileLoads.minCheckpointInterval.\n", s.Every)
	}
	if s.ShortestEvery == "" {
		b.WriteString("No interval keeps within all of these.\n")
	} else {
		fmt.Fprintf(&b, "The shortest interval that is not refused and keeps within all of these is %s.\n", s.ShortestEvery)
	}
	return b.String()
}

// rateText writes whole numbers as such.
func rateText(v float64) string {
	if v == float64(int64(v)) {
		return count(int64(v))
	}
	return fmt.Sprintf("%.4g", v)
}
