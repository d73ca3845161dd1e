package main

import (
	"github.com/spf13/cobra"
)

func (a *app) dlq() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "Look at dead letters, and write them anew",
		Long: `dlq is about records that a job could not write and that its failure policy kept: show prints them, replay writes them anew
once the cause is gone.`,
		Example: `  millrace dlq show dead-letters.ndjson
  millrace dlq replay job.yaml dead-letters.ndjson`,
		Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.dlqShow(), a.dlqReplay())
	return cmd
}
