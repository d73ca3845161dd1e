package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/job"
	"github.com/millrace-dev/millrace/job/plan"
)

func (a *app) plan() *cobra.Command {
	var local localFlag
	var set []string
	var format string
	var expected flowFlags
	cmd := &cobra.Command{
		Use:   "plan JOB.yaml | plan --rate N --row-bytes N --every D",
		Short: "Say what a job would do",
		Long: `plan says what a job would do, without doing it: the tables it would write to and make, the columns of their rows and where
they come from, what it guarantees, the permissions it needs, the data it connects, and what it would take of BigQuery's quotas.

It looks through the input as run does, and uses no network unless the job takes its columns from tables that exist. What
BigQuery has, and whether this can work, is for doctor to say.

With --rate and --row-bytes it sizes file loads: files and jobs of one checkpoint, and what is left of the quotas of a day. A job file
with method file-loads gives interval, lanes, tables and options then; without one flags do.

Exit status: 0 done, 1 the input cannot be read, 2 something is wrong with the job file or with what it names.`,
		Example: "  millrace plan examples/github/job.yaml\n  millrace plan job.yaml --format json | jq '.permissions[].permission'\n" +
			"  millrace plan --rate 100000 --row-bytes 150 --every 3m --parallelism 256",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && cmd.Flags().Changed("rate") {
				return nil
			}
			return exactly("a job file")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReportFormat(format); err != nil {
				return err
			}
			if err := expected.check(cmd, args); err != nil {
				return err
			}
			if len(args) == 0 {
				return a.sizing(expected, format)
			}
			parsed, err := job.Load(args[0], set)
			if err != nil {
				return usage(err)
			}
			p, err := a.planOf(cmd.Context(), parsed, local)
			if err != nil {
				return err
			}
			if err := expected.size(p, parsed); err != nil {
				return err
			}
			return a.output("-", func(w io.Writer) error {
				if format == "json" {
					return writeJSON(w, p)
				}
				_, err := io.WriteString(w, planText(p))
				return err
			})
		},
	}
	local.add(cmd)
	cmd.Flags().StringArrayVar(&set, "set", nil, "`key=value` in place of what the file says, with a dotted key; may be repeated")
	cmd.Flags().StringVar(&format, "format", "table", "table or json")
	expected.add(cmd)
	return cmd
}

// planOf makes a plan. A local BigQuery is needed only for schemas of tables that exist, and for what is read of it.
func (a *app) planOf(ctx context.Context, parsed *job.Parsed, f localFlag) (p *plan.Plan, err error) {
	s := job.Surroundings{CreateDatasets: f.on()}
	if f.on() && (parsed.Sink.BigQuery.Schema.Table || parsed.Source.BigQuery != nil) {
		local, err := a.startLocal(ctx, f)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, local.Close()) }()
		s.Connection = local.connection()
	}
	return plan.Of(ctx, parsed, s)
}

