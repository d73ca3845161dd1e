package loadplan

import (
	"iter"

	"github.com/millrace-dev/millrace/bigquery/table"
)

// Plan is everything one commit does. Nobody changes a plan once it is built.
type Plan struct {
	Run        string
	Checkpoint Checkpoint
	Parts      []Part // one for each destination, in the order of their paths
}

// Part is what a commit does for one destination.
//
// Either its loads go straight into it, and there is nothing else; or they go into temporary tables, the leaves, and a final action
// brings all of them into the destination at once: the copy job Final or, behind that, the query Query. The final action is looked
// up before anything else is done for the part: once it has succeeded the part is complete, even when files and temporary tables
// are gone by now.
type Part struct {
	Destination table.Destination
	JobProject  string // where its jobs run
	Loads       []Job
	// Levels are copies from leaves and intermediate tables into intermediate tables, level 1 first. Each level is complete before
	// the next one begins. Nil where one copy reads all leaves.
	Levels [][]Job
	// Final copies what is left into the destination; with a Query it goes into the aggregate, a temporary table. Nil where loads
	// are direct.
	Final *Job
	// Query reads the aggregate into the destination, since copy jobs do not know WRITE_TRUNCATE_DATA. Nil otherwise.
	Query *Job
	Rows  int64
	Bytes int64
}

// Kind is the kind of a job.
type Kind uint8

// The kinds of jobs.
const (
	LoadJob Kind = iota
	CopyJob
	QueryJob
)

// Job is one job of a plan.
type Job struct {
	Kind Kind
	// ID is the id of its first attempt. Those that follow a failure add -r1, -r2 and so on.
	ID     string
	Target table.Destination
	// Temp says that Target is a temporary table: made by the job, deleted by the clean-up. Otherwise it is the destination.
	Temp  bool
	Write Disposition
	// SchemaUpdates says that the native options of schema updates are sent, those of them that the sink allows.
	SchemaUpdates bool

	Format Format   // of a load job
	URIs   []string // of a load job, in order; none is a pattern
	Rows   int64    // of a load job
	Bytes  int64    // of a load job

	Sources []table.Destination // of a copy job
	SQL     string              // of a query
}

// The create dispositions of jobs (BigQuery REST reference, createDisposition).
const (
	CreateIfNeeded = "CREATE_IF_NEEDED"
	CreateNever    = "CREATE_NEVER"
)

// Create is the create disposition. A destination is there when jobs run, made as the sink says if need be: a job that made it again
// would leave out its partitioning.
func (j *Job) Create() string {
	if j.Temp {
		return CreateIfNeeded
	}
	return CreateNever
}

// Direct says whether loads go straight into the destination.
func (p *Part) Direct() bool { return p.Final == nil }

// FinalAction is the job that makes the rows of a part with temporary tables visible, nil where loads are direct.
func (p *Part) FinalAction() *Job {
	if p.Query != nil {
		return p.Query
	}
	return p.Final
}

// TempTables are the temporary tables of a part, for its clean-up: leaves, intermediate tables, the aggregate.
func (p *Part) TempTables() iter.Seq[table.Destination] {
	return func(yield func(table.Destination) bool) {
		for job := range p.jobs() {
			if job.Temp && !yield(job.Target) {
				return
			}
		}
	}
}

// StagedFiles are the URIs of all files of a part, for its clean-up. Each is there once.
func (p *Part) StagedFiles() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range p.Loads {
			for _, uri := range p.Loads[i].URIs {
				if !yield(uri) {
					return
				}
			}
		}
	}
}

// jobs are all jobs of a part in the order they run.
func (p *Part) jobs() iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		lists := append([][]Job{p.Loads}, p.Levels...)
		for _, list := range lists {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
		for _, job := range []*Job{p.Final, p.Query} {
			if job != nil && !yield(job) {
				return
			}
		}
	}
}
