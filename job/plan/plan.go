package plan

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/job"
)

// Plan is what a job would do. Its JSON form is what `millrace plan --format json` prints.
type Plan struct {
	Job    string `json:"job"`
	Source Source `json:"source"`

	// Table is the table as the job file names it, with placeholders.
	Table string `json:"table"`
	// Tables are those that the input leads to, as far as it was looked through, by name; or the one that is named.
	Tables []Table `json:"tables"`
	Create Create  `json:"create"`
	// SchemaUpdate is what would be changed about tables that exist, "" for nothing.
	SchemaUpdate string `json:"schemaUpdate,omitempty"`

	Method    string `json:"method"`
	Guarantee string `json:"guarantee"`
	Failures  string `json:"failures"`
	// Checkpoint is when the job can be gone on with, and from where.
	Checkpoint Checkpoint `json:"checkpoint"`
	Lanes      int        `json:"lanes"`

	Permissions []Permission `json:"permissions"`
	Lineage     Lineage      `json:"lineage"`
	Quotas      []Quota      `json:"quotas"`

	// Sizing is what a flow of rows that somebody expects comes to; see [Size].
	Sizing *Sizing `json:"sizing,omitempty"`
}

// Source is what would be read.
type Source struct {
	Format string   `json:"format"` // of the files, or bigquery
	Files  []string `json:"files,omitempty"`
	From   string   `json:"from,omitempty"` // what is read of BigQuery
	// Bytes is the size of all files as they are stored; 0 where it is not known.
	Bytes int64 `json:"bytes,omitempty"`
	// Looked is how many records were looked at, Lost how many of them lead to no table, and Whole that there are no others.
	Looked int  `json:"looked,omitempty"`
	Lost   int  `json:"lost,omitempty"`
	Whole  bool `json:"whole"`
}

// Table is one table that would be written to.
type Table struct {
	Name    string `json:"name"`
	Records int    `json:"records,omitempty"` // that were met for it
	// Derived is where the columns come from.
	Derived string `json:"derived"`
	// Decisions are what inference decided that a reader of the table should know of.
	Decisions []string `json:"decisions,omitempty"`
	// Columns are those of the rows; none where they are not known before the job runs.
	Columns []Column `json:"columns,omitempty"`

	Destination table.Destination `json:"-"`
	Schema      *table.Schema     `json:"-"`
}

// Column is one column of a table, members of STRUCTs below it.
type Column struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Mode    string   `json:"mode"`
	Columns []Column `json:"columns,omitempty"`
}

