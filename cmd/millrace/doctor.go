package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/job"
	"github.com/millrace-dev/millrace/job/doctor"
)

func (a *app) doctor() *cobra.Command {
	var local localFlag
	var set []string
	var format string
	cmd := &cobra.Command{
		Use:   "doctor JOB.yaml",
		Short: "Say what stands between a job and success",
		Long: `doctor looks at everything that a job depends on: the input, the checkpoint store, the credentials, the datasets and where they
are, the tables and their columns, and the permissions on them. It changes nothing. What it finds is ok, a warning or an error,
with what to do about it.

It asks BigQuery, and looks through the input as run does.

Exit status: 0 no error was found, 1 at least one was, 2 something is wrong with the job file or with what it names.`,
		Example: "  millrace doctor job.yaml\n  millrace doctor job.yaml --format json | jq -r '.findings[] | select(.level == \"error\") | .do'",
		Args:    exactly("a job file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReportFormat(format); err != nil {
				return err
			}
			parsed, err := job.Load(args[0], set)
			if err != nil {
				return usage(err)
			}
			r, err := a.examine(cmd.Context(), parsed, local)
			if err != nil {
				return err
			}
			return a.output("-", func(w io.Writer) error {
				if format == "json" {
					err = writeJSON(w, r)
				} else {
					_, err = io.WriteString(w, findings(r))
				}
				if err == nil && r.Worst() == doctor.Error {
					err = errReported
				}
				return err
			})
		},
	}
	local.add(cmd)
	cmd.Flags().StringArrayVar(&set, "set", nil, "`key=value` in place of what the file says, with a dotted key; may be repeated")
	cmd.Flags().StringVar(&format, "format", "table", "table or json")
	return cmd
}

func (a *app) examine(ctx context.Context, parsed *job.Parsed, f localFlag) (r *doctor.Report, err error) {
	s := job.Surroundings{}
	if f.on() {
		local, err := a.startLocal(ctx, f)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, local.Close()) }()
		s.Connection, s.CreateDatasets = local.connection(), true
	}
	return doctor.Examine(ctx, parsed, s, doctor.Options{})
}

// findings lays a report out for people: a line for each finding, and one below it for what to do.
func findings(r *doctor.Report) string {
	var b strings.Builder
	counts := map[doctor.Level]int{}
	for _, f := range r.Findings {
		counts[f.Level]++
		fmt.Fprintf(&b, "%-5s  %s: %s\n", f.Level, oneLine(f.Thing), oneLine(f.Found))
		if f.Do != "" {
			fmt.Fprintf(&b, "       → %s\n", oneLine(f.Do))
		}
	}
	fmt.Fprintf(&b, "\n%s: %s, %s\n", oneLine(r.Job), pluralText(counts[doctor.Error], "error"), pluralText(counts[doctor.Warn], "warning"))
	return harmless(b.String())
}