// checkReportFormat checks the --format of plan and doctor.
func checkReportFormat(format string) error {
	if format != "table" && format != "json" {
		return usagef("--format %q: expected table or json", format)
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// planText lays a plan out for people.
func planText(p *plan.Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", p.Job, planHead(p))
	section := func(name string) { fmt.Fprintf(&b, "\n%s\n", name) }
	section("Writes")
	fmt.Fprintf(&b, "  method %s: %s\n", p.Method, p.Guarantee)
	fmt.Fprintf(&b, "  records that cannot be written: %s\n", p.Failures)
	fmt.Fprintf(&b, "  %s\n", checkpointText(p.Checkpoint))
	section("Tables")
	b.WriteString(indented(tablesText(p)))
	section("Tables that are not there")
	for _, line := range createText(p.Create) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if p.SchemaUpdate != "" {
		section("Tables that are there")
		fmt.Fprintf(&b, "  %s\n", p.SchemaUpdate)
	}
	section("Permissions")
	rows := make([][]string, len(p.Permissions))
	for i, n := range p.Permissions {
		rows[i] = []string{n.Name, string(n.Kind) + " " + n.Resource, n.For}
	}
	b.WriteString(indented(columns([]string{"PERMISSION", "ON", "FOR"}, rows, nil)))
	section("Lineage")
	b.WriteString(lineageText(p.Lineage))
	section("Quotas, as they are by default")
	b.WriteString(quotasText(p.Quotas))
	if p.Sizing != nil {
		b.WriteString("\n" + sizingText(p.Sizing))
	}
	return harmless(b.String())
}

func quotasText(quotas []plan.Quota) string {
	var b strings.Builder
	for _, q := range quotas {
		over := ""
		if q.Over {
			over = "  TOO MUCH"
		}
		fmt.Fprintf(&b, "  %s%s\n    takes  %s\n    limit  %s (%s)\n", q.Name, over, q.Uses, q.Limit, q.Source)
		if q.Left != "" {
			fmt.Fprintf(&b, "    left   %s\n", q.Left)
		}
	}
	return b.String()
}

func planHead(p *plan.Plan) string {
	files := "standard input"
	switch {
	case p.Source.From != "":
		files = oneLine(p.Source.From)
	case len(p.Source.Files) != 1 || p.Source.Files[0] != "-":
		files = pluralText(len(p.Source.Files), "file")
		if p.Source.Bytes > 0 {
			files += ", " + size(p.Source.Bytes)
		}
	}
	head := fmt.Sprintf("%s (%s) to %s", files, p.Source.Format, p.Table)
	if len(p.Tables) != 1 || p.Tables[0].Name != p.Table {
		head += fmt.Sprintf(", %s", pluralText(len(p.Tables), "table"))
		if !p.Source.Whole {
			head += " so far"
		}
	}
	if p.Source.Lost > 0 {
		head += fmt.Sprintf("; %s of %s records that were looked at lead to no table", count(int64(p.Source.Lost)), count(int64(p.Source.Looked)))
	}
	return head
}

func checkpointText(c plan.Checkpoint) string {
	switch {
	case c.Store == "":
		return "no checkpoints: standard input is read once"
	case c.Every == "":
		return "a checkpoint at the end, in " + c.Store
	}
	return "a checkpoint every " + c.Every + ", in " + c.Store
}

// tablesText lists the tables; of one it shows the columns.
func tablesText(p *plan.Plan) string {
	if len(p.Tables) == 0 {
		return "the records decide, and none was looked at\n"
	}
	rows := make([][]string, len(p.Tables))
	for i, t := range p.Tables {
		n := "?"
		if t.Schema != nil {
			n = fmt.Sprint(len(t.Columns))
		}
		rows[i] = []string{t.Name, count(int64(t.Records)), n, t.Derived}
	}
	text := columns([]string{"TABLE", "RECORDS", "COLUMNS", "COLUMNS COME FROM"}, rows, map[int]bool{1: true, 2: true})
	if len(p.Tables) > 1 {
		decisions := 0
		for _, t := range p.Tables {
			decisions += len(t.Decisions)
		}
		return text + fmt.Sprintf("--format json shows their columns, and %s that led to them\n", pluralText(decisions, "decision"))
	}
	t := p.Tables[0]
	if t.Schema != nil {
		text += "\n" + columns([]string{"COLUMN", "TYPE", "MODE"}, columnRows(t.Columns, ""), nil)
	}
	for _, d := range t.Decisions {
		text += d + "\n"
	}
	return text
}

func columnRows(cols []plan.Column, indent string) [][]string {
	var rows [][]string
	for _, c := range cols {
		rows = append(rows, []string{indent + oneLine(c.Name), c.Type, c.Mode})
		rows = append(rows, columnRows(c.Columns, indent+"  ")...)
	}
	return rows
}

func createText(c plan.Create) []string {
	if c.Disposition == "never" {
		return []string{"end the job: they are not made"}
	}
	lines := []string{"are made at their first row"}
	if c.Datasets {
		lines[0] += ", and datasets too"
	}
	if c.Partition != "" {
		lines = append(lines, "partitioned "+c.Partition)
	}
	if len(c.Cluster) > 0 {
		lines = append(lines, "clustered by "+strings.Join(c.Cluster, ", "))
	}
	if c.Description != "" {
		lines = append(lines, "described as "+fmt.Sprintf("%q", c.Description))
	}
	return lines
}

// maxListed is how many names of a list are shown to people.
const maxListed = 10

func lineageText(l plan.Lineage) string {
	var b strings.Builder
	list := func(what string, all []plan.Dataset) {
		for i, d := range all {
			if i == maxListed && len(all) > maxListed+1 {
				fmt.Fprintf(&b, "  %s  and %d more\n", what, len(all)-i)
				return
			}
			fmt.Fprintf(&b, "  %s  %s %s\n", what, d.Namespace, oneLine(d.Name))
		}
		if len(all) == 0 {
			fmt.Fprintf(&b, "  %s  none that has a name\n", what)
		}
	}
	list("from", l.Inputs)
	list("to  ", l.Outputs)
	return b.String()
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			line = "  " + line
		}
		b.WriteString(line)
	}
	return b.String()
}

func pluralText(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(int64(n)) + " " + noun + "s"
}