// Create is what becomes of tables that are not there.
type Create struct {
	Disposition string            `json:"disposition"` // if-needed or never
	Partition   string            `json:"partition,omitempty"`
	Cluster     []string          `json:"cluster,omitempty"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Datasets    bool              `json:"datasets,omitempty"`
}

// Checkpoint is what a job keeps to be gone on with.
type Checkpoint struct {
	Every string `json:"every,omitempty"` // "" is at the end only
	Store string `json:"store"`           // "" is nowhere
}

// Lineage is the data that a job connects, as OpenLineage names it.
type Lineage struct {
	Inputs  []Dataset `json:"inputs"`
	Outputs []Dataset `json:"outputs"`
}

// Dataset is a name in a namespace.
type Dataset struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Of makes the plan of a job.
func Of(ctx context.Context, p *job.Parsed, s job.Surroundings) (*Plan, error) {
	found, err := p.Survey(ctx, s)
	if err != nil {
		return nil, err
	}
	return from(p, s, found)
}

// WithoutInput makes the plan that the job file alone tells: no schema, and with placeholders no table.
func WithoutInput(p *job.Parsed, s job.Surroundings) (*Plan, error) {
	found := &job.Survey{}
	if dst, err := table.ParseDestination(p.Sink.BigQuery.Table); err == nil {
		found.Tables = []job.Surveyed{{Destination: dst}}
	}
	return from(p, s, found)
}

func from(p *job.Parsed, s job.Surroundings, found *job.Survey) (out *Plan, err error) {
	b := p.Sink.BigQuery
	out = &Plan{
		Job: p.Job, Table: b.Table, Method: cmp.Or(b.Method, "default"), Lanes: cmp.Or(p.Parallelism, runtime.GOMAXPROCS(0)),
		Source: Source{
			Format: format(p), Files: found.Files, From: found.From, Bytes: found.Bytes,
			Looked: found.Looked, Lost: found.Lost, Whole: found.Whole,
		},
		Create:       create(b.Create, s.CreateDatasets),
		SchemaUpdate: schemaUpdate(b.SchemaUpdate),
		Failures:     failures(b.Failures),
		Checkpoint:   Checkpoint{Store: p.StoreURL()},
	}
	if p.Checkpoint.Every > 0 {
		out.Checkpoint.Every = p.Checkpoint.Every.String()
	}
	if slices.Equal(found.Files, []string{"-"}) && p.Checkpoint.Store == "" {
		out.Checkpoint.Store = "" // standard input is read once
	}
	for _, t := range found.Tables {
		one := surveyed(t, b.Schema)
		if found.From != "" && b.Schema.Infer != nil {
			one.Derived = "what is read"
		}
		out.Tables = append(out.Tables, one)
	}
	out.Guarantee = guarantees[out.Method]
	out.Permissions = permissions(p, out)
	if out.Quotas, err = quotas(p, out); err != nil {
		return nil, err
	}
	out.Lineage, err = datasets(p, out)
	return out, err
}

func format(p *job.Parsed) string {
	if p.Source.BigQuery != nil {
		return "bigquery"
	}
	return cmp.Or(p.Source.Files.Format, "ndjson")
}

// guarantees are what docs/guide/guarantees.md says at length.
var guarantees = map[string]string{
	"default": "every row arrives at least once: rows can be queried once they are acknowledged, and a failure makes those since the newest checkpoint arrive again",
	"exactly-once": "every row arrives exactly once, as long as the checkpoint store is kept: rows can be queried once the checkpoint " +
		"that covers them is committed, and a failure adds none",
	"file-loads": "every row arrives exactly once, as long as the checkpoint store and the staged files are kept: rows can be queried once load jobs " +
		"have brought in the checkpoint that covers them, or all of the input, and a failure adds none",
}

func create(c job.Create, datasets bool) Create {
	out := Create{
		Disposition: cmp.Or(c.Disposition, "if-needed"), Cluster: c.Cluster, Description: c.Description, Labels: c.Labels,
		Datasets: c.Datasets || datasets,
	}
	if p := c.Partition; p != nil {
		out.Partition = "by " + p.Type + " of " + cmp.Or(p.Field, "ingestion")
		if p.Expiration > 0 {
			out.Partition += ", each kept for " + span(p.Expiration)
		}
		if p.RequireFilter {
			out.Partition += ", queries must name them"
		}
	}
	return out
}

// span writes whole days as such.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}

func schemaUpdate(u job.SchemaUpdate) string {
	var does []string
	if u.AllowNewFields {
		does = append(does, "columns that rows have and a table lacks are added")
	}
	if u.AllowFieldRelaxation {
		does = append(does, "REQUIRED columns that rows have otherwise become NULLABLE")
	}
	return strings.Join(does, "; ")
}

func failures(f job.Failures) string {
	switch {
	case f.Policy == "drop":
		return "dropped, with a warning for each"
	case f.Policy == "dead-letter" && f.DeadLetter != nil:
		return "kept as dead letters" + deadLetters(f.DeadLetter)
	}
	return "the first one ends the job"
}

func deadLetters(d *job.DeadLetter) string {
	switch {
	case d.File != "":
		return " in " + d.File
	case d.Table != "":
		return " in the table " + d.Table
	case d.PubSub != nil:
		return " in the topic " + d.PubSub.Topic
	}
	return ""
}

func surveyed(t job.Surveyed, s job.Schema) Table {
	out := Table{Name: t.Destination.String(), Records: t.Records, Destination: t.Destination, Schema: t.Schema, Derived: derived(t, s)}
	if t.Schema != nil {
		out.Columns = columns(t.Schema.Fields)
	}
	if t.Inferred != nil {
		for _, c := range t.Inferred.Choices {
			out.Decisions = append(out.Decisions, c.String())
		}
	}
	return out
}

func derived(t job.Surveyed, s job.Schema) string {
	switch {
	case s.File != "":
		return "schema file " + s.File
	case s.Table:
		return "the table, which exists"
	case t.Schema == nil && t.Inferred == nil && t.Records == 0:
		return "inferred from the input when the job runs"
	case t.Schema == nil:
		return "unknown: no record for it could be read"
	case t.Inferred != nil && t.Inferred.Documents > 0:
		return "inferred from " + plural(t.Inferred.Documents, "record")
	}
	return "the schema of the files"
}

func columns(fields []table.Field) []Column {
	out := make([]Column, len(fields))
	for i := range fields {
		f := &fields[i]
		out[i] = Column{Name: f.Name, Type: f.TypeText(), Mode: f.Mode.String(), Columns: columns(f.Fields)}
	}
	return out
}
