package main

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
)

// app is what all commands share.
type app struct {
	stdin   io.Reader
	stdout  io.Writer
	console *console

	logFormat string
	quiet     bool
	verbose   bool
}

func (a *app) log() *slog.Logger { return a.console.logger(a.logFormat, a.quiet, a.verbose) }

// logIn makes everything on standard error JSON, if that is the format: then nothing is drawn there either.
func (a *app) logIn(format string) {
	if format == "json" {
		a.console.asJSON, a.console.tty = true, false
	}
}

// say writes a message for people, unless they asked for quiet.
func (a *app) say(format string, args ...any) {
	if !a.quiet {
		a.console.printf(format, args...)
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "millrace",
		Short: "Move streams of records into and out of BigQuery",
		Long: `millrace moves streams of records into and out of BigQuery with stated delivery guarantees.

Results go to standard output, everything else to standard error.
Exit status: 0 done, 1 the work failed, 2 bad usage or configuration (found before any work).`,
		Example: `  millrace run examples/github/job.yaml --local
  millrace query 'SELECT action, COUNT(*) AS n FROM github.issues GROUP BY action' --local
  millrace read my-project.github.issues --local --format ndjson`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          subcommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w; see %s --help", err, cmd.CommandPath())
	})
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if a.logFormat != "text" && a.logFormat != "json" {
			return usagef("--log-format %q: expected text or json", a.logFormat)
		}
		a.logIn(a.logFormat)
		return nil
	}
	f := root.PersistentFlags()
	f.StringVar(&a.logFormat, "log-format", "text", "format of the log on standard error: text or json")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "only say what went wrong")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "log everything")
	root.AddCommand(a.runJob(), a.write(), a.read(), a.query(), a.local(), a.check(), a.plan(), a.doctor(), a.schema(), a.dlq(), a.checkpoints(), a.version())
	return root
}

// subcommand refuses an unknown command and says which was probably meant.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	msg := fmt.Sprintf("unknown command %q", args[0])
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		msg += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("%s; see millrace help", msg)
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments, got %q; see %s --help", cmd.Name(), args[0], cmd.CommandPath())
	}
	return nil
}

// exactly takes the arguments that are named, neither more nor fewer.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usagef("%s takes %s, got %d arguments; see %s --help", cmd.Name(), strings.Join(names, " and "), len(args), cmd.CommandPath())
		}
		return nil
	}
}
