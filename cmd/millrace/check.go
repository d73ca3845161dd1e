package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/job"
)

func (a *app) check() *cobra.Command {
	var set []string
	cmd := &cobra.Command{
		Use:   "check JOB.yaml...",
		Short: "Check job files without a network",
		Long: `check reads job files and says everything that is wrong with them, each with line and column: unknown keys with the
nearest known one, wrong values with what was expected, and the faults of the schema file that a job names. It opens no connection
and reads no input.

Exit status: 0 all is well, 2 something is wrong.`,
		Example: "  millrace check examples/github/job.yaml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("check takes at least one job file; see %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var all job.InvalidError
			for _, name := range args {
				parsed, err := job.Load(name, set)
				if err == nil {
					err = parsed.CheckSchema()
				}
				var invalid *job.InvalidError
				switch {
				case errors.As(err, &invalid):
					all.Faults = append(all.Faults, invalid.Faults...)
				case err != nil:
					return usage(err)
				default:
					a.say("%s: ok\n", name)
				}
			}
			if len(all.Faults) > 0 {
				return &all
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "`key=value` in place of what the file says, with a dotted key; may be repeated")
	return cmd
}
