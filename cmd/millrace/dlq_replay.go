package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/deadletter/filequeue"
	"github.com/millrace-dev/millrace/job"
)

func (a *app) dlqReplay() *cobra.Command {
	var flags jobFlags
	var set []string
	var r job.Replay
	cmd := &cobra.Command{
		Use:   "replay JOB.yaml FILE...",
		Short: "Write the records of dead letters anew",
		Long: `replay reads the records that files of dead letters hold, as they came in, and writes them the way the job does: through its
decoder, to the tables that it routes them to. Letters of other jobs are passed over, and a record that was offered more than
once, by a job that was started again, is written once.

What has been replayed is kept in the job's checkpoint store, so that the same command goes on after an interrupt or a crash,
and replays only what is new when it is typed again. Letters that fail again go to a file of their own, with how often they
have been tried; replay that one in its turn.

Columns are what the job file says; where it infers them, they are those of the tables as they are now.`,
		Example: `  millrace dlq replay job.yaml dead-letters.ndjson
  millrace dlq replay job.yaml dead-letters.ndjson --again still-dead.ndjson --set sink.bigquery.schema.file=fixed.json
  millrace dlq replay examples/github/job.yaml examples/github/.millrace/dead-letters.ndjson --local`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("replay takes a job file and at least one file of dead letters; see %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			parsed, err := job.Load(args[0], set)
			if err != nil {
				return usage(err)
			}
			for _, path := range args[1:] {
				if _, err := filequeue.Files(path); err != nil {
					return usage(err)
				}
			}
			r.Queues, r.Store = args[1:], flags.store
			prepare := func(ctx context.Context, s job.Surroundings) (*job.Pipeline, error) {
				pl, err := parsed.PrepareReplay(ctx, s, r)
				if err == nil {
					a.tellSurvey(parsed, pl.Letters.Survey())
				}
				return pl, err
			}
			return a.runPrepared(cmd.Context(), parsed, prepare, &flags, typedAgain(cmd, args))
		},
	}
	flags.addWithoutFrom(cmd)
	cmd.Flags().StringArrayVar(&set, "set", nil, "`key=value` in place of what the file says, with a dotted key; may be repeated")
	cmd.Flags().StringVar(&r.Again, "again", "", "`file` for letters that fail again (default: beside the first, as dead-letters.again.ndjson)")
	return cmd
}

// tellSurvey says what is replayed, and what is not and why.
func (a *app) tellSurvey(p *job.Parsed, s filequeue.Survey) {
	var not []string
	for _, part := range []struct {
		n    int64
		what string
	}{
		{s.Replayed, "taken up by earlier replays"},
		{s.Duplicates, "offered more than once, by a job that was started again"},
		{s.OtherJobs, "of other jobs than " + p.Job},
		{s.Damaged, "lines that are no dead letters"},
		{s.Torn, "cut off by a crash, or being written"},
	} {
		if part.n > 0 {
			not = append(not, fmt.Sprintf("  passed over: %s %s\n", count(part.n), part.what))
		}
	}
	if s.NotHere > 0 {
		not = append(not, fmt.Sprintf("  cannot be replayed: %s; the first is %v\n", count(s.NotHere), s.Why))
	}
	a.say("%s: %s dead letters to replay\n%s", p.Job, count(s.Letters-s.Replayed), strings.Join(not, ""))
	if m := p.Sink.BigQuery.Method; (m == "" || m == "default") && s.Letters > s.Replayed {
		a.say("  method default writes at least once: if this is killed, rows since its last checkpoint are written twice\n")
	}
}
